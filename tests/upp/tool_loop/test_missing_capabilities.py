"""Requests that need what the model's API lacks are refused."""

from typing import Any

import pytest

from tests.upp.tool_loop.scripts import broken, keeps_calling
from tests.upp.tool_scripts import tool
from upp import (
    AssistantMessage,
    AudioBlock,
    Base64Source,
    DocumentBlock,
    ErrorCode,
    ImageBlock,
    LLMCapabilities,
    Message,
    TextBlock,
    TextSource,
    UPPError,
    UserMessage,
    VideoBlock,
    llm,
)
from upp.conversation.messages import UserContent
from upp.providers.scripted import ScriptedModel

NOTHING = LLMCapabilities(streaming=False, tools=False, structured_output=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tools": [tool("t", broken)]}, "does not support tools"),
        ({"structure": {}}, "does not support structured output"),
    ],
)
def test_what_the_api_lacks_is_refused(options: dict[str, Any], message: str) -> None:
    model = ScriptedModel(script=keeps_calling, capabilities=NOTHING)
    with pytest.raises(UPPError, match=message) as caught:
        llm(model=model, **options)
    assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(UPPError, match="same name"):
        llm(model=ScriptedModel(script=keeps_calling), tools=[tool("t", broken)] * 2)


def test_streaming_is_refused_without_the_capability() -> None:
    model = llm(model=ScriptedModel(script=keeps_calling, capabilities=NOTHING))
    with pytest.raises(UPPError, match="does not support streaming"):
        model.stream([], "go")


@pytest.mark.parametrize(
    "block",
    [
        ImageBlock(source=Base64Source(data=""), mime_type="image/png"),
        DocumentBlock(source=TextSource(data=""), mime_type="text/plain"),
        AudioBlock(data=b"", mime_type="audio/wav"),
        VideoBlock(data=b"", mime_type="video/mp4"),
    ],
)
async def test_media_that_the_api_lacks_are_refused(block: UserContent) -> None:
    model = llm(model=ScriptedModel(script=keeps_calling, capabilities=NOTHING))
    history: list[Message] = [
        AssistantMessage(content=()),
        UserMessage(content=(TextBlock(text=""), block)),
    ]
    with pytest.raises(UPPError, match=type(block).__name__) as caught:
        await model.generate(history)
    assert caught.value.code == ErrorCode.INVALID_REQUEST
