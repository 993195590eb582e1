"""Inputs that no response.create took are bounded in bytes, for a connection and for a person."""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from chat_app.models import Message
from sessions_app.inputs import pending
from sessions_app.models import PendingInput
from tests.client import new_event
from tests.live_server import counted_rows

if TYPE_CHECKING:
    import httpx
    from pytest_django import Settings

    from tests.client import UampClient
    from tests.live_server import Dial, Person

KIB = 1024
LIMIT = 1000 * KIB


def file_of(size: int) -> dict[str, Any]:
    """Return the fields of an input.file that is so long in base64."""
    data = base64.b64encode(b"text" * (size * 3 // 16)).decode()
    return {"file": data, "filename": "a.txt", "mime_type": "text/plain"}


def refused(client: UampClient, session_id: str | None = None) -> bool:
    """Send a file of 400 KiB and return whether it was refused."""
    session_field = {"session_id": session_id} if session_id else {}
    client.send("input.file", **file_of(400 * KIB), **session_field)
    errors = [frame["error"] for frame in client.settle() if frame["type"] == "session.error"]
    assert all(error["code"] == "too_many_inputs" for error in errors)
    return bool(errors)


def test_a_connection_has_room_for_few_bytes(dial: Dial, alice: Person, settings: Settings) -> None:
    settings.UAMP_PENDING_BYTES_PER_CONNECTION = LIMIT
    client = dial(alice)
    first = client.create_session(agent="echo")["session_id"]
    assert [refused(client) for _ in range(3)] == [False, False, True]
    # Another session of the connection has no room of its own; its person has, elsewhere.
    second = client.create_session(agent="echo")["session_id"]
    assert refused(client, second)
    other = dial(alice)
    other.create_session(agent="echo")
    assert not refused(other)
    # What was sent makes room.
    client.send("response.create", session_id=first)
    client.until("response.done")
    assert not refused(client, second)


def test_a_person_has_room_for_few_bytes_until_their_sockets_close(
    dial: Dial, alice: Person, bob: Person, settings: Settings
) -> None:
    settings.UAMP_PENDING_BYTES_PER_USER = LIMIT
    clients = [dial(alice), dial(alice), dial(bob)]
    for client in clients:
        client.create_session(agent="echo")
    assert [refused(client) for client in (*clients[:2], clients[0], clients[2])] == [
        False,
        False,
        True,
        False,
    ]
    clients[1].close()
    deadline = time.monotonic() + 60
    while refused(clients[0]):
        assert time.monotonic() < deadline
    for client in clients:
        client.close()
    while pending._of_person:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("limit", ["CONNECTION", "USER"])
def test_inputs_over_http_have_the_same_limits(
    web: httpx.Client, alice: Person, settings: Settings, limit: str
) -> None:
    setattr(settings, f"UAMP_PENDING_BYTES_PER_{limit}", LIMIT)
    headers = []
    for _ in range(2):
        create = new_event("session.create", session={}, agent="echo")
        created = web.post("/events", json=create, headers=alice.headers)
        headers.append({**alice.headers, "X-Session-ID": created.headers["X-Session-ID"]})

    def send(session: int) -> tuple[int, str]:
        event = new_event("input.file", **file_of(400 * KIB))
        answer = web.post("/events", json=event, headers=headers[session])
        return answer.status_code, answer.json().get("code", "")

    accepted, too_many = (202, ""), (400, "too_many_inputs")
    assert [send(0), send(0), send(0)] == [accepted, accepted, too_many]
    assert send(1) == (too_many if limit == "USER" else accepted)
    web.post("/events", json=new_event("response.create"), headers=headers[0])
    assert send(1) == accepted


TEXT_LIMIT = 4 * KIB
HALF = "ä" * (TEXT_LIMIT // 4)
"""Half of the bytes that a message may have."""
TOO_MUCH = {
    "texts": [{"type": "input.text", "text": HALF} for _ in range(3)],
    "roles": [
        {"type": "input.text", "text": HALF, "role": role} for role in ("system", "assistant")
    ]
    + [{"type": "input.text", "text": "x"}],
    "names": [{"type": "input.file", **file_of(64), "filename": "n" * 900} for _ in range(5)],
    "history": [
        {
            "type": "input.text",
            "text": "x",
            "messages": [{"role": "user", "content": "x", "content_items": [*texts]}],
        }
        for texts in [[{"type": "text", "text": HALF}] * 3]
    ],
}


@pytest.mark.sampled
@pytest.mark.parametrize("transport", ["ws", "http"])
@pytest.mark.parametrize("case", list(TOO_MUCH))
def test_a_turn_whose_text_is_too_large_is_refused_before_anything_is_written(
    dial: Dial,
    web: httpx.Client,
    alice: Person,
    settings: Settings,
    transport: str,
    case: str,
) -> None:
    settings.UAMP_MESSAGE_BYTES = TEXT_LIMIT
    client = dial(alice)
    client.create_session(agent="echo")
    events = [{**new_event(""), **fields} for fields in TOO_MUCH[case]]
    if transport == "http":
        create = new_event("session.create", session={}, agent="echo")
        created = web.post("/events", json=create, headers=alice.headers)
        headers = {**alice.headers, "X-Session-ID": created.headers["X-Session-ID"]}

    def send(frames: list[dict[str, Any]]) -> str:
        """Send inputs and their response.create, and return the refusal's code."""
        frames = [*frames, new_event("response.create")]
        if transport == "ws":
            for frame in frames:
                client.send_raw(json.dumps(frame))
            answer = client.until("session.error", "response.done")
            return str(answer[-1].get("error", {}).get("code", ""))
        answers = [web.post("/events", json=frame, headers=headers) for frame in frames]
        assert all(answer.is_success for answer in answers[:-1])
        return "" if answers[-1].is_success else str(answers[-1].json()["code"])

    before = counted_rows()
    assert send(events) == "event_too_large"
    assert counted_rows() == before
    # The same inputs can be sent again, and what is within the limit is taken: media do not count.
    again = events[:1] if case != "history" else [new_event("input.text", text=HALF)]
    assert send([*again, new_event("input.file", **file_of(8 * KIB))]) == ""
    assert Message.objects.filter(role="user").count() == 1


BAD_IMAGE = {"image": base64.b64encode(b"no picture").decode(), "format": "png"}
REFUSED_TURNS: dict[str, tuple[str, dict[str, Any]]] = {
    "invalid_media": ("input.image", BAD_IMAGE),
    "content_not_found": (
        "input.file",
        {
            "file": {"url": "/api/content/00000000-0000-4000-8000-000000000000"},
            "filename": "a.txt",
            "mime_type": "text/plain",
        },
    ),
}


@pytest.fixture
def over_http(web: httpx.Client, alice: Person) -> Any:
    """Send an event of a session over HTTP, and return the status and the code of a refusal."""
    create = new_event("session.create", session={}, agent="echo")
    created = web.post("/events", json=create, headers=alice.headers)
    headers = {**alice.headers, "X-Session-ID": created.headers["X-Session-ID"]}

    def send(kind: str, **fields: Any) -> str:
        answer = web.post("/events", json=new_event(kind, **fields), headers=headers)
        return "" if answer.is_success else str(answer.json()["code"])

    return send


@pytest.mark.parametrize("code", REFUSED_TURNS)
def test_a_session_continues_after_a_refused_turn(over_http: Any, code: str) -> None:
    kind, fields = REFUSED_TURNS[code]
    assert over_http(kind, **fields) == ""
    assert over_http("response.create") == code
    assert not PendingInput.objects.exists()
    assert over_http("input.text", text="Hello") == ""
    assert over_http("response.create") == ""
    assert Message.objects.get(role="user").content == "Hello"


def test_inputs_that_cannot_be_read_do_not_keep_their_session(over_http: Any) -> None:
    assert over_http("input.text", text="Hello") == ""
    PendingInput.objects.update(payload={"type": "input.text", "text": 7})
    assert over_http("response.create") != ""
    assert not PendingInput.objects.exists()


def test_a_turn_that_may_be_taken_later_keeps_its_inputs(
    over_http: Any, settings: Settings
) -> None:
    assert over_http("input.text", text="Hello") == ""
    room, settings.UAMP_RUNS_PER_PROCESS = settings.UAMP_RUNS_PER_PROCESS, 0
    assert over_http("response.create") == "busy"
    settings.UAMP_RUNS_PER_PROCESS = room
    assert over_http("response.create") == ""
    assert Message.objects.get(role="user").content == "Hello"
