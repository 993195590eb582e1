"""The codec: what is refused under which code, what is tolerated, and what is written."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

import uamp
from uamp import ErrorCode, Limits, RemoteProtocolError


def _refused(raw: str | bytes, **options: Any) -> RemoteProtocolError:
    with pytest.raises(RemoteProtocolError) as caught:
        uamp.decode(raw, **options)
    return caught.value


def _text(**members: object) -> str:
    return json.dumps({"type": "input.text", "text": "hi", **members})


@pytest.mark.parametrize("raw", ["[]", '"x"', "1", "null"])
def test_a_frame_that_is_not_an_object_is_refused(raw: str) -> None:
    error = _refused(raw)
    assert (error.code, error.event_id, error.fatal) == (ErrorCode.INVALID_EVENT, None, False)


@pytest.mark.parametrize("frame", [{}, {"type": 1}, {"type": ""}, {"type": None}])
def test_a_frame_without_a_type_is_refused_with_its_ids(frame: dict[str, object]) -> None:
    error = _refused(json.dumps({**frame, "event_id": "e", "session_id": "s", "response_id": "r"}))
    assert error.code == ErrorCode.INVALID_EVENT
    assert (error.event_id, error.session_id, error.response_id) == ("e", "s", "r")


def test_a_missing_member_is_named() -> None:
    error = _refused('{"type": "input.text", "event_id": "e"}')
    assert (error.code, error.event_id) == (ErrorCode.INVALID_EVENT, "e")
    assert error.message == "input.text: Object missing required field `text`"


def test_a_member_of_the_wrong_type_is_named() -> None:
    error = _refused('{"type": "input.text", "text": 1, "session_id": 3}')
    assert error.message.startswith("input.text: Expected `str")
    assert error.session_id is None


def test_a_wrong_type_is_not_coerced() -> None:
    assert _refused('{"type":"input.typing","is_typing":"true"}').code == ErrorCode.INVALID_EVENT


@pytest.mark.parametrize("name", ["event_id", "session_id", "response_id"])
def test_an_id_may_have_128_characters_and_no_more(name: str) -> None:
    frame = {"type": "response.cancel", name: "x" * 128}
    assert getattr(uamp.decode(json.dumps(frame)), name) == "x" * 128
    for bad in ("x" * 129, ""):
        error = _refused(json.dumps({**frame, name: bad}))
        assert error.code == ErrorCode.INVALID_EVENT
        assert error.message == f"{name} must have 1 to 128 characters"
        assert getattr(error, name) is None


def test_unknown_fields_are_dropped() -> None:
    assert uamp.decode('{"type":"ping","x":1,"event_id":"p"}') == uamp.Ping(event_id="p")


@pytest.mark.parametrize(
    "type_name", ["extension.message", "input.audio_committed", "system.stop", "response.done"]
)
def test_an_event_that_a_client_does_not_send_is_unknown(type_name: str) -> None:
    frame = json.dumps({"type": type_name, "event_id": 5, "session_id": "s", "payload": {}})
    assert uamp.decode(frame) == uamp.UnknownEvent(type_name=type_name, session_id="s")


def test_the_name_of_an_unknown_event_is_cut() -> None:
    event = uamp.decode(json.dumps({"type": "x" * 300, "event_id": "e"}))
    assert event == uamp.UnknownEvent(type_name="x" * 128, event_id="e")


def test_content_items_of_unknown_types_are_dropped() -> None:
    items = [{"type": "html", "html": "<b>"}, {"type": "text", "text": "a"}, {"type": "widget"}]
    messages = [{"role": "user", "content_items": items}]
    event = uamp.decode(_text(messages=messages))
    assert isinstance(event, uamp.InputText)
    assert event.messages == (
        uamp.Message(role="user", content_items=(uamp.TextContent(text="a"),)),
    )


def test_unknown_items_inside_a_tool_result_are_dropped() -> None:
    result = {"call_id": "c", "result": "1", "content_items": [{"type": "html"}]}
    done = {"id": "r", "status": "completed", "output": [{"type": "tool_result"}]}
    done["output"] = [{"type": "tool_result", "tool_result": result}]
    event = uamp.decode(json.dumps({"type": "response.done", "response": done}), sender="server")
    assert isinstance(event, uamp.ResponseDone)
    assert event.response is not None
    assert event.response.output == (
        uamp.ToolResultContent(
            tool_result=uamp.ToolResultData(call_id="c", result="1", content_items=())
        ),
    )


def test_a_broken_item_of_a_known_type_is_refused() -> None:
    messages = [{"role": "user", "content_items": [{"type": "image"}]}]
    assert _refused(_text(messages=messages)).code == ErrorCode.INVALID_EVENT
    assert _refused(_text(messages=[{"role": "user", "content_items": ["x"]}])).code == (
        ErrorCode.INVALID_EVENT
    )


def test_a_null_member_is_an_absent_one() -> None:
    assert uamp.decode(_text(role=None)) == uamp.InputText(text="hi")


def test_nulls_in_free_form_members_are_kept() -> None:
    event = uamp.decode(_text(role=None, context={"a": None}))
    assert event == uamp.InputText(text="hi", context={"a": None})


def test_a_history_has_500_messages_and_no_more() -> None:
    message = {"role": "user", "content": "a"}
    event = uamp.decode(_text(messages=[message] * 500))
    assert isinstance(event, uamp.InputText)
    error = _refused(_text(messages=[message] * 501, event_id="e"))
    assert (error.code, error.event_id) == (ErrorCode.TOO_MANY_ITEMS, "e")
    create = {"type": "response.create", "response": {"messages": [message] * 501}}
    assert _refused(json.dumps(create)).code == ErrorCode.TOO_MANY_ITEMS


@pytest.mark.parametrize(
    ("type_name", "member"),
    [
        ("session.create", "session"),
        ("session.update", "session"),
        ("response.create", "response"),
    ],
)
def test_an_event_declares_128_tools_and_no_more(type_name: str, member: str) -> None:
    tools = [{"type": "function", "function": {"name": f"t{i}"}} for i in range(129)]
    uamp.decode(json.dumps({"type": type_name, member: {"tools": tools[:128]}}))
    error = _refused(json.dumps({"type": type_name, member: {"tools": tools}}))
    assert error.code == ErrorCode.TOO_MANY_ITEMS


def test_a_tool_schema_has_a_limit() -> None:
    limits = Limits(tool_schema_bytes=18)
    frame = (
        '{"type":"session.update","session":{"tools":'
        '[{"type":"function","function":{"name":"a","parameters":{"type":"%s"}}},'
        '{"type":"web_search"}]}}'
    )
    uamp.decode(frame % "objects", limits=limits)
    assert _refused(frame % "objectss", limits=limits).code == ErrorCode.EVENT_TOO_LARGE


def test_a_tool_name_has_a_limit() -> None:
    limits = Limits(tool_name_chars=4)
    frame = (
        '{"type":"session.update","session":{"tools":'
        '[{"type":"function","function":{"name":"%s"}}]}}'
    )
    uamp.decode(frame % "look", limits=limits)
    refused = _refused(frame % "looks", limits=limits)
    assert (refused.code, refused.message) == (
        ErrorCode.INVALID_EVENT,
        "a tool's name may have at most 4 characters",
    )


def test_an_update_without_a_session_declares_nothing() -> None:
    assert uamp.decode('{"type":"session.update"}') == uamp.SessionUpdate()
    assert uamp.decode('{"type":"response.create"}') == uamp.ResponseCreate()


def _padded(frame: Mapping[str, object], name: str, size: int) -> str:
    """Return the frame with exactly ``size`` bytes, padded in ``name``."""
    text = json.dumps({**frame, name: ""}, separators=(",", ":"))
    return json.dumps({**frame, name: "x" * (size - len(text))}, separators=(",", ":"))


def test_an_event_without_media_has_a_size_limit() -> None:
    limits = Limits(event_bytes=1000, string_bytes=900)
    frame: dict[str, object] = {"type": "input.text", "event_id": "e", "a": "x" * 500}
    uamp.decode(_padded(frame, "text", 1000), limits=limits)
    error = _refused(_padded(frame, "text", 1001), limits=limits)
    assert (error.code, error.event_id) == (ErrorCode.EVENT_TOO_LARGE, "e")


def test_an_event_with_a_history_may_be_larger() -> None:
    limits = Limits(event_bytes=500, messages_bytes=1000, string_bytes=450)
    history = [{"role": "user", "content": "x" * 400}, {"role": "user", "content": "x" * 400}]
    for frame, name in (
        ({"type": "input.text", "messages": history}, "text"),
        ({"type": "response.create", "response": {"messages": history}}, "event"),
    ):
        uamp.decode(_padded(frame, name, 1000), limits=limits)
        error = _refused(_padded(frame, name, 1001), limits=limits)
        assert error.code == ErrorCode.EVENT_TOO_LARGE


def test_media_do_not_count_to_the_size_of_an_event() -> None:
    limits = Limits(event_bytes=500, string_bytes=500, media_bytes=5000)
    event = uamp.decode(json.dumps({"type": "input.image", "image": "A" * 5000}), limits=limits)
    assert event == uamp.InputImage(image="A" * 5000)
    assert (
        _refused(json.dumps({"type": "input.image", "image": "A" * 5001}), limits=limits).code
        == ErrorCode.STRING_TOO_LONG
    )


def test_an_event_that_carries_no_media_cannot_hide_size_in_media_members() -> None:
    limits = Limits(event_bytes=500, string_bytes=500, media_bytes=5000)
    frame = {"type": "session.create", "session": {"extensions": {"url": "x" * 600}}}
    assert _refused(json.dumps(frame), limits=limits).code == ErrorCode.EVENT_TOO_LARGE


def test_a_tool_result_may_add_its_own_limit_to_the_event() -> None:
    limits = Limits(event_bytes=300, tool_result_bytes=200, string_bytes=600)
    frame: dict[str, object] = {"type": "tool.result", "call_id": "c"}
    uamp.decode(_padded(frame, "result", 500), limits=limits)
    error = _refused(_padded(frame, "result", 501), limits=limits)
    assert error.code == ErrorCode.EVENT_TOO_LARGE


def test_bytes_decode_as_text_does() -> None:
    assert uamp.decode(_text().encode()) == uamp.InputText(text="hi")


def test_given_values_fill_only_what_an_event_lacks() -> None:
    bare = uamp.encode(uamp.Ping(), event_id="e", timestamp=5, session_id="s", seq=7)
    assert bare == '{"type":"ping","event_id":"e","timestamp":5,"session_id":"s","seq":7}'
    full = uamp.Ping(event_id="own", timestamp=1, session_id="mine", seq=2)
    assert uamp.encode(full, event_id="e", timestamp=5, session_id="s", seq=7) == (
        '{"type":"ping","event_id":"own","timestamp":1,"session_id":"mine","seq":2}'
    )


def test_an_unknown_event_is_not_sent() -> None:
    with pytest.raises(uamp.LocalProtocolError):
        uamp.encode(uamp.UnknownEvent(type_name="x"))


@pytest.mark.parametrize("bad", [{"a": object()}, {"a": "\ud800"}])
def test_what_json_cannot_hold_is_not_sent(bad: dict[str, object]) -> None:
    with pytest.raises(uamp.LocalProtocolError):
        uamp.encode(uamp.InputText(text="a", context=bad))


def test_an_event_is_reported_as_plain_values() -> None:
    event = uamp.text_delta("r", "a", 1)
    assert uamp.to_dict(event) == json.loads(uamp.encode(event))


@pytest.mark.parametrize(
    "event",
    [
        uamp.Ping(),
        uamp.Ping(event_id='a"\\b'),
        uamp.Ping(event_id="e", timestamp=1.5, seq=3),
        uamp.text_delta("r", '","session_id":"', 0),
        uamp.ResponseDelta(event_id="e", timestamp=1, delta=uamp.Delta(type="text", text="{")),
    ],
)
def test_a_stamped_frame_is_the_frame_with_its_session(event: uamp.Event) -> None:
    stamped = uamp.stamp_session(uamp.encode(event), uamp.session_stamp('se"ss'))
    assert stamped == uamp.encode(event, session_id='se"ss')


@pytest.mark.parametrize("frame", ['{"type":"ping","session_id":"s"}', '{"a":1}', ""])
def test_only_an_encoded_frame_without_a_session_is_stamped(frame: str) -> None:
    with pytest.raises(uamp.LocalProtocolError):
        uamp.stamp_session(frame, "x")
