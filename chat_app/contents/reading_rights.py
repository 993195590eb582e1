"""Reading rights: which content a caller may read, by its id or its owner's handle.

A content may be read by its owner and by the members of chats in which it appears. A missing
content and a forbidden one raise the same error.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from django.contrib.auth.models import User
from django.db.models import Case, Exists, F, OuterRef, Q, When

from chat_app.contents.addresses import content_url
from chat_app.contents.quota import ContentOwner
from chat_app.models import Content, ContentUse, Message

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet
    from django.db.models.fields.files import FieldFile

    from chat_app.contents.addresses import ContentReader

VIEW_CONTENT: Final = "chat_app.view_content"
"""The permission with which operators open files."""


class ContentRecord(Protocol):
    """A stored content, for other apps, which do not know its row."""

    @property
    def pk(self) -> UUID:
        """Its id."""

    @property
    def content_id(self) -> str:
        """Its `content_id` on the wire."""

    @property
    def sha256(self) -> str:
        """The digest of its bytes."""

    @property
    def mime_type(self) -> str:
        """Its media type."""

    @property
    def filename(self) -> str:
        """Its name; may be empty."""

    @property
    def size_bytes(self) -> int:
        """Its size."""

    @property
    def created_at(self) -> datetime:
        """When it was stored."""

    @property
    def blob(self) -> FieldFile:
        """Its bytes, as a file."""


class ContentNotFound(LookupError):
    """There is no such content, or this caller may not read it: they cannot tell which."""


def readable(content_id: str, *, owner: ContentOwner) -> Content:
    """Return a content that an owner may read, by its id or handle; raises ContentNotFound.

    A single query treats missing and forbidden contents alike.
    """
    content = contents_by_id(content_id).filter(_readable_by(owner)).first()
    if content is None:
        raise ContentNotFound
    return content


def _readable_by(owner: ContentOwner) -> Q:
    allowed = _owned_by(owner)
    if owner.user_id is not None:
        in_chats = ContentUse.objects.filter(
            content=OuterRef("pk"),
            chat__participants__user_id=owner.user_id,
            chat__participants__left_at__isnull=True,
        )
        if owner.chats is not None:
            in_chats = in_chats.filter(chat_id__in=owner.chats)
        allowed |= Q(Exists(in_chats))
    return allowed


def _owned_by(owner: ContentOwner) -> Q:
    """Return the condition for an owner's files that its credential may read as the owner."""
    owned = Q(owner_key=owner.key) if owner.key else Q(pk__isnull=True)
    if owner.user_id is not None:
        owned |= Q(owner_id=owner.user_id)
    if owner.chats is None:
        return owned
    uses = ContentUse.objects.filter(content=OuterRef("pk"))
    allowed = Exists(uses.filter(chat_id__in=owner.chats))
    return owned & (Q(allowed) | ~Q(Exists(uses)))


def behind(content_id: UUID, reader: ContentReader) -> Content | None:
    """Return the content of a signed address, or None if its reader may no longer read it."""
    allowed = _readable_behind(reader)
    return None if allowed is None else Content.objects.filter(allowed, pk=content_id).first()


def _readable_behind(reader: ContentReader) -> Q | None:
    """Return the condition for what a reader may read; None for nothing.

    An address tied to a chat opens the files that the chat shows, and the person's own files that
    no chat shows yet.
    """
    if reader.user_id is None:
        return _shown_in(reader.chat_id)
    user = User.objects.filter(pk=reader.user_id, is_active=True).first()
    if user is None:
        return None
    if reader.is_operator:
        return Q() if user.is_staff and user.has_perm(VIEW_CONTENT) else None
    if not reader.chat_id:
        return _readable_by(ContentOwner(user_id=user.pk))
    unused = Q(owner_id=user.pk) & ~Q(Exists(ContentUse.objects.filter(content=OuterRef("pk"))))
    here = user.participations.filter(chat_id=reader.chat_id, left_at__isnull=True)
    return _shown_in(reader.chat_id) | unused if here.exists() else unused


def _shown_in(chat_id: str) -> Q:
    """Return the condition for what a chat shows, or an answer in it shows before it has ended."""
    uses = ContentUse.objects.filter(content=OuterRef("pk"), chat_id=chat_id)
    return Q(owner_key=f"chat:{chat_id}") | Q(Exists(uses))


def contents_by_id(content_id: str) -> QuerySet[Content]:
    """Return the contents that an id may name, a content's own id before handles."""
    by_id = Case(When(pk=content_id, then=0), default=1)
    return Content.objects.filter(Q(pk=content_id) | Q(handle=content_id)).order_by(
        by_id, "created_at", "pk"
    )


def owned(content_id: str, *, owner: ContentOwner) -> Content | None:
    """Return a content by its id or handle if this owner owns it."""
    rows = contents_by_id(content_id)
    if owner.user_id is None:
        return rows.filter(owner_key=owner.key).first() if owner.key else None
    return rows.filter(owner_id=owner.user_id).first()


def readable_own(content_id: str, *, owner: ContentOwner) -> Content | None:
    """Return a content that an owner owns and its credential may read, by its id or handle."""
    return contents_by_id(content_id).filter(_owned_by(owner)).first()


def own_or_shown(content_id: str, *, owner: ContentOwner, chat_id: str) -> Content:
    """Return a content that an owner owns or, being a member, sees in a chat.

    It may be named by its id or handle. Raises ContentNotFound.
    """
    owned_content = readable_own(content_id, owner=owner)
    if owned_content is not None:
        return owned_content
    if owner.user_id is None or not (owner.chats is None or chat_id in owner.chats):
        raise ContentNotFound
    uses = ContentUse.objects.filter(
        content=OuterRef("pk"),
        chat_id=chat_id,
        chat__participants__user_id=owner.user_id,
        chat__participants__left_at__isnull=True,
    )
    shown = contents_by_id(content_id).filter(Exists(uses)).first()
    if shown is None:
        raise ContentNotFound
    return shown


def readable_in(content_id: str, *, owner: ContentOwner, chat_id: str) -> Content:
    """Return the content that an id names in a chat: as `own_or_shown`, or any its owner may read.

    Raises ContentNotFound.
    """
    try:
        return own_or_shown(content_id, owner=owner, chat_id=chat_id)
    except ContentNotFound:
        return readable(content_id, owner=owner)


def used_copy(sha256: str, *, owner: ContentOwner, mime_type: str, filename: str) -> Content | None:
    """Return the owner's oldest content with these bytes that appears in a chat.

    A content that appears nowhere might be discarded by a turn that is refused in the meantime.
    """
    rows = Content.objects.filter(
        Exists(ContentUse.objects.filter(content=OuterRef("pk"))),
        sha256=sha256,
        mime_type=mime_type,
        filename=filename,
    )
    if owner.user_id is not None:
        rows = rows.filter(owner_id=owner.user_id)
    elif owner.key:
        rows = rows.filter(owner_id=None, owner_key=owner.key)
    else:
        return None
    return rows.order_by("created_at", "pk").first()


def in_chat(content_id: str, chat_id: str) -> Content:
    """Return a content that appears in a chat, by its id or handle; raises ContentNotFound."""
    content = contents_by_id(content_id).filter(uses__chat_id=chat_id).first()
    if content is None:
        raise ContentNotFound
    return content


def in_message(content_id: str, chat_id: str, message_id: str, *, after: int) -> Content:
    """Return a content that a message shows which is not deleted and was written after a place.

    Raises ContentNotFound.
    """
    rows = Message.objects.filter(
        pk=message_id, chat_id=chat_id, seq__gt=after, deleted_at__isnull=True
    )
    items = rows.values_list("content_items", flat=True).first() or []
    url = content_url(content_id)
    media = [item.get(item.get("type", "")) for item in items]
    if not any(isinstance(medium, dict) and medium.get("url") == url for medium in media):
        raise ContentNotFound
    return in_chat(content_id, chat_id)


def contents_of(content_ids: Collection[str]) -> dict[str, Content]:
    """Return stored contents by their ids; those that are gone are left out."""
    return {str(row.pk): row for row in Content.objects.filter(pk__in=content_ids)}


def use(
    chat_id: str,
    used: Iterable[str],
    *,
    shown: Iterable[str] = (),
    sources: Mapping[UUID, str] = MappingProxyType({}),
) -> None:
    """Let the members of a chat read the contents of one of its messages.

    `shown` are those in the message itself, and `sources` the chats that contents are taken from.
    Contents deleted in the meantime are left out, since the message must be written all the same.
    """
    existing_ids = Content.objects.filter(pk__in=list(used)).values_list("pk", flat=True)
    ContentUse.objects.bulk_create(
        [
            ContentUse(
                chat_id=chat_id,
                content_id=content_id,
                shown_by=0,
                source_id=sources.get(content_id),
            )
            for content_id in existing_ids
        ],
        ignore_conflicts=True,
    )
    uses = ContentUse.objects.filter(chat_id=chat_id, content_id__in=set(shown))
    uses.update(shown_by=F("shown_by") + 1)
