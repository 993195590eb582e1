"""Log lines of refused requests, without a traceback because the server is not at fault."""

from __future__ import annotations

import logging
from typing import Final

from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.http import Http404

REFUSALS: Final = (PermissionDenied, SuspiciousOperation, Http404)


class RefusedRequests(logging.Filter):
    """Shortens the line of a refused request, and lowers an error to a warning."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep every record."""
        if record.exc_info and isinstance(record.exc_info[1], REFUSALS):
            record.exc_info = record.exc_text = None
            if record.levelno > logging.WARNING:
                record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True
