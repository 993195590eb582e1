"""The two log formats, text and JSON, both without credentials (`redaction`)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from telemetry.log_fields import LogFields
from uamp_project.redaction import RedactingFormatter, message_of, redact

if TYPE_CHECKING:
    import logging


class JsonFormatter(RedactingFormatter):
    """Writes one JSON object per line.

    Members: `time` (ISO 8601 in UTC), `level`, `logger` and `message`; the ids of `LogFields` that
    are known; the parts of a line of the access log; `error` with the traceback of an exception.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": redact(message_of(record)),
        }
        for name in LogFields._fields:
            if value := getattr(record, name, ""):
                line[name] = redact(value)
        line |= getattr(record, "access", {})
        if record.exc_info:
            line["error"] = redact(self.formatException(record.exc_info))
        if record.stack_info:
            line["stack"] = redact(self.formatStack(record.stack_info))
        return msgspec.json.encode(line).decode()
