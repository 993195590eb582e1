"""The limits of one model: the ids and the number of its calls, and the tokens of its answer.

A model may write anything, and any number of it. An id stays as it is where it fits a row
and means one call of the conversation; any other call gets an id of this server before an event
names it. Each call costs a row, a worker or another agent, so that only some of one answer run. No
inference is asked for more tokens than the answer has left.
"""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from uuid import uuid4

from msgspec.structs import replace as changed

from agents_app.providers.clients import at_most
from telemetry import metrics, spans
from uamp.storable_text import storable
from upp import (
    AssistantMessage,
    LLMCapabilities,
    LLMRequest,
    LLMResponse,
    Message,
    Model,
    ToolCall,
)
from upp.model import EmittingModel, infer
from upp.stream import Emit

CALLS_AT_ONCE = 32
"""So many calls of one answer of a model are run."""
NAME_CHARS = 128
TOKENS_COUNTED = 10**12
"""So many tokens of one inference are in the metrics at most; what is paid has its own bound."""
_ID = re.compile(r"[!-~]{1,128}")


@dataclass
class Tokens:
    """How many tokens an answer may write, None for any number, and how many it has written."""

    most: int | None = None
    written: int = 0


@dataclass(frozen=True)
class OrderlyModel(EmittingModel):
    """A model whose every call has an id of its own and a name that can be kept.

    `surplus` are the ids of calls that are not to be run. With `keeps_ids` an id of the model's own
    stays where it fits; else each call gets one that is unique on this server. `sent` is called
    when an inference is sent, and `answered` when its provider has answered it.
    """

    model: Model
    tokens: Tokens = field(default_factory=Tokens)
    surplus: set[str] = field(default_factory=set)
    keeps_ids: bool = True
    sent: Callable[[LLMRequest], None] | None = None
    answered: Callable[[], None] | None = None

    @property
    def model_id(self) -> str:
        """See Model."""
        return self.model.model_id

    @property
    def provider(self) -> str:
        """See Model."""
        return self.model.provider

    @property
    def capabilities(self) -> LLMCapabilities:
        """See Model."""
        return self.model.capabilities

    async def infer(self, request: LLMRequest, emit: Emit) -> LLMResponse:
        """See Model. The events are the model's own; the calls of its last message are executed."""
        if self.tokens.most is not None and self.tokens.written:
            left = max(self.tokens.most - self.tokens.written, 1)
            request = replace(request, params=at_most(request.params, left))
        if self.sent is not None:
            self.sent(request)
        began = time.monotonic()
        with spans.span(
            "inference",
            kind=spans.SpanKind.CLIENT,
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": self.provider,
                "gen_ai.request.model": self.model_id,
            },
        ) as span:
            response = await infer(self.model, request, emit)
            usage = response.usage
            read, written = _counted(usage.input_tokens), _counted(usage.output_tokens)
            span.set_attribute("gen_ai.usage.input_tokens", read)
            span.set_attribute("gen_ai.usage.output_tokens", written)
        metrics.INFERENCE_SECONDS.labels(self.provider).observe(time.monotonic() - began)
        metrics.TOKENS.labels(self.provider, "input").inc(read)
        metrics.TOKENS.labels(self.provider, "output").inc(written)
        self.tokens.written += usage.output_tokens
        if self.answered is not None:
            self.answered()
        if not response.message.tool_calls:
            return response
        message = _orderly(response.message, request.messages, keeps_ids=self.keeps_ids)
        calls = message.tool_calls[CALLS_AT_ONCE:]
        self.surplus.update(call.tool_call_id for call in calls)
        return replace(response, message=message)


def _counted(tokens: int) -> int:
    """Return a provider's number as metrics and spans take it: none below 0, or without an end."""
    return min(max(tokens, 0), TOKENS_COUNTED)


def _orderly(
    message: AssistantMessage, before: Sequence[Message], *, keeps_ids: bool
) -> AssistantMessage:
    used = {
        call.tool_call_id
        for earlier in before
        if isinstance(earlier, AssistantMessage)
        for call in earlier.tool_calls
    }
    calls: list[ToolCall] = []
    for call in message.tool_calls:
        call_id = call.tool_call_id
        if not keeps_ids or call_id in used or not _ID.fullmatch(call_id):
            call_id = f"call_{uuid4().hex}"
        used.add(call_id)
        calls.append(
            changed(
                call,
                tool_call_id=call_id,
                tool_name=storable(call.tool_name)[:NAME_CHARS],
                malformed=None if call.malformed is None else storable(call.malformed),
            )
        )
    return changed(message, tool_calls=tuple(calls))
