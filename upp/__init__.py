"""Unified Provider Protocol 1.3: one way to talk to every model, with nothing of ours in it.

Types and loop here, vendors in `upp.providers`; names are UPP's in snake_case, and JSON
is UPP's camelCase.
"""

from upp.config import ProviderConfig
from upp.errors import ErrorCode, TooManyRoundsError, UPPError
from upp.keys import DynamicKey, KeyStrategy, RoundRobinKeys, WeightedKeys, mask_key
from upp.llm import LLMInstance, LLMOptions, llm
from upp.media import Audio, Document, Image, Video
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
from upp.middleware import Middleware, MiddlewareContext
from upp.model import LLMCapabilities, LLMRequest, LLMResponse, Model, ModelReference
from upp.pricing import Cost, Prices, cost
from upp.ready_middleware import LoggingMiddleware, ParsedObjectMiddleware
from upp.retry import (
    ExponentialBackoff,
    LinearBackoff,
    NoRetry,
    RetryAfterStrategy,
    RetryStrategy,
    TokenBucket,
)
from upp.stream import EventDelta, Following, StreamEvent, StreamEventType, StreamResult
from upp.thread import Thread, ThreadJSON
from upp.tools import (
    AfterCallResult,
    BeforeCallResult,
    Tool,
    ToolCall,
    ToolExecution,
    ToolResult,
    ToolUseStrategy,
    current_tool_call,
)
from upp.turn import TokenUsage, Turn

__all__ = [
    "AfterCallResult",
    "AssistantMessage",
    "Audio",
    "AudioBlock",
    "Base64Source",
    "BeforeCallResult",
    "BinaryBlock",
    "BytesSource",
    "Cost",
    "Document",
    "DocumentBlock",
    "DynamicKey",
    "ErrorCode",
    "EventDelta",
    "ExponentialBackoff",
    "Following",
    "Image",
    "ImageBlock",
    "InferenceInput",
    "KeyStrategy",
    "LLMCapabilities",
    "LLMInstance",
    "LLMOptions",
    "LLMRequest",
    "LLMResponse",
    "LinearBackoff",
    "LoggingMiddleware",
    "Message",
    "Middleware",
    "MiddlewareContext",
    "Model",
    "ModelReference",
    "NoRetry",
    "ParsedObjectMiddleware",
    "Prices",
    "ProviderConfig",
    "ReasoningBlock",
    "RetryAfterStrategy",
    "RetryStrategy",
    "RoundRobinKeys",
    "StreamEvent",
    "StreamEventType",
    "StreamResult",
    "TextBlock",
    "TextSource",
    "Thread",
    "ThreadJSON",
    "TokenBucket",
    "TokenUsage",
    "TooManyRoundsError",
    "Tool",
    "ToolCall",
    "ToolExecution",
    "ToolResult",
    "ToolResultMessage",
    "ToolUseStrategy",
    "Turn",
    "UPPError",
    "UrlSource",
    "UserMessage",
    "Video",
    "VideoBlock",
    "WeightedKeys",
    "cost",
    "current_tool_call",
    "llm",
    "mask_key",
]
