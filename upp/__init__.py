"""Unified Provider Protocol 1.3: one interface to every model, independent of this server.

Types and the tool loop are here, vendors in `upp.providers`. Names are UPP's in snake_case; JSON
uses UPP's camelCase.
"""

from upp.config.keys import DynamicKey, KeyStrategy, RoundRobinKeys, WeightedKeys, mask_key
from upp.config.provider_config import ProviderConfig
from upp.config.retry import (
    ExponentialBackoff,
    LinearBackoff,
    NoRetry,
    RetryAfterStrategy,
    RetryStrategy,
    TokenBucket,
)
from upp.conversation.media import Audio, Document, Image, Video
from upp.conversation.messages import (
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
from upp.conversation.thread import Thread, ThreadJSON
from upp.conversation.turn import TokenUsage, Turn
from upp.errors import ErrorCode, TooManyRoundsError, UPPError
from upp.llm import LLMInstance, LLMOptions, llm
from upp.middleware.chain import Middleware, MiddlewareContext
from upp.middleware.ready import LoggingMiddleware, ParsedObjectMiddleware
from upp.model import (
    AdjustableModel,
    LLMCapabilities,
    LLMRequest,
    LLMResponse,
    Model,
    ModelReference,
)
from upp.pricing import Prices, TokenCost, cost
from upp.stream import EventDelta, Following, StreamEvent, StreamEventType, StreamResult
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

__all__ = [
    "AdjustableModel",
    "AfterCallResult",
    "AssistantMessage",
    "Audio",
    "AudioBlock",
    "Base64Source",
    "BeforeCallResult",
    "BinaryBlock",
    "BytesSource",
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
    "TokenCost",
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
