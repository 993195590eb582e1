"""Request and response of one inference (UPP-1.3 §5.5).

A provider handles one request and one response; it runs no tools and stores no conversation.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import msgspec

from upp.config.provider_config import ProviderConfig
from upp.conversation.messages import AssistantMessage, Message
from upp.conversation.turn import TokenUsage
from upp.errors import ErrorCode, UPPError
from upp.stream import Emit, Following, StreamEvent
from upp.tools import Tool


class LLMCapabilities(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The capabilities of a provider's API, whatever the model (UPP-1.3 §5.4).

    `cached_in_input` is our addition: whether input tokens include cached ones (UAMP §8.7).
    """

    streaming: bool = True
    tools: bool = True
    structured_output: bool = True
    image_input: bool = False
    document_input: bool = False
    video_input: bool = False
    audio_input: bool = False
    cached_in_input: bool = True


@dataclass(frozen=True, kw_only=True)
class LLMRequest:
    """The request for one inference; `params` are passed to the vendor unchanged."""

    messages: tuple[Message, ...]
    system: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    tools: tuple[Tool, ...] = ()
    structure: Mapping[str, Any] | None = None
    config: ProviderConfig | None = None


@dataclass(frozen=True, kw_only=True)
class LLMResponse:
    """The result of one inference and the last item of a provider's stream.

    `request_id` is the provider's id of the request, or ""; `earlier` are the errors of the
    attempts before the one that succeeded.
    """

    message: AssistantMessage
    usage: TokenUsage
    stop_reason: str
    data: Any = None
    request_id: str = ""
    earlier: tuple[UPPError, ...] = ()


class Model(Protocol):
    """A provider bound to a model, as returned by the factories in `upp.providers`."""

    @property
    def model_id(self) -> str:
        """The provider's name for the model."""

    @property
    def provider(self) -> str:
        """The name of the provider."""

    @property
    def capabilities(self) -> LLMCapabilities:
        """The capabilities of the API."""

    def stream(self, request: LLMRequest) -> AsyncGenerator[StreamEvent | LLMResponse, None]:
        """Run one inference: yield its events, then its LLMResponse.

        Closing the generator or cancelling the task that reads it closes the request. Raises
        UPPError.
        """


@runtime_checkable
class AdjustableModel(Protocol):
    """A Model that declares which options of a caller it keeps to; our addition.

    They have the names of Chat Completions, whatever the vendor calls them.
    """

    def options(self, params: Mapping[str, Any]) -> frozenset[str]:
        """Return the names of the options, for requests with some parameters."""

    def adjusted(self, params: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of a request, overridden by options; others are ignored."""


ModelReference = Model
"""The specification's name for a model returned by a provider's factory (UPP-1.3 §4.5)."""


class EmittingModel(ABC):
    """A model that passes its events to a function, so `llm()` needs no generator in between.

    If a subclass overrides `stream`, it is read through `stream` like any other Model.
    """

    @abstractmethod
    async def infer(self, request: LLMRequest, emit: Emit) -> LLMResponse:
        """Run one inference: await `emit` with each event and return the response.

        Raises UPPError and errors of `emit`. The request is closed in every case.
        """

    async def stream(self, request: LLMRequest) -> AsyncGenerator[StreamEvent | LLMResponse, None]:
        """Run one inference in a separate task; see Model."""
        work: Following[StreamEvent, LLMResponse]
        work = Following(lambda emit: self.infer(request, emit))
        async with aclosing(aiter(work)) as events:
            async for event in events:
                yield event
        yield await work


async def infer(model: Model, request: LLMRequest, emit: Emit) -> LLMResponse:
    """Run one inference of any model: await `emit` with each event and return the response.

    Raises like `EmittingModel.infer`, and UPPError INVALID_RESPONSE if a stream ends without a
    response.
    """
    stream: object = type(model).stream
    if isinstance(model, EmittingModel) and stream is EmittingModel.stream:
        return await model.infer(request, emit)
    response: LLMResponse | None = None
    async with aclosing(model.stream(request)) as items:
        async for item in items:
            if isinstance(item, StreamEvent):
                await emit(item)
            else:
                response = item
    if response is None:
        raise UPPError(
            "The provider's stream ended without a response.",
            code=ErrorCode.INVALID_RESPONSE,
            provider=model.provider,
        )
    return response


def metadata_entry(message: Message, namespace: str) -> dict[str, Any]:
    """Return a provider's entry in a message's metadata; empty if it is not an object.

    A message may come from a database or from another program.
    """
    entry = message.metadata.get(namespace)
    return entry if isinstance(entry, dict) else {}


def layout_of(message: Message, namespace: str) -> list[dict[str, Any]]:
    """Return the layout of a message's parts, as stored by a provider."""
    layout = metadata_entry(message, namespace).get("layout")
    return [part for part in layout if isinstance(part, dict)] if isinstance(layout, list) else []


def structured_data(message: AssistantMessage, structure: Mapping[str, Any] | None) -> Any:
    """Parse an answer's text as JSON if a structure was requested (UPP-1.3 §12).

    Returns None without a structure, with tool calls, or if the text is not JSON. Does not
    validate.
    """
    if structure is None or message.tool_calls:
        return None
    try:
        return msgspec.json.decode(message.text)
    except (msgspec.DecodeError, RecursionError):
        return None


def wants_any_object(structure: Mapping[str, Any]) -> bool:
    """Return whether a schema only asks for «an object», the mode without a schema."""
    return dict(structure) == {"type": "object"}
