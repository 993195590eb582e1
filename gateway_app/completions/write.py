"""The answer of Chat Completions, as one object or as the chunks of a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

import uamp
from gateway_app.openai.errors import ErrorBody, error_body
from gateway_app.types.answer_writer import AnswerWriter
from gateway_app.types.charged_errors import with_charges
from gateway_app.types.token_counts import counts_of
from uamp import events as ev
from uamp.digital_source import AI_MADE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from uamp.events import Event

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "function_call"]

_FINISH: Final[dict[str | None, FinishReason]] = {
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
}


class FunctionDelta(msgspec.Struct, frozen=True, kw_only=True):
    """A function and its arguments as JSON text, always sent whole."""

    name: str
    arguments: str


class ToolCallDelta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call of a tool of the client, with its `index` in a stream."""

    index: int | None = None
    id: str
    type: str
    function: FunctionDelta


class AnswerDelta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of the message."""

    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: tuple[ToolCallDelta, ...] | None = None
    function_call: FunctionDelta | None = None


class AnswerMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The whole message; `refusal` is always null, for clients that expect the member."""

    role: str
    content: str | None
    refusal: str | None
    reasoning_content: str | None = None
    tool_calls: tuple[ToolCallDelta, ...] | None = None
    function_call: FunctionDelta | None = None


class ChunkChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The only choice of a chunk."""

    index: int = 0
    delta: AnswerDelta = AnswerDelta()
    logprobs: None = None
    finish_reason: FinishReason | None = None


class CompletionChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The only choice of an answer."""

    index: int = 0
    message: AnswerMessage
    logprobs: None = None
    finish_reason: FinishReason


class CachedTokens(msgspec.Struct, frozen=True, kw_only=True):
    """How many prompt tokens the model read from its cache."""

    cached_tokens: int


class CompletionUsage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens used."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens | None = None


class CompletionChunk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A chunk of a stream; one after the end carries the `signature` of the answer."""

    signature: str | None = None
    digital_source_type: str | None = None
    id: str
    object: str
    created: int
    model: str
    choices: tuple[ChunkChoice, ...]
    usage: CompletionUsage | None = None


class Completion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A whole answer; the last two members are additions."""

    id: str
    object: str
    created: int
    model: str
    choices: tuple[CompletionChoice, ...]
    usage: CompletionUsage
    signature: str | None = None
    digital_source_type: str | None = None


@dataclass(kw_only=True)
class CompletionWriter(AnswerWriter[CompletionChunk]):
    """Converts the events of one response to chunks, or to one completion.

    `model` is the one that the client requested, `created` is in Unix seconds, and `is_older` is
    set if the request has `functions` instead of `tools`.
    `signature` is the chunk after the end of a stream, if the response is signed.
    """

    response_id: str
    model: str
    created: int
    include_usage: bool = False
    is_older: bool = False
    signature: CompletionChunk | None = None

    def begin(self) -> CompletionChunk:
        """Return the first chunk, which sets the role."""
        return self._chunk(ChunkChoice(delta=AnswerDelta(role="assistant", content="")))

    def feed(self, event: Event) -> Iterator[CompletionChunk | ErrorBody]:
        """Yield the chunks of an event; raises TextReplacedError (see `AppendedText.append`)."""
        match event:
            case ev.ResponseDone(response=ev.ResponseOutput() as done):
                yield from self._rest(done.output, done.finish_reason)
                yield from self._end(done.finish_reason, done.usage)
                if event.signature is not None:
                    self.signature = self._chunk(signature=event.signature)
            case ev.ResponseCancelled():
                yield from self._rest(event.partial_output, None)
                yield from self._end(None, event.usage)
            case ev.ResponseError():
                yield with_charges(error_body(event.error), event.error)
            case _:
                yield from self._grow(event)

    def whole(self, end: ev.ResponseDone | ev.ResponseCancelled) -> Completion:
        """Return a completed or cancelled response as one object."""
        if isinstance(end, ev.ResponseDone) and end.response is not None:
            output, reason, used = (
                end.response.output,
                end.response.finish_reason,
                end.response.usage,
            )
        else:
            partial = end.partial_output if isinstance(end, ev.ResponseCancelled) else ()
            output, reason, used = partial, None, getattr(end, "usage", None)
        deltas = [c.delta for chunk in self._rest(output, reason) for c in chunk.choices]
        calls = [call for delta in deltas for call in delta.tool_calls or ()]
        text = "".join(delta.content or "" for delta in deltas)
        message = AnswerMessage(
            role="assistant",
            content=None if not text and (calls or reason == "tool_calls") else text,
            refusal=None,
            reasoning_content="".join(delta.reasoning_content or "" for delta in deltas) or None,
            tool_calls=tuple(msgspec.structs.replace(call, index=None) for call in calls) or None,
            function_call=next((d.function_call for d in deltas if d.function_call), None),
        )
        return Completion(
            id=self._id,
            object="chat.completion",
            created=self.created,
            model=self.model,
            choices=(CompletionChoice(message=message, finish_reason=self._reason(reason)),),
            usage=_usage(used),
            signature=end.signature,
            digital_source_type=AI_MADE,
        )

    def _write_text(self, text: str, *, is_link: bool) -> Iterator[CompletionChunk]:
        del is_link
        yield self._chunk(ChunkChoice(delta=AnswerDelta(content=text)))

    def _write_thought(self, text: str) -> Iterator[CompletionChunk]:
        yield self._chunk(ChunkChoice(delta=AnswerDelta(reasoning_content=text)))

    def _write_call(self, call: uamp.ToolCallData, index: int) -> Iterator[CompletionChunk]:
        function = FunctionDelta(name=call.name, arguments=call.arguments)
        if not self.is_older:
            delta = ToolCallDelta(index=index, id=call.id, type="function", function=function)
            yield self._chunk(ChunkChoice(delta=AnswerDelta(tool_calls=(delta,))))
        elif index == 0:
            yield self._chunk(ChunkChoice(delta=AnswerDelta(function_call=function)))

    def _end(self, reason: str | None, used: uamp.UsageStats | None) -> Iterator[CompletionChunk]:
        yield self._chunk(ChunkChoice(finish_reason=self._reason(reason)))
        if self.include_usage:
            yield self._chunk(usage=_usage(used))

    def _reason(self, reason: str | None) -> FinishReason:
        finish = _FINISH.get(reason, "stop")
        return "function_call" if self.is_older and finish == "tool_calls" else finish

    @property
    def _id(self) -> str:
        return f"chatcmpl-{self.response_id}"

    def _chunk(
        self,
        *choices: ChunkChoice,
        usage: CompletionUsage | None = None,
        signature: str | None = None,
    ) -> CompletionChunk:
        return CompletionChunk(
            signature=signature,
            digital_source_type=None if signature is None else AI_MADE,
            id=self._id,
            object="chat.completion.chunk",
            created=self.created,
            model=self.model,
            choices=choices,
            usage=usage,
        )


def _usage(used: uamp.UsageStats | None) -> CompletionUsage:
    counts = counts_of(used)
    return CompletionUsage(
        prompt_tokens=counts.input,
        completion_tokens=counts.output,
        total_tokens=counts.total,
        prompt_tokens_details=(
            None if counts.read is None else CachedTokens(cached_tokens=counts.read)
        ),
    )
