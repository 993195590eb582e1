"""Requests to Google's Gemini API."""

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
    Message,
    ReasoningBlock,
    TextBlock,
    TextSource,
    Tool,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    UPPError,
    UrlSource,
    UserMessage,
    VideoBlock,
)
from upp.conversation.messages import UserContent
from upp.providers.google_request import request_body

CALL = ToolCall(tool_call_id="c1", tool_name="t", arguments={"q": 1})


def contents_of(*messages: Message) -> list[dict[str, Any]]:
    contents: list[dict[str, Any]] = request_body(LLMRequest(messages=messages), provider="google")[
        "contents"
    ]
    return contents


def user(*content: UserContent) -> UserMessage:
    return UserMessage(content=content)


PNG = {"inlineData": {"mimeType": "image/png", "data": "AP8="}}


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (ImageBlock(source=BytesSource(data=b"\x00\xff"), mime_type="image/png"), PNG),
        (ImageBlock(source=Base64Source(data="AP8="), mime_type="image/png"), PNG),
        (
            ImageBlock(source=UrlSource(url="gs://x/y"), mime_type="image/png"),
            {"fileData": {"mimeType": "image/png", "fileUri": "gs://x/y"}},
        ),
        (
            DocumentBlock(source=UrlSource(url="gs://x/y"), mime_type="application/pdf"),
            {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://x/y"}},
        ),
        (
            DocumentBlock(source=Base64Source(data="AP8="), mime_type="application/pdf"),
            {"inlineData": {"mimeType": "application/pdf", "data": "AP8="}},
        ),
        (DocumentBlock(source=TextSource(data="a,b"), mime_type="text/csv"), {"text": "a,b"}),
        (
            DocumentBlock(source=TextSource(data="a,b"), mime_type="text/csv", title="x.csv"),
            {"text": "x.csv:\na,b"},
        ),
        (
            AudioBlock(data=b"\x00\xff", mime_type="audio/wav"),
            {"inlineData": {"mimeType": "audio/wav", "data": "AP8="}},
        ),
        (
            VideoBlock(data=b"\x00\xff", mime_type="video/mp4"),
            {"inlineData": {"mimeType": "video/mp4", "data": "AP8="}},
        ),
    ],
)
def test_media_have_their_shapes(block: UserContent, part: dict[str, Any]) -> None:
    assert contents_of(user(block)) == [{"role": "user", "parts": [part]}]


def test_other_data_cannot_be_sent() -> None:
    with pytest.raises(UPPError, match="BinaryBlock of type x/y") as caught:
        contents_of(user(BinaryBlock(data=b"", mime_type="x/y")))
    assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_roles_alternate_and_results_find_the_names_of_their_calls() -> None:
    results = (
        ToolResult(tool_call_id="c1", result="r"),
        ToolResult(tool_call_id="lost", result="gone", is_error=True),
    )
    assert contents_of(
        user(TextBlock(text="a")),
        user(TextBlock(text="b")),
        AssistantMessage(content=(ReasoningBlock(text="hm"),)),
        AssistantMessage(content=(TextBlock(text="c"),), tool_calls=(CALL,)),
        ToolResultMessage(results=results),
    ) == [
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]},
        {
            "role": "model",
            "parts": [{"text": "c"}, {"functionCall": {"name": "t", "args": {"q": 1}}}],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "t", "response": {"result": "r"}}},
                {"functionResponse": {"name": "unknown", "response": {"error": "gone"}}},
            ],
        },
    ]


def test_an_outdated_layout_loses_no_words() -> None:
    kinds = ("text", "text", "call", "call", "something_new")
    layout = [{"type": kind} for kind in kinds]
    changed = AssistantMessage(
        content=(TextBlock(text="a"),),
        tool_calls=(CALL,),
        metadata={"google": {"layout": layout}},
    )
    call = {"functionCall": {"name": "t", "args": {"q": 1}}}
    assert contents_of(changed)[0]["parts"] == [{"text": "a"}, call]
    more = AssistantMessage(content=(TextBlock(text="b"),), tool_calls=(CALL,))
    assert contents_of(more)[0]["parts"] == [{"text": "b"}, call]


def test_a_tool_may_have_members_of_the_apis_own() -> None:
    tool = Tool(
        name="t",
        description="d",
        parameters={},
        run=str,
        metadata={"google": {"behavior": "NON_BLOCKING"}},
    )
    body = request_body(LLMRequest(messages=(), tools=(tool,)), provider="google")
    assert body["tools"][0]["functionDeclarations"][0]["behavior"] == "NON_BLOCKING"
