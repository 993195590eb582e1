"""The limits of one model: the ids and number of its calls, and the tokens of its answer.

A model may write anything, in any amount. Its call id is kept if it fits a row and is unique in the
conversation; otherwise the call gets an id of this server before any event names it. Each call
costs a row, a worker or another agent, so only a limited number per answer is run. No inference may
use more tokens than the answer has left.
"""

import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from uuid import uuid4

from msgspec.structs import replace as changed

from agents_app.inferences import Attempt, InferenceLog, attempt_of, counted
from agents_app.providers.clients import with_token_limit
from agents_app.runtime.failures import without_secrets
from telemetry import metrics, span_attributes, spans
from uamp.storable_text import storable
from upp import (
    AssistantMessage,
    LLMCapabilities,
    LLMRequest,
    LLMResponse,
    Message,
    Model,
    ToolCall,
    UPPError,
)
from upp.model import EmittingModel, infer
from upp.stream import Emit, StreamEvent

CALLS_AT_ONCE = 32
"""The most calls of one answer that are run."""
NAME_CHARS = 128
_ID = re.compile(r"[!-~]{1,128}")


@dataclass
class Tokens:
    """Tokens that an answer may write (None: no limit) and has written so far."""

    limit: int | None = None
    written: int = 0


@dataclass(frozen=True)
class OrderlyModel(EmittingModel):
    """A model whose calls all have a unique id and a name that can be stored.

    `surplus` collects the ids of calls that must not be run. With `keeps_ids`, valid ids of the
    model are kept; otherwise each call gets an id that is unique on this server. `admit` allows
    each inference, of which a step may have several; `sent` is called when it is sent, `answered`
    when its provider has answered. `log` records each inference.
    """

    model: Model
    tokens: Tokens = field(default_factory=Tokens)
    surplus: set[str] = field(default_factory=set)
    keeps_ids: bool = True
    admit: Callable[[], Awaitable[None]] | None = None
    sent: Callable[[LLMRequest], None] | None = None
    answered: Callable[[], None] | None = None
    log: InferenceLog = field(default_factory=InferenceLog)

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
        """See Model. Events pass through unchanged; the calls of the final message are executed."""
        if self.tokens.limit is not None and self.tokens.written:
            remaining = max(self.tokens.limit - self.tokens.written, 1)
            request = replace(request, params=with_token_limit(request.params, remaining))
        if self.admit is not None:
            await self.admit()
        if self.sent is not None:
            self.sent(request)
        began = time.monotonic()
        with spans.span(
            "inference",
            kind=spans.SpanKind.CLIENT,
            attributes={
                span_attributes.OPERATION: span_attributes.CHAT,
                span_attributes.PROVIDER: self.provider,
                span_attributes.REQUEST_MODEL: self.model_id,
            },
        ) as span:
            response = await self._logged(request, emit)
            usage = response.usage
            read, written = counted(usage.input_tokens), counted(usage.output_tokens)
            span.set_attribute(span_attributes.INPUT_TOKENS, read)
            span.set_attribute(span_attributes.OUTPUT_TOKENS, written)
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

    async def _logged(self, request: LLMRequest, emit: Emit) -> LLMResponse:
        """Run an inference, and record when it was sent, began to answer and ended."""
        log = self.log
        inference = log.begin(provider=self.provider, model=self.model_id)

        def timed(event: StreamEvent) -> Awaitable[None]:
            if inference.first_ms is None and event.type != "message_start":
                log.first_output(inference)
            return emit(event)

        try:
            response = await infer(self.model, request, timed)
        except UPPError as error:
            log.failed(inference, _attempts((*error.earlier, error)))
            raise
        except BaseException:
            log.stopped(inference)
            raise
        log.answered(inference, response, _attempts(response.earlier))
        return response


def _attempts(errors: Sequence[UPPError]) -> list[Attempt]:
    return [attempt_of(error, without_secrets(error.message)) for error in errors]


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
