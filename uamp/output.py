"""Builds the output of a response from its events (UAMP §6.6, §6.7, §6.13).

Adding a piece costs the same however long the answer is; pieces are joined only when a caller reads
them.
"""

from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator

from msgspec import structs

from uamp.errors import ErrorCode, RemoteProtocolError
from uamp.events import (
    AudioDelta,
    AudioDone,
    Delta,
    ResponseCancelled,
    ResponseDelta,
    ResponseDone,
    ResponseError,
    Thinking,
    ToolCall,
    ToolResult,
)
from uamp.events.base import Event
from uamp.types.content import (
    AudioContent,
    ContentItem,
    FileContent,
    ImageContent,
    MediaContent,
    MediaUrl,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolCallData,
    ToolResultContent,
    ToolResultData,
    VideoContent,
)
from uamp.types.inline_media import decode_base64


class _Text:
    __slots__ = ("pieces",)

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def item(self) -> TextContent:
        self.pieces = ["".join(self.pieces)]
        return TextContent(text=self.pieces[0])


class _Thought:
    __slots__ = ("closed", "pieces", "redacted", "stage")

    def __init__(self, *, stage: str | None) -> None:
        self.pieces: list[str] = []
        self.stage = stage
        self.redacted = False
        self.closed = False

    def item(self) -> ThinkingContent:
        self.pieces = ["".join(self.pieces)]
        return ThinkingContent(thinking=self.pieces[0], stage=self.stage, redacted=self.redacted)


class _Sound:
    __slots__ = ("duration_ms", "pieces")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.duration_ms: int | float | None = None

    def item(self) -> AudioContent:
        self.pieces = [b"".join(self.pieces)]
        return AudioContent(audio=b64encode(self.pieces[0]).decode(), duration_ms=self.duration_ms)


class _Call:
    __slots__ = ("call_id", "name", "pieces")

    def __init__(self, call_id: str) -> None:
        self.call_id = call_id
        self.name = ""
        self.pieces: list[str] = []

    def item(self) -> ToolCallContent:
        self.pieces = ["".join(self.pieces)]
        return ToolCallContent(
            tool_call=ToolCallData(id=self.call_id, name=self.name, arguments=self.pieces[0])
        )


class _Whole:
    __slots__ = ("content",)

    def __init__(self, content: ContentItem) -> None:
        self.content = content

    def item(self) -> ContentItem:
        return self.content


_Part = _Text | _Thought | _Sound | _Call | _Whole


class OutputBuilder:
    """The output of one response, built from its events in order.

    ``add`` accepts every event; events without output change nothing. Consecutive thinking becomes
    one item in its place between text and tool calls (§6.13), and so does consecutive text.
    """

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._calls: dict[str, _Call] = {}
        self._offset = 0

    @property
    def offset(self) -> int:
        """The number of code points of text so far: the ``offset`` of the next text delta."""
        return self._offset

    @property
    def text(self) -> str:
        """All text so far, without breaks between its items."""
        return "".join(part.item().text for part in self._parts if isinstance(part, _Text))

    @property
    def output(self) -> list[ContentItem]:
        """The content items so far, in order."""
        return [part.item() for part in self._parts]

    def add(self, event: Event) -> None:
        """Add ``event`` to the output.

        Raises RemoteProtocolError: resync for a text delta whose ``offset`` leaves a gap,
        invalid_media for a piece of audio that is not base64.
        """
        match event:
            case ResponseDelta():
                self._add_delta(event.delta, event.offset)
            case Thinking():
                self._add_thinking(event)
            case AudioDelta():
                self._add_sound(event.audio)
            case AudioDone():
                self._end_sound(event.duration_ms)
            case ToolCall():
                call = self._call(event.call_id)
                call.name, call.pieces = event.name, [event.arguments]
            case ToolResult():
                self._add_result(
                    ToolResultData(
                        call_id=event.call_id,
                        result=event.result,
                        is_error=event.is_error,
                        content_items=event.content_items,
                    )
                )
            case ResponseDone(response=response) if response is not None and response.output:
                self._replace(response.output)
            case (
                ResponseCancelled(partial_output=output) | ResponseError(partial_output=output)
            ) if output:
                self._replace(output)

    def rename_call(self, call_id: str, new_id: str) -> None:
        """Give a call without a result another id; raises KeyError for an unknown call."""
        call = self._calls.pop(call_id)
        call.call_id = new_id
        self._calls[new_id] = call

    def _add_delta(self, delta: Delta, offset: int | None) -> None:
        if delta.type == "text" and delta.text is not None:
            self.add_text(delta.text, offset)
        elif delta.type == "audio" and isinstance(delta.audio, str):
            self._add_sound(delta.audio)
        elif delta.type == "tool_call" and delta.tool_call is not None:
            call = self._call(delta.tool_call.id)
            call.name = call.name or delta.tool_call.name
            call.pieces.append(delta.tool_call.arguments)
        elif delta.type == "tool_result" and delta.tool_result is not None:
            self._add_result(delta.tool_result)
        elif (item := _medium(delta)) is not None:
            if isinstance(item, AudioContent):
                # The whole recording replaces its pieces.
                self._parts = [part for part in self._parts if not isinstance(part, _Sound)]
            self._parts.append(_Whole(item))

    def add_text(self, text: str, offset: int | None = None) -> None:
        """Append ``text``, or the new part of it, as a text delta does.

        Raises RemoteProtocolError (resync) for an ``offset`` that leaves a gap.
        """
        if offset is not None and offset != self._offset:
            if offset == 0:
                self._replace_text(text)
                return
            if offset > self._offset:
                raise RemoteProtocolError(
                    ErrorCode.RESYNC, f"text from {self._offset} to {offset} is missing"
                )
            text = text[self._offset - offset :]
        if not text:
            return
        part = self._parts[-1] if self._parts else None
        if not isinstance(part, _Text):
            part = _Text()
            self._parts.append(part)
        part.pieces.append(text)
        self._offset += len(text)

    def _replace_text(self, text: str) -> None:
        """Replace all text with ``text``, at the place of the first text."""
        first, *later = [part for part in self._parts if isinstance(part, _Text)]
        first.pieces = [text]
        self._parts = [part for part in self._parts if part not in later]
        self._offset = len(text)

    def _add_thinking(self, event: Thinking) -> None:
        thought = self._parts[-1] if self._parts else None
        if not (event.is_delta and isinstance(thought, _Thought) and not thought.closed):
            thought = _Thought(stage=event.stage)
            self._parts.append(thought)
        thought.pieces.append(event.content)
        thought.redacted = thought.redacted or event.redacted
        thought.closed = not event.is_delta

    def _add_sound(self, audio: str) -> None:
        """Append the bytes of one piece; each piece is base64 on its own."""
        try:
            piece = decode_base64(audio)
        except ValueError:
            raise RemoteProtocolError(ErrorCode.INVALID_MEDIA, "the audio is not base64") from None
        sound = self._parts[-1] if self._parts else None
        if not isinstance(sound, _Sound):
            sound = _Sound()
            self._parts.append(sound)
        sound.pieces.append(piece)

    def _end_sound(self, duration_ms: float | None) -> None:
        for part in reversed(self._parts):
            if isinstance(part, _Sound):
                part.duration_ms = duration_ms
                return

    def _call(self, call_id: str) -> _Call:
        call = self._calls.get(call_id)
        if call is None:
            call = self._calls[call_id] = _Call(call_id)
            self._parts.append(call)
        return call

    def _add_result(self, result: ToolResultData) -> None:
        self._parts.append(_Whole(ToolResultContent(tool_result=result)))

    def _replace(self, output: tuple[ContentItem, ...]) -> None:
        """Replace the output built from pieces with the server's whole output."""
        self._parts = list(_parts_of(output))
        self._calls = {part.call_id: part for part in self._parts if isinstance(part, _Call)}
        self._offset = sum(len(item.text) for item in output if isinstance(item, TextContent))


def _parts_of(output: tuple[ContentItem, ...]) -> Iterator[_Part]:
    for item in output:
        match item:
            case TextContent():
                text = _Text()
                text.pieces.append(item.text)
                yield text
            case ToolCallContent(tool_call=data):
                call = _Call(data.id)
                call.name, call.pieces = data.name, [data.arguments]
                yield call
            case _:
                yield _Whole(item)


def events_of_output(
    response_id: str, output: Iterable[ContentItem], *, client_calls: Collection[str] = ()
) -> Iterator[Event]:
    """Yield the events that make up an output, in order: thoughts, text and deltas.

    The first text is at offset 0, so that it replaces any text that a reader already has. Calls
    with ids in ``client_calls`` were made to the client: neither they nor their results have a
    delta (§6.6).
    """
    at = 0
    for item in output:
        match item:
            case TextContent(text=text):
                delta, offset = Delta(type="text", text=text), at
                at += len(text)
                yield ResponseDelta(response_id=response_id, delta=delta, offset=offset)
            case ThinkingContent():
                yield Thinking(
                    response_id=response_id,
                    content=item.thinking,
                    stage=item.stage,
                    redacted=item.redacted,
                )
            case ToolCallContent(tool_call=call) if call.id not in client_calls:
                delta = Delta(type="tool_call", tool_call=call)
                yield ResponseDelta(response_id=response_id, delta=delta)
            case ToolResultContent(tool_result=result) if result.call_id not in client_calls:
                delta = Delta(type="tool_result", tool_result=result)
                yield ResponseDelta(response_id=response_id, delta=delta)
            case _ if (medium := medium_delta(item)) is not None:
                yield ResponseDelta(response_id=response_id, delta=medium)


def medium_delta(item: ContentItem) -> Delta | None:
    """Return the delta that carries a whole medium (UAMP §6.6), or None for any other item."""
    if not isinstance(item, MediaContent):
        return None
    members = structs.asdict(item)
    fields = {name: value for name, value in members.items() if name in Delta.__struct_fields__}
    return Delta(type=str(type(item).__struct_config__.tag), **fields)


def _medium(delta: Delta) -> ContentItem | None:
    """Return the content item in a media delta of the reference implementation."""
    item: MediaContent
    match delta:
        case Delta(type="audio", audio=MediaUrl() as audio):
            item = AudioContent(audio=audio, format=delta.format, duration_ms=delta.duration_ms)
        case Delta(type="image", image=str() | MediaUrl() as image):
            item = ImageContent(image=image, format=delta.format, alt_text=delta.alt_text)
        case Delta(type="video", video=str() | MediaUrl() as video):
            item = VideoContent(video=video, format=delta.format)
        case Delta(type="file", file=str() | MediaUrl() as file):
            item = FileContent(
                file=file,
                filename=delta.filename or "file",
                mime_type=delta.mime_type or "application/octet-stream",
            )
        case _:
            return None
    return structs.replace(
        item,
        content_id=delta.content_id,
        description=delta.description,
        display_hint=delta.display_hint,
    )
