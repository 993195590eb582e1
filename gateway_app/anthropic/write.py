"""The answer of Anthropic's Messages API, as one message or as the events of a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

import uamp
from gateway_app.anthropic.errors import error_body
from gateway_app.types.answer_writer import AnswerWriter
from gateway_app.types.charged_errors import with_charges
from gateway_app.types.token_counts import counts_of
from uamp import events as ev
from uamp.digital_source import AI_MADE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from uamp.events import Event

    Frame: TypeAlias = dict[str, Any]

_STOP_REASONS: Final = {
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
_PIECES: Final = {"text": "text", "thinking": "thinking"}
_NO_ARGUMENTS: Final = "{}"
_OURS: Final = ("digital_source_type", "signature")
"""Members that Anthropic's API does not have: the mark of AI, and the agent's signature."""


@dataclass(kw_only=True)
class MessagesWriter(AnswerWriter["Frame"]):
    """Converts the events of one response to the frames of a stream, or to one message.

    `model` is the one that the client requested. Without `shows_thoughts`, thoughts are left out.
    """

    response_id: str
    model: str
    shows_thoughts: bool = False
    has_ended: bool = False
    _open: str = ""
    _blocks: int = 0

    def begin(self) -> Frame:
        """Return the first frame: the message without content."""
        return {"type": "message_start", "message": self._message([], None, None)}

    def feed(self, event: Event) -> Iterator[Frame]:
        """Yield the frames of an event; raises TextReplacedError (see `AppendedText.append`)."""
        match event:
            case ev.ResponseDone(response=ev.ResponseOutput() as done):
                yield from self._rest(done.output, done.finish_reason)
                yield from self._end(done.finish_reason, done.usage, event.signature)
            case ev.ResponseCancelled():
                yield from self._rest(event.partial_output, None)
                yield from self._end(None, event.usage, event.signature)
            case ev.ResponseError():
                self.has_ended = True
                yield with_charges(error_body(event.error), event.error)
            case _:
                yield from self._grow(event)

    def whole(self, end: ev.ResponseDone | ev.ResponseCancelled) -> Frame:
        """Return a completed or cancelled response as one message."""
        frames = list(self.feed(end))
        final = next(frame for frame in frames if frame["type"] == "message_delta")
        message = self._message(_content(frames), final["delta"]["stop_reason"], None)
        return {**message, **{name: final[name] for name in ("usage", *_OURS) if name in final}}

    def _piece(self, kind: str, text: str) -> Iterator[Frame]:
        """Yield text of a block, in a new block if that of another kind is open."""
        if self._open != kind:
            yield from self._close()
            empty = {"signature": ""} if kind == "thinking" else {}
            yield self._start({"type": kind, _PIECES[kind]: "", **empty}, kind)
        yield self._delta({"type": f"{kind}_delta", _PIECES[kind]: text})

    def _write_text(self, text: str, *, is_link: bool) -> Iterator[Frame]:
        del is_link
        yield from self._piece("text", text)

    def _write_thought(self, text: str) -> Iterator[Frame]:
        if self.shows_thoughts:
            yield from self._piece("thinking", text)

    def _write_call(self, call: uamp.ToolCallData, index: int) -> Iterator[Frame]:
        del index
        yield from self._close()
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield self._start(block, "tool_use")
        piece = {"type": "input_json_delta", "partial_json": _object(call.arguments)}
        yield self._delta(piece)
        yield from self._close()

    def _start(self, block: Frame, kind: str) -> Frame:
        self._open = kind
        return {"type": "content_block_start", "index": self._blocks, "content_block": block}

    def _delta(self, delta: Frame) -> Frame:
        return {"type": "content_block_delta", "index": self._blocks, "delta": delta}

    def _close(self) -> Iterator[Frame]:
        if self._open:
            yield {"type": "content_block_stop", "index": self._blocks}
            self._open, self._blocks = "", self._blocks + 1

    def _end(
        self, reason: str | None, used: uamp.UsageStats | None, signature: str | None
    ) -> Iterator[Frame]:
        self.has_ended = True
        yield from self._close()
        yield {
            "type": "message_delta",
            "delta": {
                "stop_reason": _STOP_REASONS.get(reason or "", "end_turn"),
                "stop_sequence": None,
            },
            "usage": _usage(used),
            "digital_source_type": AI_MADE,
            **({} if signature is None else {"signature": signature}),
        }
        yield {"type": "message_stop"}

    def _message(
        self, content: list[Frame], reason: str | None, used: uamp.UsageStats | None
    ) -> Frame:
        return {
            "id": f"msg_{self.response_id.removeprefix('resp_')}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": _usage(used),
        }


def _content(frames: Iterable[Frame]) -> list[Frame]:
    """Return the content blocks that the frames of a stream add up to."""
    blocks: list[Frame] = []
    for frame in frames:
        if frame["type"] == "content_block_start":
            blocks.append(dict(frame["content_block"]))
        elif frame["type"] == "content_block_delta":
            block, delta = blocks[-1], frame["delta"]
            if delta["type"] == "input_json_delta":
                # As the model wrote it: numbers of any size keep their digits.
                block["input"] = msgspec.Raw(delta["partial_json"].encode())
            else:
                member = _PIECES[block["type"]]
                block[member] += delta[member]
    return blocks


def _object(arguments: str) -> str:
    """Return the arguments of a call, or none if the model wrote anything but a JSON object."""
    try:
        msgspec.json.decode(arguments, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        return _NO_ARGUMENTS
    return arguments


def _usage(used: uamp.UsageStats | None) -> Frame:
    counts = counts_of(used)
    return {
        "input_tokens": counts.input,
        "output_tokens": counts.output,
        "cache_creation_input_tokens": counts.written,
        "cache_read_input_tokens": counts.read or 0,
    }
