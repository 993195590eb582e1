"""A client of the Realtime API, and helpers to build and read its events."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image
from websockets.sync.client import ClientConnection, connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import ServerAddress
    from tests.live_server import Person

Shown = dict[str, Any]
GA = "v1/realtime?model=echo"
BETA = "agents/echo/realtime"
SEARCH = {
    "type": "function",
    "name": "search",
    "description": "Searches",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
}
END = "response.done"


class RealtimeClient:
    """A client that keeps what it is sent."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    def send(self, kind: str, **members: Any) -> None:
        """Send an event."""
        self.socket.send(json.dumps({"type": kind, **members}))

    def next(self) -> Shown:
        """Return the next event of the server, which has an id."""
        event: Shown = json.loads(self.socket.recv(timeout=60))
        assert event["event_id"]
        return event

    def until(self, kind: str) -> list[Shown]:
        """Return the events up to one of a type."""
        events = [self.next()]
        while events[-1]["type"] != kind:
            events.append(self.next())
        return events

    def ask(self, type: str, **members: Any) -> Shown:  # noqa: A002 - the member's name
        """Send an event and return the one that answers it."""
        self.send(type, **members)
        return self.next()

    def say(self, text: str, role: str = "user", **members: Any) -> Shown:
        """Put a message into the conversation, and return it as the server has it."""
        part = {"type": "text" if role == "assistant" else "input_text", "text": text}
        item = {"type": "message", "role": role, "content": [part], **members}
        created = self.ask("conversation.item.create", item=item)
        if created["type"] == "conversation.item.added":
            assert self.next()["type"] == "conversation.item.done"
        created_item: Shown = created["item"]
        return created_item

    def answer(self, **response: Any) -> Shown:
        """Ask for a response and return it, whole."""
        self.send("response.create", response=response)
        ended: Shown = self.until(END)[-1]["response"]
        return ended


Realtime = Callable[..., RealtimeClient]


@pytest.fixture
def realtime(demo: ServerAddress) -> Iterator[Realtime]:
    """Give a function that opens a socket."""
    with ExitStack() as sockets:

        def dial(
            path: str, who: Person | None = None, *, is_open: bool = True, **options: Any
        ) -> RealtimeClient:
            headers = {**(who.headers if who else {}), **options.pop("headers", {})}
            opened = connect(f"{demo.ws}/{path}", additional_headers=headers, proxy=None, **options)
            client = RealtimeClient(sockets.enter_context(opened))
            if is_open:
                assert client.next()["type"] == "session.created"
            return client

        yield dial


def picture() -> Shown:
    """Return a picture as a part of a message."""
    file = io.BytesIO()
    Image.new("RGB", (8, 6), "red").save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    return {"type": "input_image", "image_url": f"data:image/png;base64,{data}"}


def types_of(events: list[Shown]) -> list[str]:
    """Return the types of events, a run of one type once."""
    types = [event["type"] for event in events]
    return [kind for n, kind in enumerate(types) if not n or types[n - 1] != kind]


def text_of(response: Shown) -> str:
    """Return the text of a response's messages."""
    parts = [part for item in response["output"] for part in item.get("content", ())]
    return "".join(part["text"] for part in parts)


def item(**members: Any) -> Shown:
    """Return the event that creates an item."""
    return {"type": "conversation.item.create", "item": members}


def message(*parts: Shown, role: str = "user") -> Shown:
    """Return the event that creates a message."""
    return item(type="message", role=role, content=list(parts))
