"""Frames of existing clients, read as the protocol means them."""

import json
from typing import Any

import pytest

import uamp
from uamp.codec.frames import Sender


def _decode(sender: Sender = "client", **frame: Any) -> Any:
    return uamp.decode(json.dumps(frame), sender=sender)


def test_a_connected_agent_names_itself_inside_the_session() -> None:
    event = _decode(type="session.create", session={"agent": "alice", "token": "jwt"})
    assert event == uamp.SessionCreate(agent="alice", token="jwt", registers=True)


def test_credentials_leave_the_configuration() -> None:
    event = _decode(
        type="session.create",
        session={
            "id": "sess_mine",
            "payment_token": None,
            "extensions": {
                "X-Payment-Token": "ptok",
                "X-Chat-Id": "chat_1",
                "Authorization": "Bearer jwt",
                "model": "auto",
            },
        },
    )
    assert event == uamp.SessionCreate(
        token="jwt",
        payment_token="ptok",
        chat="chat_1",
        session=uamp.SessionConfig(id="sess_mine", extensions={"model": "auto"}),
    )


def test_top_level_members_win() -> None:
    event = _decode(
        type="session.create",
        agent="top",
        token="top",
        payment_token="top",
        chat="top",
        session={
            "agent": "in",
            "token": "in",
            "payment_token": "in",
            "extensions": {
                "X-Payment-Token": "ext",
                "X-Chat-Id": "ext",
                "Authorization": "Bearer ext",
            },
        },
    )
    assert event == uamp.SessionCreate(agent="top", token="top", payment_token="top", chat="top")


def test_a_credential_that_is_not_a_string_is_dropped_with_its_place() -> None:
    event = _decode(type="session.create", session={"extensions": {"Authorization": 5}})
    assert event == uamp.SessionCreate()


def test_an_update_may_carry_its_tokens_inside() -> None:
    event = _decode(type="session.update", session={"payment_token": "p", "instructions": "x"})
    assert event == uamp.SessionUpdate(
        payment_token="p", session=uamp.SessionPatch(instructions="x")
    )


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "search", "description": "d", "parameters": {"type": "object"}},
        {
            "type": "function",
            "name": "search",
            "description": "d",
            "parameters": {"type": "object"},
        },
    ],
)
def test_a_bare_function_is_a_tool(tool: dict[str, object]) -> None:
    definition = uamp.ToolDefinition(
        function=uamp.FunctionDefinition(
            name="search", description="d", parameters={"type": "object"}
        )
    )
    created = _decode(type="session.create", session={"tools": [tool]})
    assert created.session.tools == (definition,)
    response_create = _decode(
        type="response.create", response={"tools": [tool, {"type": "web_search"}]}
    )
    assert response_create.response.tools == (definition, uamp.ToolDefinition(type="web_search"))


def test_the_model_id_of_the_reference_server_is_an_id() -> None:
    event = _decode("server", type="capabilities", capabilities={"model_id": "m", "provider": "p"})
    assert (event.capabilities.id, event.capabilities.model_id) == ("m", "m")
    capabilities_event = _decode(
        type="client.capabilities", capabilities={"model_id": "m", "id": "own"}
    )
    assert capabilities_event.capabilities.id == "own"


@pytest.mark.parametrize(
    ("type_name", "members"),
    [
        ("input.typing", {"is_typing": True}),
        ("message.read", {"message_id": "m"}),
        ("voice.invite", {"call_id": "c"}),
        ("voice.accept", {"call_id": "c"}),
        ("voice.decline", {"call_id": "c"}),
        ("voice.end", {"call_id": "c"}),
        ("call.signal", {"call_id": "c", "to": "7"}),
    ],
)
def test_a_conversation_id_is_a_chat_id(type_name: str, members: dict[str, Any]) -> None:
    assert _decode(type=type_name, conversation_id="c1", **members).chat_id == "c1"
    both = _decode(type=type_name, conversation_id="c1", chat_id="c2", **members)
    assert both.chat_id == "c2"
    assert "conversation_id" not in uamp.encode(both)


def test_a_history_may_be_written_as_openai_clients_do() -> None:
    event = _decode(
        type="response.create",
        response={
            "model": "auto",
            "max_tokens": 4096,
            "temperature": 0.7,
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "what is"},
                        {"type": "image_url", "image_url": {"url": "/u", "detail": "low"}},
                        {"type": "image_url", "image_url": "data:image/png;base64,AA"},
                        {"type": "text", "text": "this?"},
                    ],
                },
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "look", "arguments": "{}"},
                        },
                        {"id": "c2", "name": "see", "arguments": "{}"},
                    ],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "ok"},
            ],
        },
    )
    assert event.response.messages == (
        uamp.Message(
            role="user",
            content="what is\nthis?",
            content_items=(
                uamp.TextContent(text="what is"),
                uamp.ImageContent(image=uamp.MediaUrl(url="/u"), detail="low"),
                uamp.ImageContent(image="data:image/png;base64,AA"),
                uamp.TextContent(text="this?"),
            ),
        ),
        uamp.Message(
            role="assistant",
            tool_calls=(
                uamp.ToolCallData(id="c1", name="look", arguments="{}"),
                uamp.ToolCallData(id="c2", name="see", arguments="{}"),
            ),
        ),
        uamp.Message(role="tool", tool_call_id="c1", content="ok"),
    )


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "session.create", "session": 5},
        {"type": "session.create", "session": {"tools": 5}},
        {"type": "session.create", "session": {"tools": [5]}},
        {"type": "session.create", "session": {"extensions": 5}},
        {"type": "session.create", "client_capabilities": 5},
        {"type": "session.update", "session": 5},
        {"type": "response.create", "response": 5},
        {"type": "input.text", "text": "a", "messages": 5},
        {"type": "input.text", "text": "a", "messages": [5]},
        {"type": "input.text", "text": "a", "messages": [{"role": "user", "content": [5]}]},
        {"type": "input.text", "text": "a", "messages": [{"role": "user", "tool_calls": [5]}]},
        {"type": "response.delta", "delta": 5},
        {"type": "response.delta", "delta": {"type": "tool_call", "tool_call": {}}},
        {"type": "response.delta", "delta": {"type": "tool_result"}},
        {"type": "response.done", "text": 5},
        {"type": "session.created"},
    ],
)
def test_what_is_simply_wrong_is_refused(frame: dict[str, Any]) -> None:
    with pytest.raises(uamp.RemoteProtocolError) as caught:
        uamp.decode(json.dumps(frame), sender="any")
    assert caught.value.code == uamp.ErrorCode.INVALID_EVENT


def test_a_connected_agent_streams_flat_tool_deltas() -> None:
    call = _decode(
        "server",
        type="response.delta",
        response_id="r",
        delta={"type": "tool_call", "call_id": "c1", "name": "search", "arguments": {"q": 1}},
    )
    assert call.delta == uamp.Delta(
        type="tool_call",
        tool_call=uamp.ToolCallData(id="c1", name="search", arguments='{"q":1}'),
    )
    result = _decode(
        "server",
        type="response.delta",
        delta={"type": "tool_result", "id": "c1", "result": ["é"], "status": "success"},
    )
    assert result.delta == uamp.Delta(
        type="tool_result",
        tool_result=uamp.ToolResultData(call_id="c1", result='["é"]', status="success"),
    )


def test_a_piece_of_a_tool_call_may_lack_its_name() -> None:
    event = _decode(
        "server",
        type="response.delta",
        delta={"type": "tool_call", "tool_call": {"id": "c1", "arguments": "{"}},
    )
    assert event.delta.tool_call == uamp.ToolCallData(id="c1", name="", arguments="{")


def test_a_tool_call_delta_without_a_call_is_left_alone() -> None:
    event = _decode("server", type="response.delta", delta={"type": "tool_call"})
    assert event.delta == uamp.Delta(type="tool_call")


def test_a_nested_tool_result_is_left_as_it_is() -> None:
    result = {"call_id": "c1", "result": "1", "status": "success"}
    event = _decode(
        "server", type="response.delta", delta={"type": "tool_result", "tool_result": result}
    )
    assert event.delta.tool_result == uamp.ToolResultData(
        call_id="c1", result="1", status="success"
    )


def test_an_agent_may_end_a_turn_without_a_response() -> None:
    event = _decode("server", type="response.done", session_id="s", response_id="r")
    assert event == uamp.ResponseDone(session_id="s", response_id="r")
    assert _decode("server", type="response.cancelled") == uamp.ResponseCancelled()


@pytest.mark.parametrize(("error", "status"), [(True, "failed"), (False, "completed")])
def test_an_agent_may_end_a_turn_with_bare_text(error: bool, status: str) -> None:  # noqa: FBT001 - parametrised
    event = _decode("server", type="response.done", text="Error: x", error=error)
    assert event.response == uamp.ResponseOutput(
        id="", status=status, output=(uamp.TextContent(text="Error: x"),)
    )


def test_the_nulls_of_the_reference_server_are_absent_members() -> None:
    item = {"type": "text", "text": "a", "audio": None, "image": None, "tool_call": None}
    event = _decode(
        "server",
        type="response.done",
        response={"id": "r", "status": "completed", "output": [item], "usage": None},
    )
    assert event.response.output == (uamp.TextContent(text="a"),)
    cancelled = _decode("server", type="response.cancelled", response_id=None)
    assert cancelled.response_id is None


URL = "https://example.com/a.png"
CONTENT = "/api/content/550e8400-e29b-41d4-a716-446655440000"


@pytest.mark.parametrize("kind", ["image", "audio", "video", "file"])
@pytest.mark.parametrize("url", [URL, CONTENT, "http://example.com/x"])
def test_a_medium_may_be_a_plain_url(kind: str, url: str) -> None:
    needed: Any = {"filename": "a", "mime_type": "a/b"} if kind == "file" else {"format": "png"}
    fields: Any = {"type": f"input.{kind}", kind: url, **needed}
    event = _decode(**fields)
    assert getattr(event, kind) == uamp.MediaUrl(url=url)
    item = {"type": kind, kind: url, **needed}
    result = {"type": "tool_result", "tool_result": {"call_id": "c", "result": "1"}}
    nested = {**result, "tool_result": {"call_id": "c", "result": "1", "content_items": [item]}}
    message = {"role": "user", "content_items": [item, nested, 5]}
    with pytest.raises(uamp.RemoteProtocolError):
        _decode(type="input.text", text="x", messages=[message])
    message["content_items"] = [item, nested, result]
    for owner in (
        _decode(type="input.text", text="x", messages=[message]).messages[0],
        _decode(type="response.create", response={"messages": [message]}).response.messages[0],
    ):
        assert getattr(owner.content_items[0], kind) == uamp.MediaUrl(url=url)
        inner = owner.content_items[1].tool_result.content_items
        assert getattr(inner[0], kind) == uamp.MediaUrl(url=url)
    answered = _decode(type="tool.result", call_id="c", result="1", content_items=[item])
    assert getattr(answered.content_items[0], kind) == uamp.MediaUrl(url=url)


@pytest.mark.parametrize(
    "data",
    [
        "/9j/4AAQSkZJRgABAQAAAQABAAD",
        "data:image/png;base64,AAAA",
        "DATA:image/png;BASE64,AAAA",
        {"url": "data:,AAAA"},
    ],
)
def test_data_stays_data(data: Any) -> None:
    event = _decode(type="input.image", image=data)
    assert event.image == (data if isinstance(data, str) else data["url"])


@pytest.mark.parametrize("url", ["HTTPS://a.b/c.png", "Http://a.b/c.png"])
def test_a_scheme_may_be_in_capitals(url: str) -> None:
    assert _decode(type="input.image", image=url).image == uamp.MediaUrl(url=url)


@pytest.mark.parametrize("role", ["wizard", "developer", "", "USER", 5, ["user"], {"a": 1}])
def test_a_role_that_the_specification_does_not_have_is_refused(role: Any) -> None:
    for fields in (
        {"type": "input.text", "text": "x", "role": role},
        {"type": "input.text", "text": "x", "messages": [{"role": role, "content": "x"}]},
        {"type": "response.create", "response": {"messages": [{"role": role, "content": "x"}]}},
    ):
        with pytest.raises(uamp.RemoteProtocolError) as refused:
            _decode(**fields)
        assert refused.value.code == "invalid_event"
        assert "role" in refused.value.message
        assert refused.value.event_type == fields["type"]


def test_a_tool_speaks_in_a_history_and_not_as_an_input() -> None:
    history = [{"role": role, "content": "x"} for role in ("system", "user", "assistant", "tool")]
    assert len(_decode(type="input.text", text="x", messages=history).messages) == 4
    with pytest.raises(uamp.RemoteProtocolError):
        _decode(type="input.text", text="x", role="tool")


@pytest.mark.parametrize(
    ("type_name", "kind"), [("voice.invite", "offer"), ("voice.accept", "answer")]
)
def test_a_description_of_a_call_may_be_its_bare_text(type_name: str, kind: str) -> None:
    event = _decode(type=type_name, sdp="v=0")
    assert event.sdp == uamp.SessionDescription(type=kind, sdp="v=0")
