"""Pictures to and from remote agents over sockets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from websockets.asyncio.server import serve as serve_socket

from agents_app.remote.addresses import close_remotes
from agents_app.runtime.agent_run import run_agent
from tests.agents_app.remote.remote_agents import remote_spec, request_of, text_of
from tests.agents_app.remote.test_protocols import ENCODED, PICTURE, PNG, media_in
from tests.agents_app.run_context import Broker, Media
from uamp.events import Progress

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from websockets.asyncio.server import ServerConnection

    from uamp.events import Event

    Speak = Callable[[ServerConnection, list[Any]], Awaitable[None]]

pytestmark = pytest.mark.usefixtures("database_threads")

DRAWING = "https://pictures.example/drawing.png"


async def speak_acp(socket: ServerConnection, received: list[Any], *, sees: bool = True) -> None:
    """Answer as an agent of ACP that draws, and says whether it takes pictures."""
    can = {"promptCapabilities": {"image": sees}}
    for result in ({"protocolVersion": 1, "agentCapabilities": can}, {"sessionId": "s"}):
        request = json.loads(await socket.recv())
        await socket.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}))
    prompt = json.loads(await socket.recv())
    received.append(prompt)
    link = {
        "type": "resource_link", "uri": DRAWING, "name": "drawing.png", "mimeType": "image/png",
    }  # fmt: skip
    for content in (link, {"type": "image", "data": ENCODED, "mimeType": "image/png"}):
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        params = {"sessionId": "s", "update": update}
        frame = {"jsonrpc": "2.0", "method": "session/update", "params": params}
        await socket.send(json.dumps(frame))
    end = {"jsonrpc": "2.0", "id": prompt["id"], "result": {"stopReason": "end_turn"}}
    await socket.send(json.dumps(end))
    await socket.wait_closed()


async def speak_blind_acp(socket: ServerConnection, received: list[Any]) -> None:
    """Answer as an agent of ACP that takes no pictures."""
    await speak_acp(socket, received, sees=False)


async def speak_uamp(socket: ServerConnection, received: list[Any]) -> None:
    """Answer as an agent of UAMP that draws."""
    request: dict[str, Any] = {}
    while request.get("type") != "response.create":
        request = json.loads(await socket.recv())
        received.append(request)
        if request["type"] == "session.create":
            session = {"id": "s", "created_at": 1, "modalities": ["text"]}
            created = {"type": "session.created", "session_id": "s", "session": session}
            reply = {**created, "uamp_version": "1.0", "in_reply_to": request.get("event_id")}
            await socket.send(json.dumps({"event_id": "e1", **reply}))
    images = ({"url": DRAWING}, ENCODED)
    deltas = [{"type": "image", "image": image, "filename": "drawing.png"} for image in images]
    done = {"id": "r9", "status": "completed", "output": []}
    events: list[dict[str, Any]] = [
        {"type": "response.created"},
        *({"type": "response.delta", "delta": delta} for delta in deltas),
        {"type": "response.done", "response": done},
    ]
    for number, event in enumerate(events, 2):
        frame = {"event_id": f"e{number}", "session_id": "s", "response_id": "r9", **event}
        await socket.send(json.dumps(frame))
    await socket.wait_closed()


@pytest.mark.parametrize(
    ("protocol", "speak", "sees"),
    [("acp", speak_acp, True), ("acp", speak_blind_acp, False), ("uamp", speak_uamp, True)],
)
async def test_a_picture_goes_there_and_a_drawing_comes_back(
    protocol: str, speak: Speak, *, sees: bool
) -> None:
    received: list[Any] = []
    shown: list[Event | str] = []

    async def answer(socket: ServerConnection) -> None:
        await speak(socket, received)

    async with serve_socket(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        spec = await remote_spec(f"http://127.0.0.1:{port}", protocol=protocol)
        await run_agent(
            spec,
            request_of(history=[PICTURE]),
            shown.append,
            broker=Broker(),
            media=Media({"c1": (PNG, "image/png")}),
        )
        await close_remotes()
    sent = json.dumps(received)
    assert len(media_in(received)) == (1 if sees else 0)
    assert "What is this?" in sent
    assert "/api/content/" not in sent, "the other side cannot read it"
    # Of the two pictures, the one with an address is linked.
    assert text_of(shown).strip() == f"![drawing.png]({DRAWING})"
    notes = [event.message for event in shown if isinstance(event, Progress)]
    assert len([note for note in notes if note and "was sent as data" in note]) == 1
