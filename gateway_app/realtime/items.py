"""The items of a Realtime conversation, and their conversion to messages (UAMP §8.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec

import uamp
from gateway_app.openai.errors import refused, unsupported
from gateway_app.openai.request import CallId
from gateway_app.types.media import medium_of
from uamp import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ItemId: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
SPOKEN: Final = frozenset({"audio", "output_audio"})
"""The types of an agent's speech, of which the conversation keeps the transcript."""
TEXTS: Final = frozenset({"input_text", "text", "output_text"})
"""The types of text parts."""
_NEEDED: Final = {
    "message": ("role", "content"),
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
}


class RealtimePart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a message: text, a picture as a URL or a `data:` URL, or sound.

    `audio` is base64 samples from the client, or the address of the content that holds them.
    """

    type: Literal[
        "input_text", "text", "output_text", "input_image", "input_audio", "audio", "output_audio"
    ]
    text: str | None = None
    image_url: str | None = None
    detail: Literal["auto", "low", "high"] | None = None
    audio: str | None = None
    transcript: str | None = None


class RealtimeItem(msgspec.Struct, frozen=True, kw_only=True):
    """A message, a call of a client's tool, or its result."""

    id: ItemId | None = None
    type: Literal["message", "function_call", "function_call_output", "item_reference"]
    role: Literal["user", "system", "assistant"] | None = None
    content: Annotated[tuple[RealtimePart, ...], msgspec.Meta(max_length=100)] | None = None
    call_id: CallId | None = None
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=128)] | None = None
    arguments: str | None = None
    output: str | None = None
    status: Literal["in_progress", "completed", "incomplete"] = "completed"

    @property
    def size(self) -> int:
        """The bytes of the item as JSON; sound is excluded, as it has its own limits."""
        parts = tuple(msgspec.structs.replace(part, audio=None) for part in self.content or ())
        return len(msgspec.json.encode(msgspec.structs.replace(self, content=parts)))

    def body(self, *, is_ga: bool) -> dict[str, Any]:
        """Return the item in the format of the client's dialect."""
        members: dict[str, Any] = {
            "id": self.id,
            "object": "realtime.item",
            "type": self.type,
            "status": self.status,
        }
        for name in _NEEDED[self.type]:
            members[name] = getattr(self, name)
        if self.type == "message":
            members["content"] = [self._part(part, is_ga=is_ga) for part in self.content or ()]
        return members

    def _part(self, part: RealtimePart, *, is_ga: bool) -> dict[str, Any]:
        if part.type == "input_image":
            picture = {"type": part.type, "image_url": part.image_url, "detail": part.detail}
            return {name: value for name, value in picture.items() if value is not None}
        if part.type == "input_audio":
            return {"type": part.type, "transcript": part.transcript}
        if part.type in SPOKEN:
            name = "output_audio" if is_ga else "audio"
            return {"type": name, "transcript": part.transcript or ""}
        of_agent = "output_text" if is_ga else "text"
        return {
            "type": of_agent if self.role == "assistant" else "input_text",
            "text": part.text or "",
        }


def check_item(item: RealtimeItem, place: str, *, takes_sound: bool) -> None:
    """Raise RemoteProtocolError for a missing member, or for sound if the agent accepts none."""
    if item.type == "item_reference":
        raise refused(f"{place}.type", "A reference is allowed only in response.input.")
    for name in _NEEDED[item.type]:
        if getattr(item, name) is None:
            raise refused(f"{place}.{name}", f"An item of type {item.type} must have {name}.")
    for index, part in enumerate(item.content or ()):
        _check_part(part, item.role, f"{place}.content[{index}]", takes_sound=takes_sound)


def _check_part(part: RealtimePart, role: str | None, at: str, *, takes_sound: bool) -> None:
    match part.type:
        case "input_audio" if not takes_sound:
            raise refused(at, "The agent does not accept audio.", ErrorCode.UNSUPPORTED_MODALITY)
        case "input_audio" if role != "user" or not part.audio:
            raise refused(f"{at}.audio", "Audio belongs in user messages, in base64.")
        case "audio" | "output_audio" if role != "assistant" or part.transcript is None:
            refusal = "An agent's speech is in its messages, as a transcript."
            raise refused(at, refusal, ErrorCode.UNSUPPORTED_MODALITY)
        case "input_audio" | "audio" | "output_audio":
            return
        case "input_image" if role != "user":
            raise unsupported(at, "Pictures belong in user messages.")
        case "input_image" if not part.image_url:
            raise refused(f"{at}.image_url", "The part lacks its content.")
        case kind if kind in TEXTS and part.text is None:
            raise refused(f"{at}.text", "The part lacks its content.")


def messages_of(items: Iterable[RealtimeItem]) -> tuple[uamp.Message, ...]:
    """Convert items to messages; consecutive calls become one assistant message."""
    messages: list[uamp.Message] = []
    for item in items:
        if item.type == "function_call":
            call = uamp.ToolCallData(
                id=item.call_id or "", name=item.name or "", arguments=item.arguments or ""
            )
            if messages and messages[-1].role == "assistant":
                last = messages.pop()
            else:
                last = uamp.Message(role="assistant", content="")
            calls = (*(last.tool_calls or ()), call)
            messages.append(msgspec.structs.replace(last, tool_calls=calls))
        elif item.type == "function_call_output":
            messages.append(
                uamp.Message(role="tool", content=item.output, tool_call_id=item.call_id)
            )
        elif item.content:
            messages.append(_message(item, item.content))
    return tuple(messages)


def _message(item: RealtimeItem, parts: Sequence[RealtimePart]) -> uamp.Message:
    items = tuple(map(_content, parts))
    is_text = all(isinstance(content, uamp.TextContent) for content in items)
    return uamp.Message(
        role=item.role or "user",
        content=uamp.text_of(items),
        content_items=None if is_text else items,
    )


def _content(part: RealtimePart) -> uamp.ContentItem:
    if part.type in TEXTS:
        return uamp.TextContent(text=part.text or "")
    if part.type in SPOKEN:
        return uamp.TextContent(text=part.transcript or "")
    if part.type == "input_audio":
        return uamp.AudioContent(audio=uamp.MediaUrl(url=part.audio or ""), format="wav")
    return uamp.ImageContent(image=medium_of(part.image_url or ""), detail=part.detail)


def is_unstored(part: RealtimePart) -> bool:
    """Return whether a part is sound that exists only in memory."""
    return part.type == "input_audio" and uamp.content_id_of(part.audio or "") is None


def unstored_bytes(item: RealtimeItem) -> int:
    """Return the bytes of an item's sounds that exist only in memory."""
    return sum(len(part.audio or "") for part in item.content or () if is_unstored(part))


def sounds_of(items: Sequence[RealtimeItem]) -> list[tuple[str, int]]:
    """Return the item and the place of each sound in the last message, which is answered."""
    last = items[-1] if items else None
    if last is None or last.id is None:
        return []
    parts = enumerate(last.content or ())
    return [(last.id, index) for index, part in parts if part.type == "input_audio"]
