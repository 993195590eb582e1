"""Rights in the chats from which a chat was copied: showing a copy needs rights in its source.

Others wrote the history of a fork in its source. A member who may not show the source to others may
not show them its copy either, and losing a right there means losing it in the fork. Nor may they
take a file of others from there into another chat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db.models import Exists, OuterRef

from chat_app.contents import reading_rights
from chat_app.contents.reading_rights import ContentNotFound
from chat_app.members.rights import RIGHTS, NotAllowed, Right
from chat_app.models import ChatOrigin, Content, ContentUse, Message, Participant

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.db.models import QuerySet

    from chat_app.contents.quota import ContentOwner

GENERATIONS: Final = 64
"""How many generations of forks are checked; a longer chain grants no right."""
SOURCES: Final = 20
"""How many chats that show a file are checked for the right to take it from there."""


def may_in_sources(chat_id: str, user_id: int, rights: Collection[Right]) -> bool:
    """Return whether a person has rights in every chat from which a chat was copied.

    What was copied from a deleted chat must be the person's own, apart from the answers of agents;
    the chats that it was forked from count as before.
    """
    roles = [role for role, theirs in RIGHTS.items() if set(rights) <= theirs]
    for _ in range(GENERATIONS):
        origin = ChatOrigin.objects.filter(pk=chat_id).first()
        if origin is None:
            return True
        if _has_left_words_of_others(chat_id, user_id):
            return False
        if origin.source_id is None:
            return True
        allowed = Participant.objects.filter(
            chat_id=origin.source_id, user_id=user_id, left_at__isnull=True, role__in=roles
        )
        if not allowed.exists():
            return False
        chat_id = origin.source_id
    return False


def _has_left_words_of_others(chat_id: str, user_id: int) -> bool:
    """Return whether a fork has messages of others whose original is gone, with its chat."""
    original = Message.objects.filter(pk=OuterRef("copied_from"))
    copies = Message.objects.filter(
        chat_id=chat_id, copied_from__isnull=False, sender_user__isnull=False
    )
    return copies.exclude(sender_user=user_id).exclude(Exists(original)).exists()


def check_right_in_sources(chat_id: str, user_id: int, right: Right) -> None:
    """Raise NotAllowed if a person lacks a right in a chat that this one was copied from."""
    if not may_in_sources(chat_id, user_id, {right}):
        raise NotAllowed(
            right, "This chat begins with messages of another chat, in which you may not do that."
        )


def takeable(content_id: str, *, taker: ContentOwner, chat_id: str) -> Content:
    """Return a file that a person, key or visitor may show in a chat, by its id or handle.

    That is a file that they own, one that the chat shows already, or one of a chat that they may
    share. Raises ContentNotFound, also for files that they may only read.
    """
    try:
        return reading_rights.own_or_shown(content_id, owner=taker, chat_id=chat_id)
    except ContentNotFound:
        content = reading_rights.readable(content_id, owner=taker)
    if taker.user_id is None or _shared_source(content, taker.user_id, taker.chats) is None:
        raise ContentNotFound
    return content


def take(
    chat_id: str, content_ids: Collection[str], *, taken_by: int | None, shown: Collection[str] = ()
) -> None:
    """Let the members of a chat read the files that a person or a visitor shows there.

    A file of another person that is new to the chat names the chat that it is taken from, whose
    deletions then reach it. `shown` are the files in the message itself.
    """
    if taken_by is None:
        # A visitor has no chats to take a file from.
        reading_rights.use(chat_id, content_ids, shown=shown)
        return
    uses = ContentUse.objects.filter(chat_id=chat_id, content_id__in=content_ids)
    new = Content.objects.filter(pk__in=content_ids).exclude(pk__in=uses.values("content_id"))
    sources = {
        content.pk: source
        for content in new.exclude(owner_id=taken_by)
        if (source := _source(content, taken_by)) is not None
    }
    reading_rights.use(chat_id, content_ids, shown=shown, sources=sources)
    # A file that its owner shows here stays, whatever becomes of it elsewhere.
    uses.filter(source__isnull=False, content__owner_id=taken_by).update(source=None)


def _source(content: Content, user_id: int) -> str | None:
    """Return the chat from which a person takes a file.

    That is the first chat that used it among those that they may share, as a request names the file
    alone; among all of theirs if they have lost the right since it was checked.
    """
    if (shared := _shared_source(content, user_id, None)) is not None:
        return shared
    return _uses_seen_by(content, user_id).values_list("chat_id", flat=True).first()


def _shared_source(content: Content, user_id: int, chats: Collection[str] | None) -> str | None:
    """Return a chat that shows a file and that a person may share; None if there is none."""
    roles = [role for role, theirs in RIGHTS.items() if Right.SHARE in theirs]
    uses = _uses_seen_by(content, user_id, roles).filter(
        chat__home__isnull=True, chat__deleted_at__isnull=True
    )
    if chats is not None:
        uses = uses.filter(chat_id__in=chats)
    chat_ids = uses.values_list("chat_id", flat=True)[:SOURCES]
    return next((pk for pk in chat_ids if may_in_sources(pk, user_id, {Right.SHARE})), None)


def _uses_seen_by(
    content: Content, user_id: int, roles: Collection[str] = tuple(RIGHTS)
) -> QuerySet[ContentUse]:
    members = Participant.objects.filter(
        chat=OuterRef("chat"), user_id=user_id, left_at__isnull=True, role__in=roles
    )
    return ContentUse.objects.filter(Exists(members), content=content).order_by("pk")
