"""The base of writers that give an answer to a client piece by piece, each piece once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import uamp
from gateway_app.types.appended_text import AppendedText
from gateway_app.types.media import markdown_link
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from uamp.events import Event
    from uamp.types.content import Media

Frame = TypeVar("Frame")


@dataclass(kw_only=True)
class AnswerWriter(Generic[Frame]):
    """Tracks what a client has of one response, and yields the frames of what it lacks.

    A dialect implements `_write_text`, `_write_thought` and `_write_call`. `link` returns the
    address of a medium for the client; media are links in the text.
    """

    link: Callable[[str], str]
    _text: AppendedText = field(default_factory=AppendedText)
    _thought: AppendedText = field(default_factory=AppendedText)
    _calls: set[str] = field(default_factory=set)
    _media: set[str] = field(default_factory=set)

    def _write_text(self, text: str, *, is_link: bool) -> Iterator[Frame]:
        """Yield the frames of text; a link comes in one piece."""
        raise NotImplementedError

    def _write_thought(self, text: str) -> Iterator[Frame]:
        """Yield the frames of a thought."""
        raise NotImplementedError

    def _write_call(self, call: uamp.ToolCallData, index: int) -> Iterator[Frame]:
        """Yield the frames of a call of one of the client's tools; `index` counts them from 0."""
        raise NotImplementedError

    def _grow(self, event: Event) -> Iterator[Frame]:
        """Yield the frames of an event before the end; raises TextReplacedError."""
        match event:
            case ev.ResponseDelta(delta=ev.Delta(type="text") as delta):
                yield from self._new_text(delta.text or "", event.offset)
            case ev.ResponseDelta(delta=ev.Delta(type="image" | "video" | "file" as kind) as delta):
                label = delta.alt_text or delta.description or delta.filename or ""
                yield from self._medium(kind, getattr(delta, kind), label)
            case ev.Thinking(redacted=False):
                yield from self._thinking(event.content, is_delta=event.is_delta)
            case ev.ToolCall():
                yield from self._call(
                    uamp.ToolCallData(id=event.call_id, name=event.name, arguments=event.arguments)
                )

    def _rest(self, output: Sequence[uamp.ContentItem], reason: str | None) -> Iterator[Frame]:
        """Yield the output not yet yielded: all of it for a response that had already ended."""
        at, has_thought = 0, bool(self._thought.length)
        for item in output:
            match item:
                case uamp.TextContent():
                    yield from self._new_text(item.text, at)
                    at += len(item.text)
                case uamp.ThinkingContent(redacted=False) if not has_thought:
                    yield from self._thinking(item.thinking, is_delta=True)
                case uamp.ImageContent():
                    label = item.alt_text or item.description or ""
                    yield from self._medium("image", item.image, label)
                case uamp.VideoContent():
                    yield from self._medium("video", item.video, item.description or "")
                case uamp.FileContent():
                    yield from self._medium("file", item.file, item.filename)
        for call in open_calls(output) if reason == "tool_calls" else ():
            yield from self._call(call)

    def _new_text(self, text: str, offset: int | None) -> Iterator[Frame]:
        if text := self._text.append(text, offset):
            yield from self._write_text(text, is_link=False)

    def _thinking(self, text: str, *, is_delta: bool) -> Iterator[Frame]:
        """Yield a thought; unless a delta, it is the whole thought so far, or a new one."""
        if not is_delta and text.startswith(earlier := self._thought.text):
            text = text[len(earlier) :]
        if text := self._thought.append(text, None):
            yield from self._write_thought(text)

    def _medium(self, kind: str, medium: Media | None, label: str) -> Iterator[Frame]:
        if isinstance(medium, uamp.MediaUrl) and medium.url not in self._media:
            self._media.add(medium.url)
            link = markdown_link(kind, medium, label, self.link)
            yield from self._write_text(f"\n\n{link}\n\n", is_link=True)

    def _call(self, call: uamp.ToolCallData) -> Iterator[Frame]:
        if call.id not in self._calls:
            index = len(self._calls)
            self._calls.add(call.id)
            yield from self._write_call(call, index)


def open_calls(items: Sequence[uamp.ContentItem]) -> list[uamp.ToolCallData]:
    """Return the calls without a result in an output: those to the client's tools."""
    done = {item.tool_result.call_id for item in items if isinstance(item, uamp.ToolResultContent)}
    return [
        item.tool_call
        for item in items
        if isinstance(item, uamp.ToolCallContent) and item.tool_call.id not in done
    ]
