"""The answer of OpenAI's Responses API, as one object or as the events of a stream.

A stream's `sequence_number` is a position in the answer: an event advances it by one, and a delta
by the number of its characters. It does not depend on how the text was split, so a client may
resume from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import uamp
from gateway_app.openai.errors import error_body
from gateway_app.openai_responses.output import (
    closed,
    item_id,
    opened,
    text_part,
    usage_of,
)
from gateway_app.openai_responses.tools import ClientTools, in_progress_item, pieces
from gateway_app.types.answer_writer import AnswerWriter
from gateway_app.types.charged_errors import charges_of, with_charges
from uamp import ErrorCode
from uamp import events as ev
from uamp.digital_source import AI_MADE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gateway_app.openai_responses.output import JsonObject
    from uamp import RemoteProtocolError
    from uamp.events import Event

_INCOMPLETE: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}
_LIMITED: Final = frozenset({ErrorCode.RATE_LIMITED, ErrorCode.RATE_LIMIT_EXCEEDED})
_PROMPT: Final = frozenset({ErrorCode.CONTEXT_LENGTH_EXCEEDED, ErrorCode.REQUEST_REFUSED})


@dataclass(kw_only=True)
class ResponseWriter(AnswerWriter["JsonObject"]):
    """Converts the events of one response to stream events, or to one object.

    `created_at` is in Unix seconds, `echoed_request` holds the fields of the request that the
    object echoes, and `tools` are those of the client.
    Events up to the position `after` are skipped, because the client has them.
    """

    response_id: str
    created_at: int
    echoed_request: JsonObject
    tools: ClientTools = field(default_factory=ClientTools)
    after: int = -1
    has_ended: bool = False
    _place: int = -1
    _items: list[JsonObject] = field(default_factory=list)
    _open: JsonObject | None = None
    _pieces: list[str] = field(default_factory=list)

    def begin(self) -> Iterator[JsonObject]:
        """Yield the opening events."""
        for kind in ("response.created", "response.in_progress"):
            yield from self._event(kind, response=self.body("in_progress"))

    def feed(self, event: Event) -> Iterator[JsonObject]:
        """Yield the stream events of a server event; raises TextReplacedError."""
        match event:
            case ev.ResponseDone(response=ev.ResponseOutput() as done):
                yield from self._done(done, event.signature)
            case ev.ResponseCancelled():
                yield from self._rest(event.partial_output, None)
                yield from self._end("response.incomplete", "cancelled", event.usage)
            case ev.ResponseError():
                error = {"code": _failure(event.error.code), "message": event.error.message}
                charges = charges_of(event.error)
                yield from self._end(
                    "response.failed", "failed", event.usage, **charges, error=error
                )
            case _:
                yield from self._grow(event)

    def fail(self, error: RemoteProtocolError) -> Iterator[JsonObject]:
        """Yield the error that ends a broken stream."""
        body = error_body(error).error
        shown_error = {"code": body.code, "message": body.message, "param": body.param}
        yield from self._event("error", **with_charges(shown_error, error))

    def rest_of_output(self, output: Sequence[uamp.ContentItem]) -> Iterator[JsonObject]:
        """Yield the text and thoughts of an output, which the end of a failed response lacks."""
        yield from self._rest(output, None)

    def whole(self, end: Event, output: Sequence[uamp.ContentItem] = ()) -> JsonObject:
        """Return a finished response as one object."""
        list(self.rest_of_output(output))
        *_, last = self.feed(end)
        response: JsonObject = last["response"]
        return response

    def items(self, output: Sequence[uamp.ContentItem], status: str) -> list[JsonObject]:
        """Return the items of a finished output."""
        list(self._rest(output, "tool_calls"))
        list(self._close_item(status))
        return self._items

    def so_far(self, status: str, output: Sequence[uamp.ContentItem]) -> JsonObject:
        """Return an unfinished response as one object."""
        list(self._rest(output, None))
        if self._open is not None:
            self._items[-1] = closed(self._open, "".join(self._pieces), "in_progress")
        return self.body(status)

    def body(
        self,
        status: str,
        used: uamp.UsageStats | None = None,
        **members: Any,
    ) -> JsonObject:
        """Return the response object; `members` override its default ones."""
        return {
            "id": self.response_id,
            "object": "response",
            "created_at": self.created_at,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "output": list(self._items),
            **self.echoed_request,
            "usage": usage_of(used) if self.has_ended else None,
            **members,
        }

    # --- Parts of the answer ---

    def _write_text(self, text: str, *, is_link: bool) -> Iterator[JsonObject]:
        yield from self._write("message", text, is_link=is_link)

    def _write_thought(self, text: str) -> Iterator[JsonObject]:
        yield from self._write("reasoning", text)

    def _write(self, kind: str, text: str, *, is_link: bool = False) -> Iterator[JsonObject]:
        """Yield text of a message or thought; a link, whose address may change, is one position."""
        if self._open is None or self._open["type"] != kind:
            yield from self._open_item(kind)
        self._pieces.append(text)
        self._place += 1 if is_link else len(text)
        missing = self._place - self.after
        if missing > 0:
            sent = text if is_link else text[-missing:]
            yield self._event_body(f"response.{self._written}.delta", **self._in_text, delta=sent)

    def _open_item(self, kind: str) -> Iterator[JsonObject]:
        yield from self._close_item("completed")
        item = opened(kind, item_id(kind, self.response_id, len(self._items)))
        self._items.append(item)
        self._open, self._pieces = item, []
        yield from self._event("response.output_item.added", output_index=self._last, item=item)
        yield from self._event(
            f"response.{self._part}.added", **self._in_part, part=self._shown_part("")
        )

    def _close_item(self, status: str) -> Iterator[JsonObject]:
        if self._open is None:
            return
        text = "".join(self._pieces)
        part = self._shown_part(text)
        yield from self._event(f"response.{self._written}.done", **self._in_text, text=text)
        yield from self._event(f"response.{self._part}.done", **self._in_part, part=part)
        self._items[-1] = closed(self._open, text, status)
        self._open = None
        yield from self._item_done()

    def _write_call(self, call: uamp.ToolCallData, index: int) -> Iterator[JsonObject]:
        """Yield a call of one of the client's tools."""
        del index
        yield from self._close_item("completed")
        kind = "custom_tool_call" if self.tools.is_custom(call) else "function_call"
        item = self.tools.called(item_id(kind, self.response_id, len(self._items)), call)
        self._items.append(item)
        yield from self._event(
            "response.output_item.added", output_index=self._last, item=in_progress_item(item)
        )
        for kind, members in pieces(item):
            yield from self._event(kind, item_id=item["id"], output_index=self._last, **members)
        yield from self._item_done()

    # --- The end ---

    def _done(self, done: ev.ResponseOutput, signature: str | None) -> Iterator[JsonObject]:
        yield from self._rest(done.output, done.finish_reason)
        signed = {"digital_source_type": AI_MADE}
        if signature is not None:
            signed["signature"] = signature
        reason = _INCOMPLETE.get(done.finish_reason or "")
        if reason is None:
            yield from self._end("response.completed", "completed", done.usage, **signed)
            return
        details = {"reason": reason}
        yield from self._end(
            "response.incomplete", "incomplete", done.usage, incomplete_details=details, **signed
        )

    def _end(
        self, kind: str, status: str, used: uamp.UsageStats | None, **members: Any
    ) -> Iterator[JsonObject]:
        yield from self._close_item("completed" if status == "completed" else "incomplete")
        self.has_ended = True
        yield from self._event(kind, response=self.body(status, used, **members))

    # --- Events ---

    def _event(self, kind: str, **members: Any) -> Iterator[JsonObject]:
        """Yield an event, unless its client has received it."""
        self._place += 1
        if self._place > self.after:
            yield self._event_body(kind, **members)

    def _event_body(self, kind: str, **members: Any) -> JsonObject:
        return {"type": kind, "sequence_number": self._place, **members}

    def _item_done(self) -> Iterator[JsonObject]:
        yield from self._event(
            "response.output_item.done", output_index=self._last, item=self._items[-1]
        )

    @property
    def _last(self) -> int:
        return len(self._items) - 1

    @property
    def _is_thought(self) -> bool:
        return self._open is not None and self._open["type"] == "reasoning"

    @property
    def _part(self) -> str:
        return "reasoning_summary_part" if self._is_thought else "content_part"

    @property
    def _written(self) -> str:
        return "reasoning_summary_text" if self._is_thought else "output_text"

    @property
    def _in_part(self) -> JsonObject:
        """The location of the open part."""
        index = "summary_index" if self._is_thought else "content_index"
        return {"item_id": self._items[-1]["id"], "output_index": self._last, index: 0}

    @property
    def _in_text(self) -> JsonObject:
        return self._in_part if self._is_thought else {**self._in_part, "logprobs": []}

    def _shown_part(self, text: str) -> JsonObject:
        return {"type": "summary_text", "text": text} if self._is_thought else text_part(text)


def _failure(code: str) -> str:
    """Return OpenAI's error code for a failed response, out of the few that exist."""
    if code in _LIMITED:
        return "rate_limit_exceeded"
    return "invalid_prompt" if code in _PROMPT else "server_error"
