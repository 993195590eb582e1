"""Logging: every line goes to standard error, without credentials."""

from uamp_project.settings.environment import choice

LOG_LEVEL = choice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"))
# The formatter removes credentials from every line. The loggers of the servers and of Django's own
# request log would have handlers of their own: here they pass records to the root logger.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "uamp_project.redaction.RedactingFormatter",
            "format": "{asctime} {levelname} {name} {message}",
            "style": "{",
        }
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
        **{
            name: {"handlers": [], "propagate": True}
            for name in (
                "celery", "celery.task", "celery.redirected", "django", "django.server",
                "uvicorn", "uvicorn.access", "uvicorn.asgi", "uvicorn.error",
            )
        },
        "django.channels.server": {"level": "WARNING"},
        "daphne": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        # The MCP client logs the output of servers; agents_app logs the errors of its own calls.
        "client": {"level": "CRITICAL"},
        "mcp": {"level": "CRITICAL"},
    },
}  # fmt: skip
