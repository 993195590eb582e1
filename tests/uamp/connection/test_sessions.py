"""Sessions of a connection."""

import json
from typing import Any

import pytest

import uamp
from tests.uamp.connection.pairs import Pair, created, hear, refuse, serving
from uamp import Connection, ErrorCode, LocalProtocolError, RemoteProtocolError
from uamp.documents.examples import EXAMPLES
from uamp.events import CLIENT_EVENTS


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "input.text", "text": "a"},
        {"type": "response.create"},
        {"type": "session.update"},
        {"type": "session.end"},
        {"type": "client.capabilities", "capabilities": {}},
    ],
)
def test_session_create_comes_first(frame: dict[str, Any]) -> None:
    error = refuse(Connection("server"), event_id="e", **frame)
    assert (error.code, error.event_id, error.fatal) == (ErrorCode.SESSION_REQUIRED, "e", False)
    assert (
        error.message == "Send session.create first, or specify one of your sessions in session_id."
    )


@pytest.mark.parametrize("type_name", ["ping", "capabilities.query"])
def test_some_events_need_no_session(type_name: str) -> None:
    server = Connection("server")
    assert uamp.type_of(hear(server, type=type_name)) == type_name
    assert hear(server, type=type_name, session_id="elsewhere").session_id == "elsewhere"


def test_an_unknown_event_needs_no_session() -> None:
    event = hear(Connection("server"), type="x.y", session_id="s")
    assert event == uamp.UnknownEvent(type_name="x.y", session_id="s")


def test_an_event_of_a_single_session_gets_its_id() -> None:
    assert hear(serving("s"), type="input.text", text="a").session_id == "s"
    assert hear(serving("s"), type="input.text", text="a", session_id="s").session_id == "s"


def test_several_sessions_must_be_named() -> None:
    server = serving("s1", "s2")
    assert hear(server, type="input.text", text="a", session_id="s2").session_id == "s2"
    error = refuse(server, type="input.text", text="a", event_id="e")
    assert (error.code, error.event_id) == (ErrorCode.SESSION_REQUIRED, "e")
    assert "specify one of them in session_id" in error.message
    assert refuse(server, type="session.end").code == ErrorCode.SESSION_REQUIRED
    assert server.sessions == ("s1", "s2")


def test_an_update_may_concern_the_whole_connection() -> None:
    for server in (serving("s1"), serving("s1", "s2")):
        assert hear(server, type="session.update", token="t") == uamp.SessionUpdate(token="t")


@pytest.mark.parametrize("name", sorted(set(CLIENT_EVENTS) - {"session.create"}))
def test_a_session_elsewhere_is_unknown_to_every_event(name: str) -> None:
    event = EXAMPLES[name]
    server = serving("mine")
    frame = json.loads(uamp.encode(event)) | {"session_id": "theirs"}
    if name in {"ping", "capabilities.query", "chats.watch"}:
        assert uamp.type_of(hear(server, **frame)) == name
        return
    error = refuse(server, **frame)
    assert (error.code, error.session_id) == (ErrorCode.UNKNOWN_SESSION, "theirs")
    assert server.sessions == ("mine",)


def test_an_ended_session_is_unknown(pair: Pair) -> None:
    pair.open("s1")
    pair.open("s2")
    pair.ask(uamp.SessionEnd(session_id="s1"))
    assert (pair.client.sessions, pair.server.sessions) == (("s2",), ("s2",))
    with pytest.raises(RemoteProtocolError) as caught:
        pair.ask(uamp.InputText(text="a", session_id="s1"))
    assert caught.value.code == ErrorCode.UNKNOWN_SESSION
    assert pair.ask(uamp.InputText(text="a")).session_id == "s2"


@pytest.mark.parametrize("session_id", ["s", None])
def test_either_side_ends_a_session(session_id: str | None) -> None:
    for by_client in (True, False):
        pair = Pair()
        pair.open("s")
        end = uamp.SessionEnd(session_id=session_id)
        received = pair.ask(end) if by_client else pair.answer(end)
        assert uamp.type_of(received) == "session.end"
        assert (pair.client.sessions, pair.server.sessions) == ((), ())


def test_an_end_may_get_its_session_as_it_is_sent() -> None:
    server = serving("s1", "s2")
    server.send(uamp.SessionEnd(), event_id="x", timestamp=1, session_id="s1")
    assert server.sessions == ("s2",)


def test_an_end_without_a_session_ends_nothing_where_several_are_open() -> None:
    client = Connection("client")
    client.attach("s1")
    client.attach("s2")
    client.receive('{"type":"session.end"}', now=0.0)
    assert client.sessions == ("s1", "s2")


def test_a_session_that_is_open_is_not_created_again() -> None:
    server = serving("s")
    error = refuse(server, type="session.create", session={"id": "s"}, event_id="e")
    assert (error.code, error.event_id) == (ErrorCode.SESSION_EXISTS, "e")
    error = refuse(server, type="session.create", resume={"session_id": "s"})
    assert error.code == ErrorCode.SESSION_EXISTS
    error = refuse(server, type="session.create", session={"id": "s"}, resume={"after": 3})
    assert error.code == ErrorCode.SESSION_EXISTS
    assert uamp.type_of(hear(server, type="session.create", session={"id": "t"})) == (
        "session.create"
    )
    server.detach("s")
    resumed = hear(server, type="session.create", resume={"session_id": "s", "after": 3})
    assert resumed == uamp.SessionCreate(resume=uamp.Resume(session_id="s", after=3))


def test_a_connection_has_64_sessions_and_no_more() -> None:
    server = serving(*(f"s{n}" for n in range(63)))
    hear(server, type="session.create")
    server.send(created("s63"), event_id="x", timestamp=1)
    assert refuse(server, type="session.create").code == ErrorCode.TOO_MANY_SESSIONS


def test_this_side_does_not_create_a_session_twice() -> None:
    server = serving("s")
    with pytest.raises(LocalProtocolError):
        server.send(created("s"), event_id="x", timestamp=1)


def test_a_detached_session_is_forgotten_and_may_be_detached_again() -> None:
    server = serving("s")
    server.detach("s")
    server.detach("s")
    assert server.sessions == ()
