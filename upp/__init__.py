"""Unified Provider Protocol 1.3: one way to talk to every model, with nothing of ours in it.

The law: types and loop here, vendors in `upp.providers`; names are UPP's in snake_case, and JSON
is UPP's camelCase.
"""

from upp.errors import ErrorCode, TooManyRoundsError, UPPError
from upp.llm import LLMCapabilities, LLMInstance, LLMRequest, LLMResponse, Model, llm
from upp.messages import (
    AssistantMessage,
    AudioBlock,
    Base64Source,
    BinaryBlock,
    BytesSource,
    DocumentBlock,
    ImageBlock,
    InferenceInput,
    Message,
    ReasoningBlock,
    TextBlock,
    TextSource,
    ToolResultMessage,
    UrlSource,
    UserMessage,
    VideoBlock,
)
from upp.stream import EventDelta, StreamEvent, StreamResult
from upp.tools import Tool, ToolCall, ToolExecution, ToolResult, current_tool_call
from upp.turn import TokenUsage, Turn

__all__ = [
    "AssistantMessage",
    "AudioBlock",
    "Base64Source",
    "BinaryBlock",
    "BytesSource",
    "DocumentBlock",
    "ErrorCode",
    "EventDelta",
    "ImageBlock",
    "InferenceInput",
    "LLMCapabilities",
    "LLMInstance",
    "LLMRequest",
    "LLMResponse",
    "Message",
    "Model",
    "ReasoningBlock",
    "StreamEvent",
    "StreamResult",
    "TextBlock",
    "TextSource",
    "TokenUsage",
    "TooManyRoundsError",
    "Tool",
    "ToolCall",
    "ToolExecution",
    "ToolResult",
    "ToolResultMessage",
    "Turn",
    "UPPError",
    "UrlSource",
    "UserMessage",
    "VideoBlock",
    "current_tool_call",
    "llm",
]
