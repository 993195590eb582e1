"""The conversation of a Realtime socket: its items in order, within limits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

import uamp
from gateway_app.openai.errors import refused
from gateway_app.realtime.items import SPOKEN, TEXTS, RealtimeItem, RealtimePart
from uamp import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gateway_app.types.message_origins import CurrentTexts

MAX_ITEMS: Final = uamp.DEFAULT_LIMITS.messages
MAX_BYTES: Final = uamp.DEFAULT_LIMITS.messages_bytes
FIRST: Final = "root"
"""The `previous_item_id` that inserts an item before all others."""
# The ids of the items of an answer, in the writer's format.
_ANSWERED: Final = re.compile(r"item_(resp_[0-9a-f]{32})_[0-9]+")


class RealtimeConversation:
    """The items of one socket, in order: at most MAX_ITEMS and MAX_BYTES, plus one answer.

    The socket's task changes them, and its pump appends the agent's answers.
    """

    def __init__(self) -> None:
        self._items: list[RealtimeItem] = []
        # The bytes of all items; None if they must be counted again.
        self._bytes: int | None = 0
        # How long the agent spoke, and where its client truncated the speech, by item.
        self.spoken_ms: dict[str, int] = {}
        self._cut_at: dict[str, int] = {}
        # The response that answered each item of the client.
        self._answered_by: dict[str, str] = {}

    @property
    def items(self) -> Sequence[RealtimeItem]:
        """All items, in order."""
        return tuple(self._items)

    def take(self, item: RealtimeItem, after: str | None) -> str | None:
        """Insert an item of the client, and return the id of the item before it.

        Raises RemoteProtocolError for a duplicate id, an unknown place, a result without a call,
        and a full conversation.
        """
        if any(existing.id == item.id for existing in self._items):
            raise refused("item.id", "The conversation already has an item with this id.")
        check_results((item,), self._items, "item.call_id")
        self.check_room("item", more=item.size)
        if after is None:
            return self.append(item)
        at = 0 if after == FIRST else self._index(after, "previous_item_id") + 1
        self._items.insert(at, item)
        self._grow(item)
        return self.before(item)

    def check_room(self, place: str, *, more: int = 0) -> None:
        """Raise RemoteProtocolError too_many_items if an item of `more` bytes does not fit."""
        if self._bytes is None:
            self._bytes = sum(item.size for item in self._items)
        if len(self._items) >= MAX_ITEMS or self._bytes + more > MAX_BYTES:
            raise refused(
                place,
                f"A conversation may have at most {MAX_ITEMS} items and {MAX_BYTES} bytes."
                " Delete some.",
                ErrorCode.TOO_MANY_ITEMS,
            )

    def append(self, item: RealtimeItem) -> str | None:
        """Append an item, and return the id of the item before it."""
        self._items.append(item)
        self._grow(item)
        return self.before(item)

    def before(self, item: RealtimeItem) -> str | None:
        """Return the id of the item before this one; None if this is the first or was deleted."""
        ids = [existing.id for existing in self._items]
        at = ids.index(item.id) if item.id in ids else 0
        return ids[at - 1] if at else None

    def replace(self, item: RealtimeItem) -> None:
        """Replace the item with the same id, unless it was deleted."""
        item = self._cut(item)
        self._items = [item if existing.id == item.id else existing for existing in self._items]
        self._bytes = None

    def item(self, item_id: str, place: str = "item_id") -> RealtimeItem:
        """Return the item of this id; raises RemoteProtocolError if there is none."""
        return self._items[self._index(item_id, place)]

    def truncate(self, item_id: str, at_ms: int) -> None:
        """Cut an agent's speech to the part that was played; raises RemoteProtocolError.

        An answer in progress is cut when it is done.
        """
        item = self.item(item_id)
        if not any(part.type in SPOKEN for part in item.content or ()) and not (
            item.status == "in_progress" and item_id in self.spoken_ms
        ):
            raise refused(
                "item_id",
                "Only the agent's audio can be truncated.",
                ErrorCode.UNSUPPORTED_MODALITY,
            )
        if item.status != "in_progress" and at_ms > self.spoken_ms.get(item_id, 0):
            raise refused("audio_end_ms", "The audio is shorter.")
        self._cut_at[item_id] = at_ms
        if item.status != "in_progress":
            self.replace(item)

    def transcribe(self, item_id: str, index: int, transcript: str) -> None:
        """Set the transcript of a sound, if its item still exists."""
        for item in self._items:
            if item.id == item_id and item.content:
                parts = list(item.content)
                parts[index] = msgspec.structs.replace(parts[index], transcript=transcript)
                self.replace(msgspec.structs.replace(item, content=tuple(parts)))

    def _cut(self, item: RealtimeItem) -> RealtimeItem:
        """Return an agent's item with only the share of its words that was played."""
        at_ms, whole_ms = self._cut_at.get(item.id or ""), self.spoken_ms.get(item.id or "", 0)
        if at_ms is None or at_ms >= whole_ms or item.status == "in_progress":
            return item
        parts = []
        for part in item.content or ():
            words = (part.transcript or "").split()
            transcript = " ".join(words[: len(words) * at_ms // whole_ms])
            is_spoken = part.type in SPOKEN
            parts.append(
                msgspec.structs.replace(part, transcript=transcript) if is_spoken else part
            )
        # Keeps a second call from cutting the rest in proportion once more.
        self.spoken_ms[item.id or ""] = at_ms
        return msgspec.structs.replace(item, content=tuple(parts))

    def delete(self, item_id: str) -> None:
        """Remove an item; raises RemoteProtocolError if there is none with this id."""
        del self._items[self._index(item_id, "item_id")]
        self._bytes = None

    def note_question(self, item_id: str | None, response_id: str) -> None:
        """Record that an item is the question of a response."""
        if item_id is not None:
            self._answered_by[item_id] = response_id

    @property
    def response_ids(self) -> set[str]:
        """The responses whose questions or answers are among the items."""
        ids = {self._answered_by.get(item.id or "") or _answer_of(item) for item in self._items}
        return ids - {""}

    def update(self, texts: Mapping[str, CurrentTexts]) -> list[str]:
        """Apply the current texts to the items; return the ids of the items removed.

        An answer that made calls is removed together with their results.
        """
        items: list[RealtimeItem] = []
        withdrawn: set[str | None] = set()
        for item in self._items:
            question_texts = texts.get(self._answered_by.get(item.id or "", ""))
            answer_texts = texts.get(_answer_of(item))
            gone = answer_texts is not None and not answer_texts.has_answer
            if gone and item.type == "function_call":
                withdrawn.add(item.call_id)
            is_result = item.type == "function_call_output" and item.call_id in withdrawn
            if gone or is_result or (question_texts is not None and not question_texts.question):
                continue
            items.append(
                _reworded(item, question_texts.question)
                if question_texts and question_texts.is_edited
                else item
            )
        remaining_ids = {item.id for item in items}
        removed_ids = [item.id or "" for item in self._items if item.id not in remaining_ids]
        self._items, self._bytes = items, None
        return removed_ids

    def discard(self, item_id: str | None) -> bool:
        """Remove an item if present; return whether it was."""
        items = [item for item in self._items if item.id != item_id]
        was_there = len(items) < len(self._items)
        self._items, self._bytes = items, None
        return was_there

    def _grow(self, item: RealtimeItem) -> None:
        if self._bytes is not None:
            self._bytes += item.size

    def _index(self, item_id: str, place: str) -> int:
        for index, item in enumerate(self._items):
            if item.id == item_id:
                return index
        raise refused(place, "The conversation has no item with this id.")


def _answer_of(item: RealtimeItem) -> str:
    """Return the response whose answer includes an item; '' for an item of the client."""
    match = _ANSWERED.fullmatch(item.id or "")
    return match[1] if match else ""


def _reworded(item: RealtimeItem, question: tuple[uamp.ContentItem, ...]) -> RealtimeItem:
    text = RealtimePart(type="input_text", text=uamp.text_of(question))
    others = [part for part in item.content or () if part.type not in TEXTS]
    return msgspec.structs.replace(item, content=(text, *others))


def check_results(
    items: Iterable[RealtimeItem], context: Iterable[RealtimeItem], place: str
) -> None:
    """Raise RemoteProtocolError for a result whose call is not among the known items."""
    calls = {item.call_id for item in context if item.type == "function_call"}
    for item in items:
        if item.type == "function_call_output" and item.call_id not in calls:
            raise refused(place, "The result does not match any call in this conversation.")


def check_context(items: Iterable[RealtimeItem], place: str) -> None:
    """Raise RemoteProtocolError event_too_large if a response would have to read too much.

    An item counts once for each reference to it.
    """
    if _exceeds(items, MAX_BYTES):
        raise refused(
            place,
            f"A response reads items of at most {MAX_BYTES} bytes. Delete some, or name fewer.",
            ErrorCode.EVENT_TOO_LARGE,
        )


def _exceeds(items: Iterable[RealtimeItem], limit: int) -> bool:
    """Return whether items exceed `limit` bytes, without examining further items."""
    for item in items:
        limit -= item.size
        if limit < 0:
            break
    return limit < 0
