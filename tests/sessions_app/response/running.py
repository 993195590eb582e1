"""Sessions and responses that run in this process, without a socket."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from channels.layers import channel_layers
from django.db import transaction
from django.utils import timezone

from chat_app.models import ChatEvent
from sessions_app import lifespan, services
from sessions_app.access import auth
from sessions_app.models import Response, ToolCallKind
from sessions_app.states import ToolCallState
from sessions_app.turn.request import TurnRequest
from sessions_app.turn.start import start_response
from tests import factories
from tests.live_server import quick_agent
from uamp import ResponseState
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from pytest_django import Settings

    from sessions_app.process.registry import Process
    from sessions_app.records import OpenSession
    from sessions_app.response.run import Run

WAIT_SECONDS = 60.0


@dataclass
class Hearer:
    """A Listener that remembers."""

    texts: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    frames: list[str] = field(default_factory=list)
    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    # The kinds of frames before the end.
    order: list[str] = field(default_factory=list)

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until the received frames make something true."""
        async with asyncio.timeout(WAIT_SECONDS):
            while not holds():
                self.news.clear()
                await self.news.wait()

    def text(self, response_id: str, offset: int, text: str, frame: tuple[str, str]) -> None:
        """See Listener."""
        del response_id, offset, frame
        self.texts.append(text)
        self.order.append("text")
        self.news.set()

    def frame(self, response_id: str, frame: str) -> None:
        """See Listener."""
        del response_id
        self.frames.append(frame)
        self.order.append("frame")
        self.news.set()

    def event(self, seq: int, event_type: str, response_id: str, frame: str) -> None:
        """See Listener."""
        del seq, response_id, frame
        self.events.append(event_type)

    def ended(self, response_id: str) -> None:
        """See Listener."""
        del response_id
        self.is_over.set()


@pytest.fixture
async def process(database_threads: None, settings: Settings) -> AsyncIterator[Process]:
    """Give the runner's process of this loop."""
    settings.UAMP_GRACE_SECONDS = 0
    channel_layers.set("default", None)
    channel_layers.backends.clear()
    yield lifespan.start()
    await lifespan.shutdown()


def open_session(script: str, **options: object) -> OpenSession:
    """Open a visitor's session with an agent of its own."""
    agent = quick_agent("quick", script, **options)
    return services.open_session(
        principal=auth.anonymous(),
        transport="websocket",
        create=ev.SessionCreate(),
        agent_name=agent.name,
        chat_id=None,
    )


async def ask(session: OpenSession, text: str, hearer: Hearer, event_id: str = "evt_1") -> Run:
    """Start a turn and return its run."""
    request = TurnRequest(
        session=session,
        event_id=event_id,
        sha256="0",
        inputs=[ev.InputText(text=text)],
        create=ev.ResponseCreate(event_id=event_id),
    )
    started = await start_response(request, hearer)
    return started.runs[0]


def get_response(response_id: str) -> Response:
    """Return a response as its row has it."""
    return Response.objects.get(pk=response_id)


@transaction.atomic
def left_behind(**fields: object) -> Response:
    """Return a response whose process died while it waited for its client."""
    agent = quick_agent("quick", "tool-user")
    person = factories.user()
    chat = factories.chat(person, agent)
    response = factories.response(
        agent,
        chat,
        session=factories.session(person, chat),
        status=ResponseState.WAITING,
        process="gone",
        lease_until=timezone.now() - timedelta(seconds=1),
        **fields,
    )
    factories.tool_call(response, kind=ToolCallKind.CLIENT, status=ToolCallState.WAITING)
    return response


def log_of(chat_id: str) -> list[str]:
    """Return the types of a chat's log."""
    return list(
        ChatEvent.objects.filter(chat_id=chat_id).order_by("seq").values_list("type", flat=True)
    )
