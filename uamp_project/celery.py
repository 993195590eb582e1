"""The Celery application. Its messages only make workers look for rows of work sooner."""

import logging.config
import os
from typing import Any

from celery import Celery
from celery.signals import (
    setup_logging,
    worker_init,
    worker_process_init,
    worker_process_shutdown,
    worker_ready,
    worker_shutdown,
)

from telemetry import spans

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "uamp_project.settings")

app = Celery("uamp_project")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(
    [
        "chat_app.digests",
        "chat_app.link_cards",
        "chat_app.push",
        "chat_app.transcripts",
        "sessions_app.tools",
        "sessions_app.webhooks",
    ]
)


@setup_logging.connect
def configure_logging(loglevel: int | str | None = None, **_: Any) -> None:
    """Use the server's logging in workers, where Celery would add handlers without redaction.

    `loglevel` is the worker's `--loglevel`, and sets the level of the root logger, as in Celery.
    """
    from django.conf import settings  # noqa: PLC0415 the settings are ready when the signal arrives

    logging.config.dictConfig(settings.LOGGING)
    if loglevel:
        logging.getLogger().setLevel(loglevel)


@worker_init.connect
@worker_process_init.connect
def configure_spans(**_: Any) -> None:
    """Record spans in a worker, and in each of its child processes."""
    from django.conf import settings  # noqa: PLC0415 as above

    if settings.OTEL_EXPORTER_OTLP_ENDPOINT:
        spans.configure(f"{settings.OTEL_SERVICE_NAME}-worker")


@worker_process_shutdown.connect
def send_spans(**_: Any) -> None:
    """Send the remaining spans of a child process, which exits without its exit handlers."""
    spans.close()


@worker_ready.connect
def serve_metrics(**_: Any) -> None:
    """Serve the worker's metrics, where the operator wants them."""
    from django.conf import settings  # noqa: PLC0415 as above

    from uamp_project.monitoring import workers  # noqa: PLC0415 other processes do not need it

    port, token = settings.UAMP_WORKER_METRICS_PORT, settings.UAMP_METRICS_TOKEN
    if port and token:
        workers.start(settings.UAMP_WORKER_METRICS_HOST, port, token)


@worker_ready.connect
def show_alive(sender: Any, **_: Any) -> None:
    """Keep a row by which operators see that a worker is alive, until it shuts down."""
    from sessions_app.process.beats import WorkerBeat  # noqa: PLC0415 the apps are ready by now

    alive = WorkerBeat(list(sender.app.amqp.queues.consume_from))
    alive.start()

    def say_goodbye(**_: Any) -> None:
        alive.stop()

    worker_shutdown.connect(say_goodbye, weak=False)
