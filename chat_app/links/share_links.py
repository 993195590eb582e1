"""Share links: creating, listing, revoking and opening them. Synchronous.

Functions that write open their own transaction, under the lock of the chat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from chat_app.members.link_validity import (
    append_link,
    check_room,
    end_link,
    expiry,
    link_of,
    new_secret,
    sha256_of,
)
from chat_app.members.membership import NotAMember
from chat_app.members.origin_rights import check_right_in_sources
from chat_app.members.rights import Right, check_right, member_of
from chat_app.models import Chat, ShareLink
from chat_app.people.names import clean_title
from uamp import events as ev

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.db.models import QuerySet


def create_share_link(
    *, chat_id: str, made_by: User, title: str = "", grows: bool = False, days: int | None = None
) -> tuple[ShareLink, str]:
    """Create a link to a chat's messages so far, or with `grows` also to later ones.

    Returns the link and its secret, which is not stored. Raises NotAMember, NotAllowed and
    TooManyLinks.
    """
    with transaction.atomic():
        chat = Chat.objects.select_for_update(no_key=True).filter(pk=chat_id).first()
        member = member_of(chat, made_by.pk)
        if chat is None:
            raise NotAMember
        check_right(member, Right.SHARE)
        check_right_in_sources(chat_id, made_by.pk, Right.SHARE)
        check_room(ShareLink, chat_id)
        secret = new_secret(ShareLink)
        now = timezone.now()
        link = ShareLink.objects.create(
            chat=chat,
            token_sha256=sha256_of(secret),
            title=clean_title(title),
            until_seq=None if grows else chat.last_seq,
            created_by=made_by,
            created_at=now,
            expires_at=now + expiry(days),
        )
        append_link(ev.LinkCreated, link, by=made_by)
    return link, secret


def share_links(chat_id: str) -> QuerySet[ShareLink]:
    """Return the share links of a chat, the newest first."""
    rows = ShareLink.objects.filter(chat_id=chat_id).order_by("-pk")
    return rows.select_related("created_by", "revoked_by")


def revoke_share_link(*, chat_id: str, link_id: int, revoked_by: User) -> None:
    """Revoke a link immediately; raises NotAMember if there is no such link, and NotAllowed."""
    with transaction.atomic():
        chat = Chat.objects.select_for_update(no_key=True).filter(pk=chat_id).first()
        member = member_of(chat, revoked_by.pk)
        link = ShareLink.objects.filter(chat_id=chat_id, pk=link_id).first()
        if link is None:
            raise NotAMember
        check_right(member, Right.SHARE)
        end_link(link, by=revoked_by)


def share_link_of(secret: str) -> ShareLink | None:
    """Return the share link with a secret, if it is active."""
    link = link_of(ShareLink, secret)
    return link if isinstance(link, ShareLink) else None


def count_opening(link: ShareLink) -> None:
    """Count a visit to the page of a link."""
    ShareLink.objects.filter(pk=link.pk).update(
        opened_count=F("opened_count") + 1, opened_at=timezone.now()
    )
