"""The two dialects of the Realtime API: their events, and how one is chosen."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from sessions_app.models import Session
from tests.gateway_app.realtime.client import BETA, END, GA, Realtime, types_of

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.conftest import ServerAddress
    from tests.live_server import Person

pytestmark = pytest.mark.any_database


def test_a_response_has_the_events_of_ga_in_their_order(realtime: Realtime, alice: Person) -> None:
    client = realtime(GA, alice)
    client.say("Hello there")

    client.send("response.create")
    events = client.until(END)

    assert types_of(events) == [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
    ]
    deltas = [event for event in events if event["type"] == "response.output_text.delta"]
    assert len(deltas) > 1
    response_id = events[0]["response"]["id"]
    item_id = events[1]["item"]["id"]
    for event in deltas:
        assert (event["response_id"], event["item_id"]) == (response_id, item_id)
        assert (event["output_index"], event["content_index"]) == (0, 0)
    assert "".join(event["delta"] for event in deltas) == "Hello there"
    assert events[3]["part"]["type"] == "text"
    ended = events[-1]["response"]
    assert (ended["id"], ended["status"]) == (response_id, "completed")
    assert ended["output"][0]["content"] == [{"type": "output_text", "text": "Hello there"}]
    assert ended["usage"]["total_tokens"] == 4
    assert Session.objects.get().transport == "realtime"


def test_a_response_has_the_events_of_the_beta_in_their_order(
    realtime: Realtime, alice: Person
) -> None:
    client = realtime(BETA, alice)
    client.say("Hello there")

    client.send("response.create")
    events = client.until(END)

    assert types_of(events) == [
        "response.created",
        "response.output_item.added",
        "conversation.item.created",
        "response.content_part.added",
        "response.text.delta",
        "response.text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.done",
    ]
    assert events[-1]["response"]["output"][0]["content"] == [
        {"type": "text", "text": "Hello there"}
    ]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("path", "headers", "subprotocols", "is_ga"),
    [
        ("v1/realtime?model=echo", {}, (), True),
        ("realtime?model=echo", {}, (), True),
        ("agents/echo/v1/realtime?model=gpt-realtime", {}, (), True),
        ("agents/echo/realtime", {}, (), False),
        ("realtime?model=echo", {"OpenAI-Beta": "realtime=v1"}, (), False),
        ("realtime?model=echo", {}, ("realtime", "openai-beta.realtime-v1"), False),
    ],
)
def test_the_handshake_chooses_the_dialect(
    realtime: Realtime,
    path: str,
    headers: dict[str, str],
    subprotocols: tuple[str, ...],
    *,
    is_ga: bool,
) -> None:
    client = realtime(path, headers=headers, subprotocols=subprotocols or None, is_open=False)

    session = client.next()["session"]

    assert session["output_modalities" if is_ga else "modalities"] == ["text"]
    assert (session.get("type") == "realtime") is is_ga
    assert client.socket.subprotocol == ("realtime" if subprotocols else None)


def test_a_browser_shows_its_key_in_a_subprotocol(realtime: Realtime, alice: Person) -> None:
    key = alice.headers["Authorization"].removeprefix("Bearer ")
    offered = ["realtime", f"openai-insecure-api-key.{key}"]

    client = realtime(GA, subprotocols=offered)

    assert client.socket.subprotocol == "realtime"
    assert Session.objects.get().user_id == alice.user.pk


def test_an_update_with_the_type_of_ga_switches_to_ga(realtime: Realtime) -> None:
    client = realtime(BETA)

    updated = client.ask("session.update", session={"type": "realtime", "instructions": "Brief."})

    assert updated["type"] == "session.updated"
    assert updated["session"]["output_modalities"] == ["text"]
    assert updated["session"]["instructions"] == "Brief."
    client.say("Hello")
    client.send("response.create")
    assert "response.output_text.delta" in types_of(client.until(END))


@pytest.mark.parametrize(
    ("path", "code"),
    [("realtime?model=missing", 4404), ("realtime", 4404), (f"{BETA}?model={257 * 'm'}", 4404)],
)
def test_a_socket_without_an_agent_closes_with_an_error(
    realtime: Realtime, path: str, code: int
) -> None:
    client = realtime(path, is_open=False)

    assert client.next()["error"]["code"] == "agent_not_found"
    with pytest.raises(ConnectionClosed):
        client.next()
    assert client.socket.close_code == code


def test_a_host_that_is_not_served_is_refused(demo: ServerAddress, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    sock = socket.create_connection(("127.0.0.1", int(demo.ws.rpartition(":")[2])))

    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://other.example/{GA}", sock=sock, proxy=None)

    assert refused.value.response.status_code == 403
