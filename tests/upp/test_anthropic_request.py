"""Requests to Anthropic's Messages API."""

from typing import Any

import pytest

from upp import (
    AssistantMessage,
    AudioBlock,
    Base64Source,
    BytesSource,
    DocumentBlock,
    ErrorCode,
    ImageBlock,
    LLMRequest,
    Message,
    ReasoningBlock,
    TextBlock,
    TextSource,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    UPPError,
    UrlSource,
    UserMessage,
)
from upp.conversation.messages import UserContent
from upp.providers.anthropic_request import request_body

CALL = ToolCall(tool_call_id="c1", tool_name="t", arguments={"q": 1})


def messages_of(*messages: Message) -> list[dict[str, Any]]:
    body = request_body("m", LLMRequest(messages=messages), provider="anthropic")
    vendor_messages: list[dict[str, Any]] = body["messages"]
    return vendor_messages


def user(*content: UserContent) -> UserMessage:
    return UserMessage(content=content)


@pytest.mark.parametrize(
    ("block", "vendor_block"),
    [
        (
            ImageBlock(source=UrlSource(url="https://x/y.png"), mime_type="image/png"),
            {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
        ),
        (
            ImageBlock(source=BytesSource(data=b"\x00\xff"), mime_type="image/png"),
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "AP8="},
            },
        ),
        (
            DocumentBlock(
                source=Base64Source(data="AP8="), mime_type="application/pdf", title="a.pdf"
            ),
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "AP8="},
                "title": "a.pdf",
            },
        ),
        (
            DocumentBlock(source=TextSource(data="a,b"), mime_type="text/csv"),
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "a,b"},
            },
        ),
    ],
)
def test_media_have_their_shapes(block: UserContent, vendor_block: dict[str, Any]) -> None:
    assert messages_of(user(block)) == [{"role": "user", "content": [vendor_block]}]


def test_sound_cannot_be_sent() -> None:
    with pytest.raises(UPPError, match="AudioBlock of type audio/wav") as caught:
        messages_of(user(AudioBlock(data=b"", mime_type="audio/wav")))
    assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_roles_alternate_and_results_come_before_the_words_after_them() -> None:
    messages = messages_of(
        user(TextBlock(text="a")),
        user(TextBlock(text="b"), TextBlock(text=" ")),
        AssistantMessage(content=(), tool_calls=(CALL,)),
        ToolResultMessage(results=(ToolResult(tool_call_id="c1", result="r"),)),
        user(TextBlock(text="c")),
    )
    assert messages == [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "t", "input": {"q": 1}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "r"},
                {"type": "text", "text": "c"},
            ],
        },
    ]


def test_thoughts_of_others_are_not_sent() -> None:
    thought = ReasoningBlock(text="hm")
    assert messages_of(AssistantMessage(content=(thought,))) == []
    layout = [{"type": "thinking", "signature": ""}, {"type": "text"}]
    answer = AssistantMessage(
        content=(thought, TextBlock(text="a")), metadata={"anthropic": {"layout": layout}}
    )
    assert messages_of(answer) == [
        {"role": "assistant", "content": [{"type": "text", "text": "a"}]}
    ]


def test_an_outdated_layout_loses_no_words() -> None:
    layout = [
        {"type": "thinking", "signature": "s"},
        {"type": "text"},
        {"type": "text"},
        {"type": "tool_use"},
        {"type": "tool_use"},
        {"type": "something_new"},
    ]
    metadata = {"anthropic": {"layout": layout}}
    changed = AssistantMessage(
        content=(TextBlock(text="a"),), tool_calls=(CALL,), metadata=metadata
    )
    call = {"type": "tool_use", "id": "c1", "name": "t", "input": {"q": 1}}
    assert messages_of(changed)[0]["content"] == [{"type": "text", "text": "a"}, call]
    metadata = {"anthropic": {"layout": []}}
    more = AssistantMessage(content=(TextBlock(text="b"),), tool_calls=(CALL,), metadata=metadata)
    assert messages_of(more)[0]["content"] == [{"type": "text", "text": "b"}, call]
