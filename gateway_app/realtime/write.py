"""The Realtime events of one response: its items, their parts and its end.

A message is a dict without an `event_id`, which the socket adds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

import uamp
from gateway_app.openai.errors import error_body
from gateway_app.realtime.input_sound import BYTES_PER_MS
from gateway_app.realtime.items import RealtimeItem, RealtimePart
from gateway_app.realtime.session_events import modalities_of
from gateway_app.types.appended_text import AppendedText, TextReplacedError
from gateway_app.types.media import markdown_link
from gateway_app.types.token_counts import counts_of
from uamp import events as ev
from uamp.digital_source import AI_MADE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gateway_app.realtime.conversation import RealtimeConversation
    from gateway_app.realtime.read import ResponseFields
    from uamp.events import Event
    from uamp.events.server import ErrorDetail

    Shown: TypeAlias = dict[str, Any]

_INCOMPLETE: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}


class RealtimeWriter:
    """Converts the events of one response to Realtime's.

    Its items are added to `conversation`, if given. `link` returns the address of a medium for the
    client. With `is_spoken`, text is the transcript of speech. `sounds` are the items and places of
    the sounds that the response answers, in the order of their transcripts.
    """

    def __init__(
        self,
        *,
        is_ga: bool,
        fields: ResponseFields,
        conversation: RealtimeConversation | None,
        link: Callable[[str], str],
        is_spoken: bool = False,
        sounds: Sequence[tuple[str, int]] = (),
    ) -> None:
        self.response_id = ""
        self.has_ended = False
        self._is_ga = is_ga
        self._fields = fields
        self._conversation = conversation
        self._link = link
        self._text = AppendedText()
        self._items: list[RealtimeItem] = []
        # The pieces of the open message, which is then the last item.
        self._pieces: list[str] | None = None
        self._is_spoken = is_spoken
        self._sounds = list(sounds)
        # The milliseconds of speech in the message.
        self._spoken_ms = 0.0
        self._shown: set[str] = set()
        self._media: set[str] = set()
        # Items whose text was retracted.
        self._deleted: set[str | None] = set()

    def feed(self, event: Event) -> Iterator[Shown]:
        """Yield the Realtime events for an event."""
        match event:
            case ev.ResponseCreated():
                yield {"type": "response.created", "response": self._body("in_progress")}
            case ev.ResponseDelta(delta=ev.Delta(type="text", text=text)):
                yield from self._append(text or "", event.offset)
            case ev.ResponseDelta(delta=ev.Delta(type="audio", audio=str() as audio) as delta):
                yield from self._sound(audio, delta.format or "pcm16")
            case ev.TranscriptDone(role="user") if self._sounds:
                yield from self._transcript(event.transcript or "")
            case ev.ResponseDelta(delta=ev.Delta(type="image" | "video" | "file" as kind) as delta):
                label = delta.alt_text or delta.description or delta.filename or ""
                yield from self._medium(kind, getattr(delta, kind), label)
            case ev.ToolCall():
                yield from self._call(event.call_id, event.name, event.arguments)
            case ev.ResponseDone(response=ev.ResponseOutput() as output):
                yield from self._rest(output)
                yield from self._done(output, event.signature)
            case ev.ResponseCancelled():
                reason = {"type": "cancelled", "reason": "client_cancelled"}
                yield from self._end("cancelled", reason, event.usage)
            case ev.ResponseError():
                yield from self.fail(event.error, event.usage)

    def fail(self, error: ErrorDetail, used: uamp.UsageStats | None = None) -> Iterator[Shown]:
        """Yield the end of a failed response."""
        failure = msgspec.to_builtins(error_body(error).error)
        yield from self._end("failed", {"type": "failed", "error": failure}, used)

    # --- Items ---

    def _append(self, text: str, offset: int | None) -> Iterator[Shown]:
        try:
            new = self._text.append(text, offset)
        except TextReplacedError:
            # Another process resumed the answer from an earlier position.
            new = self._text.replace(text, offset)
            yield from self._take_back()
        yield from self._write(new)

    def _take_back(self) -> Iterator[Shown]:
        """End the messages so far as incomplete, and delete them for a new item with all text."""
        yield from self._close_message("incomplete")
        self._media.clear()
        for item in self._items:
            if item.type != "message" or item.id in self._deleted:
                continue
            self._deleted.add(item.id)
            if self._conversation is not None and self._conversation.discard(item.id):
                yield {"type": "conversation.item.deleted", "item_id": item.id}

    def _write(self, text: str) -> Iterator[Shown]:
        if not text:
            return
        if self._pieces is None:
            yield from self._open_message()
        if self._pieces is not None:
            self._pieces.append(text)
        yield {"type": f"{self._text_type}.delta", **self._part_place, "delta": text}

    def _sound(self, audio: str, name: str) -> Iterator[Shown]:
        if self._pieces is None:
            yield from self._open_message()
        self._spoken_ms += len(audio) * 3 / 4 / BYTES_PER_MS[name]
        if self._conversation is not None and self._items[-1].id:
            self._conversation.spoken_ms[self._items[-1].id] = int(self._spoken_ms)
        yield {"type": f"{self._sound_type}.delta", **self._part_place, "delta": audio}

    def _transcript(self, words: str) -> Iterator[Shown]:
        """Yield the transcript of a sound that the response answers."""
        item_id, index = self._sounds.pop(0)
        place = {"item_id": item_id, "content_index": index}
        kind = "conversation.item.input_audio_transcription"
        if self._conversation is not None:
            self._conversation.transcribe(item_id, index, words)
        yield {"type": f"{kind}.delta", **place, "delta": words}
        # The response's usage already includes these tokens.
        usage = {"type": "tokens", "input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
        yield {"type": f"{kind}.completed", **place, "transcript": words, "usage": usage}

    def _medium(self, kind: str, medium: Any, label: str) -> Iterator[Shown]:
        if isinstance(medium, uamp.MediaUrl) and medium.url not in self._media:
            self._media.add(medium.url)
            if link := markdown_link(kind, medium, label, self._link):
                yield from self._write(f"\n\n{link}\n\n")

    def _open_message(self) -> Iterator[Shown]:
        self._pieces, self._spoken_ms = [], 0.0
        yield from self._open(RealtimeItem(type="message", role="assistant", content=()))
        empty = self._part("")
        yield {"type": "response.content_part.added", **self._part_place, "part": empty}

    def _close_message(self, status: str = "completed") -> Iterator[Shown]:
        if self._pieces is None:
            return
        text, self._pieces = "".join(self._pieces), None
        done: Shown = {"type": f"{self._text_type}.done", **self._part_place}
        if self._is_spoken:
            yield {"type": f"{self._sound_type}.done", **self._part_place}
            yield done | {"transcript": text}
            item_part = RealtimePart(type="output_audio", transcript=text)
        else:
            yield done | {"text": text}
            item_part = RealtimePart(type="text", text=text)
        part = self._part(text)
        yield {"type": "response.content_part.done", **self._part_place, "part": part}
        yield from self._close(status, content=(item_part,))

    def _part(self, text: str) -> Shown:
        name = ("audio", "transcript") if self._is_spoken else ("text", "text")
        return {"type": name[0], name[1]: text}

    def _call(self, call_id: str, name: str, arguments: str) -> Iterator[Shown]:
        """Yield a call of the client's tool once; `arguments` is JSON text."""
        if call_id in self._shown:
            return
        self._shown.add(call_id)
        yield from self._close_message()
        item = RealtimeItem(type="function_call", call_id=call_id, name=name, arguments="")
        yield from self._open(item)
        place = {**self._item_place, "call_id": call_id}
        kind = "response.function_call_arguments"
        yield {"type": f"{kind}.delta", **place, "delta": arguments}
        yield {"type": f"{kind}.done", **place, "name": name, "arguments": arguments}
        yield from self._close("completed", arguments=arguments)

    def _open(self, item: RealtimeItem) -> Iterator[Shown]:
        item_id = f"item_{self.response_id}_{len(self._items)}"
        item = msgspec.structs.replace(item, id=item_id, status="in_progress")
        self._items.append(item)
        yield self._output_item("added")
        if self._conversation is not None:
            previous = self._conversation.append(item)
            yield self._conversation_item("added" if self._is_ga else "created", previous)

    def _close(self, status: str, **members: Any) -> Iterator[Shown]:
        item = self._items[-1] = msgspec.structs.replace(self._items[-1], status=status, **members)
        yield self._output_item("done")
        if self._conversation is not None:
            self._conversation.replace(item)
            if self._is_ga:
                yield self._conversation_item("done", self._conversation.before(item))

    def _output_item(self, kind: str) -> Shown:
        place = {"response_id": self.response_id, "output_index": len(self._items) - 1}
        item = self._items[-1].body(is_ga=self._is_ga)
        return {"type": f"response.output_item.{kind}", **place, "item": item}

    def _conversation_item(self, kind: str, previous: str | None) -> Shown:
        item = self._items[-1].body(is_ga=self._is_ga)
        return {"type": f"conversation.item.{kind}", "previous_item_id": previous, "item": item}

    @property
    def _text_type(self) -> str:
        if self._is_spoken:
            return f"{self._sound_type}_transcript"
        return "response.output_text" if self._is_ga else "response.text"

    @property
    def _sound_type(self) -> str:
        return "response.output_audio" if self._is_ga else "response.audio"

    @property
    def _item_place(self) -> Shown:
        index = len(self._items) - 1
        item_id = self._items[-1].id
        return {"response_id": self.response_id, "item_id": item_id, "output_index": index}

    @property
    def _part_place(self) -> Shown:
        return {**self._item_place, "content_index": 0}

    # --- The end ---

    def _rest(self, output: ev.ResponseOutput) -> Iterator[Shown]:
        """Yield the output that no earlier event contained."""
        items, at = output.output, 0
        answered = {i.tool_result.call_id for i in items if isinstance(i, uamp.ToolResultContent)}
        for item in items:
            match item:
                case uamp.TextContent():
                    yield from self._append(item.text, at)
                    at += len(item.text)
                case uamp.ImageContent():
                    label = item.alt_text or item.description or ""
                    yield from self._medium("image", item.image, label)
                case uamp.VideoContent():
                    yield from self._medium("video", item.video, item.description or "")
                case uamp.FileContent():
                    yield from self._medium("file", item.file, item.filename)
                case uamp.ToolCallContent(tool_call=call):
                    # Calls with a result were to tools of the server.
                    if output.finish_reason == "tool_calls" and call.id not in answered:
                        yield from self._call(call.id, call.name, call.arguments)

    def _done(self, output: ev.ResponseOutput, signature: str | None) -> Iterator[Shown]:
        signed = {} if signature is None else {"signature": signature}
        reason = _INCOMPLETE.get(output.finish_reason or "")
        if reason is None:
            events = self._end("completed", None, output.usage)
        else:
            events = self._end("incomplete", {"type": "incomplete", "reason": reason}, output.usage)
        *before, last = events
        yield from before
        yield {**last, "digital_source_type": AI_MADE, **signed}

    def _end(
        self, status: str, details: Shown | None, used: uamp.UsageStats | None
    ) -> Iterator[Shown]:
        self.has_ended = True
        yield from self._close_message("completed" if status == "completed" else "incomplete")
        body = self._body(status, details, _usage(used))
        yield {"type": "response.done", "response": body}

    def _body(self, status: str, details: Shown | None = None, used: Shown | None = None) -> Shown:
        fields = self._fields
        modalities = "output_modalities" if self._is_ga else "modalities"
        return {
            "id": self.response_id,
            "object": "realtime.response",
            "status": status,
            "status_details": details,
            "output": [
                item.body(is_ga=self._is_ga) for item in self._items if item.id not in self._deleted
            ],
            modalities: modalities_of(is_spoken=self._is_spoken, is_ga=self._is_ga),
            "max_output_tokens": fields.limit or "inf",
            "metadata": fields.metadata,
            "usage": used,
        }


def _usage(used: uamp.UsageStats | None) -> Shown:
    counts = counts_of(used)
    sound = (None if used is None else used.audio) or uamp.AudioUsage()
    input_audio, output_audio = sound.input_tokens or 0, sound.output_tokens or 0
    return {
        "total_tokens": counts.total,
        "input_tokens": counts.input,
        "output_tokens": counts.output,
        "input_token_details": {
            "cached_tokens": counts.read or 0,
            "text_tokens": counts.input - input_audio,
            "audio_tokens": input_audio,
        },
        "output_token_details": {
            "text_tokens": counts.output - output_audio,
            "audio_tokens": output_audio,
        },
    }
