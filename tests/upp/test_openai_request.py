"""Requests to an OpenAI-compatible server."""

from typing import Any

import pytest

from upp import (
    AssistantMessage,
    AudioBlock,
    Base64Source,
    BinaryBlock,
    BytesSource,
    DocumentBlock,
    ErrorCode,
    ImageBlock,
    LLMRequest,
    ReasoningBlock,
    TextBlock,
    TextSource,
    Tool,
    ToolResult,
    ToolResultMessage,
    UPPError,
    UrlSource,
    UserMessage,
    VideoBlock,
)
from upp.conversation.messages import UserContent
from upp.providers.openai_request import request_body


def body(**request: Any) -> dict[str, Any]:
    return request_body("m1", LLMRequest(**{"messages": (), **request}), provider="p")


def part(block: UserContent) -> Any:
    """Return the part that stands for a block, beside a text."""
    message = UserMessage(content=(TextBlock(text="see"), block))
    content = body(messages=(message,))["messages"][0]["content"]
    assert content[0] == {"type": "text", "text": "see"}
    return content[1]


def test_the_callers_parameters_are_kept() -> None:
    request_json = body(
        system="be kind",
        params={
            "temperature": 0.5,
            "stream": False,
            "stream_options": {"include_usage": False, "x": 1},
            "tools": [{"type": "web_search"}],
        },
        tools=(
            Tool(
                name="t",
                description="d",
                parameters={},
                run=print,
                metadata={"openai": {"strict": True}},
            ),
        ),
        structure={"type": "array"},
    )
    assert request_json == {
        "temperature": 0.5,
        "model": "m1",
        "messages": [{"role": "system", "content": "be kind"}],
        "stream": True,
        "stream_options": {"include_usage": False, "x": 1},
        "tools": [
            {"type": "web_search"},
            {
                "type": "function",
                "function": {"name": "t", "description": "d", "parameters": {}, "strict": True},
            },
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": {"type": "array"}},
        },
    }


def test_a_response_format_of_the_caller_goes_first() -> None:
    request_json = body(params={"response_format": {"type": "json_object"}}, structure={})
    assert request_json["response_format"] == {"type": "json_object"}


def test_messages_keep_their_roles() -> None:
    request_json = body(
        messages=(
            UserMessage(content=(TextBlock(text="hi"),)),
            AssistantMessage(content=(ReasoningBlock(text="hm"), TextBlock(text="yes"))),
            AssistantMessage(content=(ReasoningBlock(text="only thoughts"),)),
            ToolResultMessage(
                results=(
                    ToolResult(tool_call_id="a", result="text"),
                    ToolResult(tool_call_id="b", result=[1]),
                )
            ),
        )
    )
    assert request_json["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "yes"},
        {"role": "tool", "tool_call_id": "a", "content": "text"},
        {"role": "tool", "tool_call_id": "b", "content": "[1]"},
    ]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (
            ImageBlock(source=Base64Source(data="QQ=="), mime_type="image/png"),
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
        ),
        (
            ImageBlock(source=BytesSource(data=b"A"), mime_type="image/png"),
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
        ),
        (
            ImageBlock(source=UrlSource(url="https://x/a.png"), mime_type="image/png"),
            {"type": "image_url", "image_url": {"url": "https://x/a.png"}},
        ),
        (
            DocumentBlock(source=TextSource(data="a,b"), mime_type="text/csv", title="t.csv"),
            {"type": "text", "text": "t.csv:\na,b"},
        ),
        (
            DocumentBlock(source=TextSource(data="a"), mime_type="text/plain"),
            {"type": "text", "text": "a"},
        ),
        (
            DocumentBlock(source=Base64Source(data="QQ=="), mime_type="application/pdf"),
            {
                "type": "file",
                "file": {
                    "filename": "document.pdf",
                    "file_data": "data:application/pdf;base64,QQ==",
                },
            },
        ),
        (
            AudioBlock(data=b"A", mime_type="audio/mpeg"),
            {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "mp3"}},
        ),
    ],
)
def test_a_block_has_its_part(block: UserContent, expected: dict[str, Any]) -> None:
    assert part(block) == expected


@pytest.mark.parametrize(
    "block",
    [
        DocumentBlock(source=UrlSource(url="https://x"), mime_type="application/pdf"),
        AudioBlock(data=b"", mime_type="audio/flac"),
        VideoBlock(data=b"", mime_type="video/mp4"),
        BinaryBlock(data=b"", mime_type="application/zip"),
    ],
)
def test_a_block_that_has_no_part_is_refused(block: UserContent) -> None:
    with pytest.raises(UPPError, match=type(block).__name__) as caught:
        part(block)
    assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_any_object_is_asked_for_without_a_schema() -> None:
    assert body(structure={"type": "object"})["response_format"] == {"type": "json_object"}


CLOSED = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
NAMED = {**CLOSED, "properties": {"a": {"type": "string"}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("structure", "strict"),
    [
        (CLOSED, True),
        (NAMED, True),
        ({**NAMED, "properties": {"a": {"type": "array", "items": NAMED}}}, True),
        ({**NAMED, "properties": {"a": {"anyOf": [NAMED, {"type": "null"}]}}}, True),
        ({**NAMED, "$defs": {"b": NAMED}, "properties": {"a": {"$ref": "#/$defs/b"}}}, True),
        ({"type": "array", "items": NAMED}, False),
        ({**NAMED, "required": []}, False),
        ({"type": "object", "properties": {"a": {}}, "required": ["a"]}, False),
        ({**NAMED, "properties": {"a": {"type": ["object", "null"]}}}, False),
        ({**NAMED, "properties": {"a": {"oneOf": [{"type": "null"}]}}}, False),
        ({**NAMED, "properties": {"a": True}}, False),
        ({**NAMED, "properties": []}, False),
        ({**NAMED, "$defs": []}, False),
    ],
)
def test_the_api_holds_its_model_to_a_schema_that_it_can_take_as_strict(
    structure: dict[str, Any], *, strict: bool
) -> None:
    json_schema = body(structure=structure)["response_format"]["json_schema"]
    assert json_schema["schema"] == structure
    assert json_schema.get("strict", False) is strict
