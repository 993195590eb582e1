"""Connections: a client and a server object that talk to each other in memory."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import uamp
from tests.uamp.spec_frames import SECTION_10_4
from uamp import Connection, ErrorCode, Limits, LocalProtocolError, RemoteProtocolError
from uamp.documents.examples import EXAMPLES
from uamp.events import CLIENT_EVENTS


@dataclass
class Pair:
    """Both ends of one connection; each sends what the other then receives."""

    client: Connection = field(default_factory=lambda: Connection("client"))
    server: Connection = field(default_factory=lambda: Connection("server"))
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def ask(self, event: uamp.Event, **options: Any) -> uamp.Event:
        """Send from the client; return what the server receives."""
        return self._pass(self.client, self.server, event, **options)

    def answer(self, event: uamp.Event, **options: Any) -> uamp.Event:
        """Send from the server; return what the client receives."""
        return self._pass(self.server, self.client, event, **options)

    def _pass(
        self, sender: Connection, receiver: Connection, event: uamp.Event, **options: Any
    ) -> uamp.Event:
        frame = sender.send(event, event_id=f"e{next(self.ids)}", timestamp=1, **options)
        [received] = receiver.receive(frame, now=0.0)
        return received

    def open(self, session_id: str, **create: Any) -> None:
        """Open a session from the client."""
        self.ask(uamp.SessionCreate(**create))
        self.answer(created(session_id))


@pytest.fixture
def pair() -> Pair:
    return Pair()


def created(session_id: str) -> uamp.SessionCreated:
    return uamp.SessionCreated(session_id=session_id, session=uamp.Session(id=session_id))


def hear(server: Connection, *, now: float = 0.0, **frame: object) -> uamp.Event:
    [event] = server.receive(json.dumps(frame), now=now)
    return event


def refuse(server: Connection, *, now: float = 0.0, **frame: object) -> RemoteProtocolError:
    with pytest.raises(RemoteProtocolError) as caught:
        server.receive(json.dumps(frame), now=now)
    return caught.value


def serving(*sessions: str, **options: Any) -> Connection:
    server = Connection("server", **options)
    for session in sessions:
        server.attach(session)
    return server


# The flows of the specification ---------------------------------------------------------------


def test_a_basic_text_chat_flows_as_printed(pair: Pair) -> None:
    received = [
        pair.ask(uamp.SessionCreate()),
        pair.answer(created("s")),
        pair.answer(uamp.CapabilitiesAnnounced(capabilities=uamp.Capabilities(id="m"))),
        pair.ask(uamp.InputText(text="hi")),
        pair.ask(uamp.ResponseCreate()),
        pair.answer(uamp.ResponseCreated(response_id="r")),
        pair.answer(uamp.text_delta("r", "he")),
        pair.answer(uamp.text_delta("r", "llo")),
        pair.answer(uamp.ResponseDone(response_id="r")),
    ]
    assert [uamp.type_of(event) for event in received] == [
        "session.create",
        "session.created",
        "capabilities",
        "input.text",
        "response.create",
        "response.created",
        "response.delta",
        "response.delta",
        "response.done",
    ]
    assert [event.event_id for event in received] == [f"e{n}" for n in range(1, 10)]
    assert (pair.client.sessions, pair.server.sessions) == (("s",), ("s",))


def test_a_chat_with_tool_calls_flows_as_printed(pair: Pair) -> None:
    pair.open("s")
    pair.ask(uamp.InputText(text="weather?"))
    pair.ask(uamp.ResponseCreate())
    pair.answer(uamp.ResponseCreated(response_id="r"))
    call = uamp.ToolCall(call_id="c", name="search", arguments="{}", event_id="x")
    assert pair.answer(call) == uamp.ToolCall(
        call_id="c", name="search", arguments="{}", event_id="x", timestamp=1
    )
    received = pair.ask(uamp.ToolResult(call_id="c", result="1", event_id="y"))
    assert received == uamp.ToolResult(
        call_id="c", result="1", event_id="y", timestamp=1, session_id="s"
    )


def test_section_10_4_works_as_printed() -> None:
    server, client = Connection("server"), Connection("client")
    received = []
    for arrow, frame in SECTION_10_4:
        if arrow == "→":
            [event] = server.receive(frame, now=0.0)
            client.send(event, event_id="x", timestamp=1)
        else:
            [event] = client.receive(frame, now=0.0)
            server.send(event, event_id="x", timestamp=1)
        received.append((uamp.type_of(event), event.session_id))
    assert received == [
        ("session.create", None),
        ("session.created", "sess_1"),
        ("session.create", None),
        ("session.created", "sess_2"),
        ("input.text", "sess_1"),
        ("response.delta", "sess_1"),
        ("session.update", "sess_1"),
        ("session.updated", "sess_1"),
    ]
    assert server.sessions == client.sessions == ("sess_1", "sess_2")


# Sessions -------------------------------------------------------------------------------------


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
    assert error.message == "Send session.create first, or name one of your sessions in session_id."


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
    assert "name one of them in session_id" in error.message
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


# Versions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.0", "1.7", "1"])
def test_minor_versions_are_compatible(version: str) -> None:
    event = hear(Connection("server"), type="session.create", uamp_version=version)
    assert event == uamp.SessionCreate(uamp_version=version)


@pytest.mark.parametrize("version", ["2.0", "0.9", "10.0", "", "one"])
def test_another_major_version_is_answered_and_closed(version: str) -> None:
    error = refuse(Connection("server"), type="session.create", uamp_version=version, event_id="e")
    assert (error.fatal, error.close_code) == (True, 4426)
    assert error.to_event() == uamp.ResponseError(
        error=uamp.ErrorDetail(
            code="version_mismatch",
            message="this side speaks UAMP 1.0",
            details={"supported": ["1.0"], "event_id": "e"},
        )
    )


def test_a_client_checks_the_version_too() -> None:
    frame = '{"type":"session.created","uamp_version":"2.0","session":{"id":"s"}}'
    client = Connection("client")
    with pytest.raises(RemoteProtocolError) as caught:
        client.receive(frame, now=0.0)
    assert caught.value.code == ErrorCode.VERSION_MISMATCH
    assert client.sessions == ()


# Repeats --------------------------------------------------------------------------------------


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


# Frames ---------------------------------------------------------------------------------------


def test_a_binary_frame_is_refused_and_an_http_body_is_not() -> None:
    server = serving("s")
    with pytest.raises(RemoteProtocolError) as caught:
        server.receive(b'{"type":"ping"}', now=0.0)
    assert (caught.value.code, caught.value.fatal) == (ErrorCode.BINARY_FRAME, False)
    assert server.receive_body(b'{"type":"ping"}', now=0.0) == [uamp.Ping()]


def test_a_frame_before_authentication_is_smaller() -> None:
    limits = Limits(unauthenticated_frame_bytes=20)
    server = Connection("server", limits, authenticated=False)
    assert server.receive('{"type":"ping"}     ', now=0.0) == [uamp.Ping()]
    with pytest.raises(RemoteProtocolError) as caught:
        server.receive('{"type":"ping"}      ', now=0.0)
    assert caught.value.close_code == 1009
    server.authenticated = True
    assert server.receive('{"type":"ping"}      ', now=0.0) == [uamp.Ping()]


def test_bad_frames_in_a_minute_are_counted() -> None:
    server = serving("s")
    for now in range(5):
        assert refuse(server, now=float(now)).fatal is False
    error = refuse(server, now=59.9, event_id="e", session_id="s")
    assert (error.code, error.fatal, error.close_code) == (
        ErrorCode.TOO_MANY_BAD_FRAMES,
        True,
        1008,
    )
    assert (error.event_id, error.session_id) == ("e", "s")


def test_bad_frames_are_forgotten_after_a_minute() -> None:
    server = serving("s")
    for now in (0.0, 1.0, 2.0, 3.0, 4.0, 60.0, 61.0):
        assert refuse(server, now=now).code == ErrorCode.INVALID_EVENT
    assert hear(server, type="ping") == uamp.Ping()


def test_a_fatal_frame_keeps_its_own_code() -> None:
    server = serving("s", limits=Limits(bad_frames_per_minute=1, frame_bytes=10))
    for _ in range(3):
        assert refuse(server, type="x" * 10).code == ErrorCode.FRAME_TOO_LARGE


def test_events_that_are_refused_in_good_frames_are_not_bad_frames() -> None:
    server = serving("s")
    for _ in range(9):
        assert refuse(server, type="input.text", text="a", session_id="x").fatal is False


# Directions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "event"),
    [
        ("server", uamp.InputText(text="a")),
        ("client", uamp.Pong()),
        ("server", uamp.SystemStop()),
        ("client", uamp.SystemStop()),
        ("client", uamp.Repeated(event=uamp.Ping())),
        ("server", uamp.UnknownEvent(type_name="x")),
    ],
)
def test_a_side_sends_only_its_own_events(role: uamp.connection.Role, event: uamp.Event) -> None:
    with pytest.raises(LocalProtocolError):
        Connection(role).send(event, event_id="x", timestamp=1)


def test_the_events_of_a_connected_agent_are_unknown_on_other_links() -> None:
    event = hear(serving("s"), type="response.delta", delta={"type": "text", "text": "a"})
    assert event == uamp.UnknownEvent(type_name="response.delta")


def test_given_values_fill_a_sent_frame() -> None:
    frame = serving("s").send(
        uamp.MessageRead(message_id="m"), event_id="x", timestamp=5, session_id="s", seq=9
    )
    assert json.loads(frame) == {
        "type": "message.read",
        "event_id": "x",
        "timestamp": 5,
        "session_id": "s",
        "seq": 9,
        "message_id": "m",
    }


def test_an_event_that_is_forgotten_counts_as_never_received() -> None:
    server = serving("s")
    said: dict[str, Any] = {"type": "input.text", "text": "a", "event_id": "e"}
    event = hear(server, **said)
    assert isinstance(hear(server, **said), uamp.Repeated)
    server.forget(event)
    assert isinstance(hear(server, **said | {"text": "b"}), uamp.InputText)


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


def test_a_server_takes_the_answers_of_an_agent_for_the_turns_that_it_gave() -> None:
    server = Connection("server")
    server.attach("s1")
    assert server.sessions == ("s1",)
    server.takes_answers = True
    frame = json.dumps(
        {
            "type": "response.delta",
            "event_id": "e1",
            "timestamp": 1,
            "session_id": "resp_1",
            "response_id": "r1",
            "delta": {"type": "text", "text": "x"},
        }
    )
    server.begin_turn("resp_1")
    [received] = server.receive(frame, now=0.0)
    assert received.session_id == "resp_1"
    server.end_turn("resp_1")
    with pytest.raises(RemoteProtocolError):
        server.receive(frame, now=0.0)
