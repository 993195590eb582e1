"""Logs, metrics and traces. Every line goes to standard error, without credentials."""

from uamp_project.settings.environment import choice, integer, string, switch

LOG_LEVEL = choice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"))
LOG_FORMAT = choice("LOG_FORMAT", "text", ("text", "json"))
# A line for each request and socket that ended (telemetry.access_log).
UAMP_ACCESS_LOG = switch("UAMP_ACCESS_LOG", "0")
# The path /metrics exists only if this token is set.
UAMP_METRICS_TOKEN = string("UAMP_METRICS_TOKEN")
# Workers have no web server: each serves its metrics on a port of its own, for the same token.
UAMP_WORKER_METRICS_PORT = integer("UAMP_WORKER_METRICS_PORT", 0, maximum=65_535)
UAMP_WORKER_METRICS_HOST = string("UAMP_WORKER_METRICS_HOST", "127.0.0.1")
# If set, spans are sent to the collector at this address; OpenTelemetry's other variables apply.
OTEL_EXPORTER_OTLP_ENDPOINT = string("OTEL_EXPORTER_OTLP_ENDPOINT")
OTEL_SERVICE_NAME = string("OTEL_SERVICE_NAME", "uamp-server")
# The formatter removes credentials from every line. The loggers of the servers and Django's request
# log would have their own handlers; here they propagate to the root logger.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {
            "()": "uamp_project.redaction.RedactingFormatter",
            "format": "{asctime} {levelname} {name} {message}{ids}",
            "style": "{",
            "defaults": {"ids": ""},
        },
        "json": {"()": "uamp_project.monitoring.log_forms.JsonFormatter"},
    },
    "filters": {
        "ids": {"()": "telemetry.log_fields.AddFields"},
        "refusals": {"()": "uamp_project.monitoring.refusals.RefusedRequests"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler", "formatter": LOG_FORMAT,
            "filters": ["ids", "refusals"],
        }
    },
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
        **{
            name: {"handlers": [], "propagate": True}
            for name in (
                "celery", "celery.task", "celery.redirected", "django", "django.server",
                "uvicorn", "uvicorn.access", "uvicorn.asgi", "uvicorn.error",
            )
        },
        "telemetry.access_log": {"level": "INFO" if UAMP_ACCESS_LOG else "WARNING"},
        "django.channels.server": {"level": "WARNING"},
        "daphne": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        # The MCP client logs the output of servers; agents_app logs the errors of its own calls.
        "client": {"level": "CRITICAL"},
        "mcp": {"level": "CRITICAL"},
    },
}  # fmt: skip
