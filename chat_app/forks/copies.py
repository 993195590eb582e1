"""The messages that a fork copies: the visible version of each, in the chat's order.

Synchronous, without a transaction or lock: the result may be outdated at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from django.conf import settings
from django.db.models import Q, TextField
from django.db.models.functions import Cast, Length

from chat_app.models import Message

if TYPE_CHECKING:
    from django.db.models import QuerySet

_SIZE: Final = Length("content") + Length(Cast("content_items", TextField()))


class ForkTooLarge(Exception):
    """The history up to the message exceeds the limit of a fork, which `str` states."""


class CopiedHistory(NamedTuple):
    """The messages to copy, in order, and for every version the first one of its message."""

    messages: list[Message]
    first_versions: dict[str, str]
    size: int


class _Place(NamedTuple):
    """The facts that decide whether a message is copied; `size` is in characters."""

    id: str
    version_of: str | None
    replaced_by: str | None
    is_deleted: bool
    size: int


_COLUMNS: Final = ("pk", "version_of", "replaced_by", "deleted_at", "size")


def history_until(message: Message) -> CopiedHistory:
    """Return the history that ends with a message; raises ForkTooLarge.

    It is the history of the chat, or of the thread if the message appears only there. It ends with
    exactly this version; every other answer is in its current version. Deleted messages are
    left out. `size` is in bytes of text and content items.
    """
    rows = Message.objects.filter(chat_id=message.chat_id)
    if message.thread_only:
        root = message.thread
        rows = rows.filter(Q(thread=root) | Q(pk=root) | Q(version_of=root))
    else:
        rows = rows.filter(thread_only__isnull=True)
    places, first_versions = _visible_places(rows, message)
    if sum(place.size for place in places) > settings.UAMP_FORK_BYTES:
        raise _too_large()
    by_id = Message.objects.in_bulk([place.id for place in places])
    # Messages deleted in the meantime are missing, or have no text.
    messages = [by_id[place.id] for place in places if place.id in by_id]
    size = sum(
        len(row.content.encode()) + len(msgspec.json.encode(row.content_items)) for row in messages
    )
    if size > settings.UAMP_FORK_BYTES:
        raise _too_large()
    return CopiedHistory(messages, first_versions, size)


def _visible_places(
    rows: QuerySet[Message], message: Message
) -> tuple[list[_Place], dict[str, str]]:
    """Return the visible version of each message, and the first version of every version.

    A later version takes the place of the first.
    """
    first_id = message.version_of or message.pk
    last = message.seq
    if message.version_of is not None:
        first = Message.objects.filter(pk=first_id).values_list("seq", flat=True).first()
        last = last if first is None else first
    until = rows.filter(seq__lte=last).order_by("seq").annotate(size=_SIZE)
    limit: int = settings.UAMP_FORK_MESSAGES
    places = [_place(*row) for row in until.values_list(*_COLUMNS)[: limit + 1]]
    if len(places) > limit:
        raise _too_large()
    first_versions = {place.id: place.version_of or place.id for place in places}
    groups: dict[str, _Place | None] = dict.fromkeys(first_versions.values())
    groups.update(
        (place.version_of or place.id, place) for place in places if not place.replaced_by
    )
    _add_later_versions(rows, groups, first_versions)
    named = rows.filter(pk=message.pk).annotate(size=_SIZE).values_list(*_COLUMNS)
    groups[first_id] = next((_place(*row) for row in named), None)
    first_versions[message.pk] = first_id
    return [place for place in groups.values() if place and not place.is_deleted], first_versions


def _add_later_versions(
    rows: QuerySet[Message], groups: dict[str, _Place | None], first_versions: dict[str, str]
) -> None:
    """Add the current versions of answers regenerated after the last message."""
    replaced = [first_id for first_id, version in groups.items() if version is None]
    if not replaced:
        return
    later = rows.filter(version_of__in=replaced, replaced_by__isnull=True).annotate(size=_SIZE)
    for row in later.values_list(*_COLUMNS):
        place = _place(*row)
        first_id = place.version_of or place.id
        groups[first_id] = place
        first_versions[place.id] = first_id


def _place(
    pk: str, version_of: str | None, replaced_by: str | None, deleted_at: object, size: int | None
) -> _Place:
    return _Place(pk, version_of, replaced_by, deleted_at is not None, size or 0)


def _too_large() -> ForkTooLarge:
    return ForkTooLarge(
        f"A fork begins with at most {settings.UAMP_FORK_MESSAGES} messages"
        f" of {settings.UAMP_FORK_BYTES} bytes together."
    )
