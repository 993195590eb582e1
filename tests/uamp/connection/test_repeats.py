"""Repeated events, and remembered replies."""

from typing import Any

import pytest

import uamp
from tests.uamp.connection.pairs import created, hear, refuse, serving
from uamp import Connection, ErrorCode


def test_a_repeated_event_is_answered_again_and_not_handled_again() -> None:
    server = Connection("server")
    frame: dict[str, Any] = {"type": "session.create", "event_id": "e1", "timestamp": 1}
    hear(server, **frame)
    first = server.send(created("s"), event_id="a1", timestamp=1, in_reply_to="e1")
    second = server.send(
        uamp.CapabilitiesAnnounced(capabilities=uamp.Capabilities()),
        event_id="a2",
        timestamp=1,
        session_id="s",
        in_reply_to="e1",
    )
    again = hear(server, **(frame | {"timestamp": 2}))
    assert isinstance(again, uamp.Repeated)
    assert again.replies == (first, second)
    assert again.event == uamp.SessionCreate(event_id="e1", timestamp=2)
    assert server.sessions == ("s",)


def test_an_event_id_with_another_body_is_a_conflict() -> None:
    server = serving("s")
    hear(server, type="input.text", text="a", event_id="e1")
    error = refuse(server, type="input.text", text="b", event_id="e1")
    assert (error.code, error.event_id) == (ErrorCode.EVENT_ID_CONFLICT, "e1")
    other_type = refuse(server, type="response.create", event_id="e1")
    assert other_type.code == ErrorCode.EVENT_ID_CONFLICT


def test_sessions_do_not_share_event_ids() -> None:
    server = serving("s1", "s2")
    for session in ("s1", "s2"):
        event = hear(server, type="input.text", text=session, event_id="e", session_id=session)
        assert isinstance(event, uamp.InputText)


def test_events_without_an_id_are_each_handled() -> None:
    server = serving("s")
    for _ in range(2):
        assert isinstance(hear(server, type="input.text", text="a"), uamp.InputText)


def test_a_refused_event_leaves_no_trace() -> None:
    server = Connection("server")
    refuse(server, type="session.end", event_id="e")
    refuse(server, type="input.text", text="a", event_id="e")
    server.attach("s")
    event = hear(server, type="input.text", text="b", event_id="e")
    assert isinstance(event, uamp.InputText)


def test_an_event_answered_with_an_error_may_be_sent_again() -> None:
    server = serving("s")
    busy = uamp.SessionError(error=uamp.ErrorDetail(code="busy", message="later"))
    hear(server, type="input.text", text="a", event_id="e")
    server.send(busy, event_id="x", timestamp=1, session_id="s", in_reply_to="e")
    assert isinstance(hear(server, type="input.text", text="a", event_id="e"), uamp.InputText)


def test_the_error_of_a_conflict_does_not_forget_the_event_that_had_the_id() -> None:
    server = serving("s")
    hear(server, type="input.text", text="a", event_id="e")
    for _ in range(2):
        error = refuse(server, type="input.text", text="b", event_id="e")
        assert error.code == ErrorCode.EVENT_ID_CONFLICT
        server.send(error.to_event(), event_id="x", timestamp=1, in_reply_to="e")
    assert isinstance(hear(server, type="input.text", text="a", event_id="e"), uamp.Repeated)


def test_an_error_after_a_good_answer_is_one_more_answer() -> None:
    server = Connection("server")
    resync = uamp.SessionError(error=uamp.ErrorDetail(code="resync", message="lost"))
    hear(server, type="session.create", event_id="e")
    replies = (
        server.send(created("s"), event_id="x", timestamp=1, in_reply_to="e"),
        server.send(resync, event_id="y", timestamp=1, session_id="s", in_reply_to="e"),
    )
    again = hear(server, type="session.create", event_id="e")
    assert isinstance(again, uamp.Repeated)
    assert again.replies == replies


def test_an_end_is_remembered_by_the_connection() -> None:
    server = serving("s")
    hear(server, type="session.end", session_id="s", event_id="e")
    again = hear(server, type="session.end", session_id="s", event_id="e")
    assert isinstance(again, uamp.Repeated)
    error = refuse(server, type="session.end", session_id="t", event_id="e")
    assert error.code == ErrorCode.EVENT_ID_CONFLICT


def test_an_ended_session_takes_its_event_ids_with_it() -> None:
    server = serving("s")
    hear(server, type="input.text", text="a", event_id="e")
    server.detach("s")
    server.attach("s")
    assert isinstance(hear(server, type="input.text", text="b", event_id="e"), uamp.InputText)


@pytest.mark.parametrize("frame", [{"type": "ping"}, {"type": "input.typing", "is_typing": True}])
def test_events_that_may_be_handled_twice_are_not_remembered(frame: dict[str, Any]) -> None:
    server = serving("s")
    for _ in range(2):
        assert uamp.type_of(hear(server, event_id="same", **frame)) == frame["type"]


@pytest.mark.parametrize("session_id", ["s", None])
def test_a_reply_is_kept_whether_or_not_it_names_the_session(session_id: str | None) -> None:
    server = serving("s")
    hear(server, type="response.create", event_id="e")
    reply = server.send(
        uamp.ResponseCreated(response_id="r"),
        event_id="x",
        timestamp=1,
        session_id=session_id,
        in_reply_to="e",
    )
    again = hear(server, type="response.create", event_id="e")
    assert isinstance(again, uamp.Repeated)
    assert again.replies == (reply,)


def test_a_reply_to_an_event_that_is_not_remembered_is_only_sent() -> None:
    server = serving("s")
    pong = server.send(uamp.Pong(), event_id="x", timestamp=1, in_reply_to="never")
    assert pong == '{"type":"pong","event_id":"x","timestamp":1}'


def test_an_event_that_is_forgotten_counts_as_never_received() -> None:
    server = serving("s")
    fields: dict[str, Any] = {"type": "input.text", "text": "a", "event_id": "e"}
    event = hear(server, **fields)
    assert isinstance(hear(server, **fields), uamp.Repeated)
    server.forget(event)
    assert isinstance(hear(server, **fields | {"text": "b"}), uamp.InputText)


def test_a_repeat_names_the_session_that_it_left_out() -> None:
    server = serving("s")
    hear(server, type="input.text", text="a", event_id="e")
    again = hear(server, type="input.text", text="a", event_id="e")
    assert isinstance(again, uamp.Repeated)
    assert again.event.session_id == "s"


@pytest.mark.parametrize("event_id", [None, "unknown"])
def test_what_was_not_remembered_can_be_forgotten(event_id: str | None) -> None:
    server = serving("s")
    server.forget(uamp.InputText(text="a", event_id=event_id, session_id="s"))
    assert server.sessions == ("s",)
