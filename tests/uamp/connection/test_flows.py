"""The flows printed in the specification, and version checks."""

import pytest

import uamp
from tests.uamp.connection.pairs import Pair, created, hear, refuse
from tests.uamp.spec_frames import SECTION_10_4
from uamp import Connection, ErrorCode, RemoteProtocolError


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
