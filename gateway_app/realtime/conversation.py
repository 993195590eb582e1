"""The items of a Realtime conversation, and the messages that they are for an agent (UAMP §8.5)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec

import uamp
from gateway_app.openai.errors import refused, unsupported
from gateway_app.shapes.media import medium_of
from uamp import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gateway_app.shapes.message_origins import CurrentTexts

ItemId: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
MAX_ITEMS: Final = uamp.DEFAULT_LIMITS.messages
MAX_BYTES: Final = uamp.DEFAULT_LIMITS.messages_bytes
FIRST: Final = "root"
"""The `previous_item_id` of an item that is put before all others."""
SPOKEN: Final = frozenset({"audio", "output_audio"})
"""The types of what an agent said, of which the conversation keeps the words."""
# The ids of the items of an answer, as the writer makes them.
_ANSWERED: Final = re.compile(r"item_(resp_[0-9a-f]{32})_[0-9]+")
_TEXTS: Final = frozenset({"input_text", "text", "output_text"})
_NEEDED: Final = {
    "message": ("role", "content"),
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
}


class RealtimePart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a message: text, a picture as a URL or a `data:` URL, or sound.

    `audio` is base64 samples of the client's, or the address of the content that has them.
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
    """A message, a call of a client's tool, or what the tool returned."""

    id: ItemId | None = None
    type: Literal["message", "function_call", "function_call_output", "item_reference"]
    role: Literal["user", "system", "assistant"] | None = None
    content: Annotated[tuple[RealtimePart, ...], msgspec.Meta(max_length=100)] | None = None
    call_id: ItemId | None = None
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=128)] | None = None
    arguments: str | None = None
    output: str | None = None
    status: Literal["in_progress", "completed", "incomplete"] = "completed"

    @property
    def size(self) -> int:
        """The bytes of the item, as JSON; sound has limits of its own."""
        parts = tuple(msgspec.structs.replace(part, audio=None) for part in self.content or ())
        return len(msgspec.json.encode(msgspec.structs.replace(self, content=parts)))

    def body(self, *, is_ga: bool) -> dict[str, Any]:
        """Return the item as a client of the dialect reads it."""
        shown: dict[str, Any] = {
            "id": self.id,
            "object": "realtime.item",
            "type": self.type,
            "status": self.status,
        }
        for name in _NEEDED[self.type]:
            shown[name] = getattr(self, name)
        if self.type == "message":
            shown["content"] = [self._part(part, is_ga=is_ga) for part in self.content or ()]
        return shown

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
    """Raise RemoteProtocolError for an item without its members, or with sound not taken."""
    if item.type == "item_reference":
        raise refused(f"{place}.type", "A reference stands in response.input alone.")
    for name in _NEEDED[item.type]:
        if getattr(item, name) is None:
            raise refused(f"{place}.{name}", f"A {item.type} has this member.")
    for index, part in enumerate(item.content or ()):
        _check_part(part, item.role, f"{place}.content[{index}]", takes_sound=takes_sound)


def _check_part(part: RealtimePart, role: str | None, at: str, *, takes_sound: bool) -> None:
    match part.type:
        case "input_audio" if not takes_sound:
            raise refused(at, "The agent takes no sound.", ErrorCode.UNSUPPORTED_MODALITY)
        case "input_audio" if role != "user" or not part.audio:
            raise refused(f"{at}.audio", "Sound stands in messages of the user, in base64.")
        case "audio" | "output_audio" if role != "assistant" or part.transcript is None:
            refusal = "What an agent said is in its messages, as a transcript."
            raise refused(at, refusal, ErrorCode.UNSUPPORTED_MODALITY)
        case "input_audio" | "audio" | "output_audio":
            return
        case "input_image" if role != "user":
            raise unsupported(at, "Pictures stand in messages of the user.")
        case "input_image" if not part.image_url:
            raise refused(f"{at}.image_url", "The part lacks its content.")
        case kind if kind in _TEXTS and part.text is None:
            raise refused(f"{at}.text", "The part lacks its content.")


class RealtimeConversation:
    """The items of one socket, in their order: at most MAX_ITEMS and MAX_BYTES, and one answer.

    The task of the socket changes it, and its pump adds what the agent answers.
    """

    def __init__(self) -> None:
        self._items: list[RealtimeItem] = []
        # The bytes of the items; None where they have to be counted anew.
        self._bytes: int | None = 0
        # How long the agent spoke, and where its client cut that, by item.
        self.spoken_ms: dict[str, int] = {}
        self._cut_at: dict[str, int] = {}
        # The response that answered an item of the client, by item.
        self._answered_by: dict[str, str] = {}

    @property
    def items(self) -> Sequence[RealtimeItem]:
        """All items, in their order."""
        return tuple(self._items)

    def take(self, item: RealtimeItem, after: str | None) -> str | None:
        """Insert an item of the client, and return the id of the item before it.

        Raises RemoteProtocolError for an id that is there, an unknown place, a result of no call,
        and a conversation that is full.
        """
        if any(known.id == item.id for known in self._items):
            raise refused("item.id", "The conversation has an item of this id.")
        check_results((item,), self._items, "item.call_id")
        self.check_room("item", more=item.size)
        if after is None:
            return self.append(item)
        at = 0 if after == FIRST else self._index(after, "previous_item_id") + 1
        self._items.insert(at, item)
        self._grow(item)
        return self.before(item)

    def check_room(self, place: str, *, more: int = 0) -> None:
        """Raise RemoteProtocolError too_many_items where no item of `more` bytes has room."""
        if self._bytes is None:
            self._bytes = sum(item.size for item in self._items)
        if len(self._items) >= MAX_ITEMS or self._bytes + more > MAX_BYTES:
            raise refused(
                place,
                f"A conversation has at most {MAX_ITEMS} items and {MAX_BYTES} bytes. Delete some.",
                ErrorCode.TOO_MANY_ITEMS,
            )

    def append(self, item: RealtimeItem) -> str | None:
        """Add an item at the end, and return the id of the item before it."""
        self._items.append(item)
        self._grow(item)
        return self.before(item)

    def before(self, item: RealtimeItem) -> str | None:
        """Return the id of the item before one; None for the first and for one that was deleted."""
        ids = [known.id for known in self._items]
        at = ids.index(item.id) if item.id in ids else 0
        return ids[at - 1] if at else None

    def replace(self, item: RealtimeItem) -> None:
        """Put an item in the place of the one with its id, unless that was deleted."""
        item = self._cut(item)
        self._items = [item if known.id == item.id else known for known in self._items]
        self._bytes = None

    def item(self, item_id: str, place: str = "item_id") -> RealtimeItem:
        """Return an item; raises RemoteProtocolError where there is none of this id."""
        return self._items[self._index(item_id, place)]

    def truncate(self, item_id: str, at_ms: int) -> None:
        """Cut what an agent said to what was played; raises RemoteProtocolError.

        An answer under way is cut when it is done.
        """
        item = self.item(item_id)
        if not any(part.type in SPOKEN for part in item.content or ()) and not (
            item.status == "in_progress" and item_id in self.spoken_ms
        ):
            raise refused(
                "item_id",
                "Only sound of the agent can be truncated.",
                ErrorCode.UNSUPPORTED_MODALITY,
            )
        if item.status != "in_progress" and at_ms > self.spoken_ms.get(item_id, 0):
            raise refused("audio_end_ms", "The sound is shorter.")
        self._cut_at[item_id] = at_ms
        if item.status != "in_progress":
            self.replace(item)

    def transcribe(self, item_id: str, index: int, transcript: str) -> None:
        """Keep the words of a sound, if its item is still there."""
        for item in self._items:
            if item.id == item_id and item.content:
                parts = list(item.content)
                parts[index] = msgspec.structs.replace(parts[index], transcript=transcript)
                self.replace(msgspec.structs.replace(item, content=tuple(parts)))

    def _cut(self, item: RealtimeItem) -> RealtimeItem:
        """Return an item of the agent with the share of its words that was played."""
        at_ms, whole_ms = self._cut_at.get(item.id or ""), self.spoken_ms.get(item.id or "", 0)
        if at_ms is None or at_ms >= whole_ms or item.status == "in_progress":
            return item
        parts = []
        for part in item.content or ():
            words = (part.transcript or "").split()
            kept = " ".join(words[: len(words) * at_ms // whole_ms])
            is_spoken = part.type in SPOKEN
            parts.append(msgspec.structs.replace(part, transcript=kept) if is_spoken else part)
        # What was cut once is not cut again in proportion.
        self.spoken_ms[item.id or ""] = at_ms
        return msgspec.structs.replace(item, content=tuple(parts))

    def delete(self, item_id: str) -> None:
        """Remove an item; raises RemoteProtocolError where there is none of this id."""
        del self._items[self._index(item_id, "item_id")]
        self._bytes = None

    def note_question(self, item_id: str | None, response_id: str) -> None:
        """Take note that an item is the question of a response."""
        if item_id is not None:
            self._answered_by[item_id] = response_id

    @property
    def response_ids(self) -> set[str]:
        """The responses whose questions and answers are items."""
        ids = {self._answered_by.get(item.id or "") or _answer_of(item) for item in self._items}
        return ids - {""}

    def update(self, texts: Mapping[str, CurrentTexts]) -> list[str]:
        """Have the items be what their messages are now; return the ids of those that went.

        The results of calls go with the answer that made the calls.
        """
        kept: list[RealtimeItem] = []
        withdrawn: set[str | None] = set()
        for item in self._items:
            asked = texts.get(self._answered_by.get(item.id or "", ""))
            answered = texts.get(_answer_of(item))
            gone = answered is not None and not answered.has_answer
            if gone and item.type == "function_call":
                withdrawn.add(item.call_id)
            is_result = item.type == "function_call_output" and item.call_id in withdrawn
            if gone or is_result or (asked is not None and not asked.question):
                continue
            kept.append(_reworded(item, asked.question) if asked and asked.is_edited else item)
        left = {item.id for item in kept}
        went = [item.id or "" for item in self._items if item.id not in left]
        self._items, self._bytes = kept, None
        return went

    def discard(self, item_id: str | None) -> bool:
        """Remove an item if it is there; return whether it was."""
        kept = [item for item in self._items if item.id != item_id]
        was_there = len(kept) < len(self._items)
        self._items, self._bytes = kept, None
        return was_there

    def _grow(self, item: RealtimeItem) -> None:
        if self._bytes is not None:
            self._bytes += item.size

    def _index(self, item_id: str, place: str) -> int:
        for index, item in enumerate(self._items):
            if item.id == item_id:
                return index
        raise refused(place, "The conversation has no item of this id.")


def _answer_of(item: RealtimeItem) -> str:
    """Return the response whose answer an item is; '' for one of the client."""
    known = _ANSWERED.fullmatch(item.id or "")
    return known[1] if known else ""


def _reworded(item: RealtimeItem, question: tuple[uamp.ContentItem, ...]) -> RealtimeItem:
    text = RealtimePart(type="input_text", text=uamp.text_of(question))
    others = [part for part in item.content or () if part.type not in _TEXTS]
    return msgspec.structs.replace(item, content=(text, *others))


def check_results(items: Iterable[RealtimeItem], known: Iterable[RealtimeItem], place: str) -> None:
    """Raise RemoteProtocolError for a result whose call is not among the known items."""
    calls = {item.call_id for item in known if item.type == "function_call"}
    for item in items:
        if item.type == "function_call_output" and item.call_id not in calls:
            raise refused(place, "The result names no call of this conversation.")


def check_context(items: Iterable[RealtimeItem], place: str) -> None:
    """Raise RemoteProtocolError event_too_large where a response has to read too much.

    A reference counts as often as it is there.
    """
    if _exceeds(items, MAX_BYTES):
        raise refused(
            place,
            f"A response reads items of at most {MAX_BYTES} bytes. Delete some, or name fewer.",
            ErrorCode.EVENT_TOO_LARGE,
        )


def _exceeds(items: Iterable[RealtimeItem], most: int) -> bool:
    """Return whether items have more bytes; those after that are not looked at."""
    for item in items:
        most -= item.size
        if most < 0:
            break
    return most < 0


def messages_of(items: Iterable[RealtimeItem]) -> tuple[uamp.Message, ...]:
    """Return the messages that items are; calls in a row are one message of the assistant."""
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
    is_text = all(isinstance(one, uamp.TextContent) for one in items)
    return uamp.Message(
        role=item.role or "user",
        content=uamp.text_of(items),
        content_items=None if is_text else items,
    )


def _content(part: RealtimePart) -> uamp.ContentItem:
    if part.type in _TEXTS:
        return uamp.TextContent(text=part.text or "")
    if part.type in SPOKEN:
        return uamp.TextContent(text=part.transcript or "")
    if part.type == "input_audio":
        return uamp.AudioContent(audio=uamp.MediaUrl(url=part.audio or ""), format="wav")
    return uamp.ImageContent(image=medium_of(part.image_url or ""), detail=part.detail)


def is_unstored(part: RealtimePart) -> bool:
    """Return whether a part is sound that is in memory alone."""
    return part.type == "input_audio" and uamp.content_id_of(part.audio or "") is None


def unstored_bytes(item: RealtimeItem) -> int:
    """Return the bytes of an item's sounds that are in memory alone."""
    return sum(len(part.audio or "") for part in item.content or () if is_unstored(part))


def sounds_of(items: Sequence[RealtimeItem]) -> list[tuple[str, int]]:
    """Return the sounds that a response answers: item and place, of the last message."""
    last = items[-1] if items else None
    if last is None or last.id is None:
        return []
    parts = enumerate(last.content or ())
    return [(last.id, index) for index, part in parts if part.type == "input_audio"]
