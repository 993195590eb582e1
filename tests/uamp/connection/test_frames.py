"""Frames that are refused, and events from the wrong side."""

import json

import pytest

import uamp
from tests.uamp.connection.pairs import hear, refuse, serving
from uamp import Connection, ErrorCode, Limits, LocalProtocolError, RemoteProtocolError


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
