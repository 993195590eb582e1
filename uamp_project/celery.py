"""The Celery application: its messages only make a worker look for rows of work sooner."""

import logging.config
import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "uamp_project.settings")

app = Celery("uamp_project")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(
    ["chat_app.link_cards", "chat_app.transcripts", "sessions_app.tools", "sessions_app.webhooks"]
)


@setup_logging.connect
def configure_logging(loglevel: int | str | None = None, **_: Any) -> None:
    """Give the worker the server's own logging: Celery would add handlers that redact nothing.

    `loglevel` is the worker's `--loglevel`; it is the level of the root logger, as Celery has it.
    """
    from django.conf import settings  # noqa: PLC0415 the signal comes when the settings are there

    logging.config.dictConfig(settings.LOGGING)
    if loglevel:
        logging.getLogger().setLevel(loglevel)
