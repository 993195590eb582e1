"""The two forms of a log line, text and JSON, both without credentials (`redaction`)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from uamp_project.redaction import RedactingFormatter, redact

if TYPE_CHECKING:
    import logging


class JsonFormatter(RedactingFormatter):
    """One JSON object a line.

    `time` (ISO 8601 in UTC), `level`, `logger`, `message`; `request_id`, `session_id` and
    `response_id` where there are some; `error` with the traceback of an exception.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        for name in ("request_id", "session_id", "response_id"):
            if value := getattr(record, name, ""):
                line[name] = redact(value)
        if record.exc_info:
            line["error"] = redact(self.formatException(record.exc_info))
        if record.stack_info:
            line["stack"] = redact(self.formatStack(record.stack_info))
        return msgspec.json.encode(line).decode()
