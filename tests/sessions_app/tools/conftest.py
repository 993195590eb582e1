"""Long tools for every test, and a queue without workers."""

from collections.abc import Callable, Iterator

import pytest
from celery import Celery
from channels.layers import channel_layers
from django.conf import settings as django_settings
from pytest_django.fixtures import Settings

from tests.sessions_app.tools import long_tools
from uamp_project.celery import app


@pytest.fixture(autouse=True)
def _tools(settings: Settings) -> None:
    settings.UAMP_SERVER_TOOLS = [*django_settings.UAMP_SERVER_TOOLS, *long_tools.PATHS]
    channel_layers.set("default", None)
    channel_layers.backends.clear()


@pytest.fixture
def notified_calls() -> Iterator[Callable[[], list[int]]]:
    """Send messages to a queue without workers; give a function that returns the new calls."""
    unanswered = Celery("unanswered", broker="memory://")
    unanswered.conf.task_default_queue = "unanswered"
    unanswered.set_current()
    with unanswered.connection_for_read() as broker, broker.SimpleQueue("unanswered") as queue:
        queue.clear()

        def notified() -> list[int]:
            call_ids = []
            while queue.qsize():
                message = queue.get_nowait()
                message.ack()
                call_ids.append(message.payload[1]["pk"])
            return call_ids

        yield notified
    app.set_current()
    unanswered.close()
