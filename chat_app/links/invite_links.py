"""Invite links: creating, listing and revoking them, and joining a chat. Synchronous.

Functions that write open their own transaction, under the lock of the chat, so that two people
cannot share the last use of a link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from django.db import transaction
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
from chat_app.members.participants import join
from chat_app.members.rights import Right, check_right, member_of
from chat_app.models import Chat, InviteLink, Participant, ParticipantRole
from uamp import events as ev

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.db.models import QuerySet


class UsedUp(Exception):
    """As many people as allowed have joined through the link."""


class WasRemoved(Exception):
    """The person was removed from the chat: a member has to add them."""


class Invitation(msgspec.Struct, frozen=True):
    """The invitation that a person sees before they join: `people` counts the members."""

    chat_id: str
    title: str
    people: int
    invited_by: str
    role: str
    is_member: bool
    was_removed: bool
    is_used_up: bool


def create_invite_link(
    *,
    chat_id: str,
    made_by: User,
    role: str = ParticipantRole.MEMBER,
    most_uses: int | None = None,
    days: int | None = None,
) -> tuple[InviteLink, str]:
    """Create a link for joining a chat; only owners may invite admins and owners.

    Returns the link and its secret, which is not stored. Raises NotAMember, NotAllowed and
    TooManyLinks.
    """
    with transaction.atomic():
        chat = Chat.objects.select_for_update(no_key=True).filter(pk=chat_id).first()
        member = member_of(chat, made_by.pk)
        if chat is None:
            raise NotAMember
        check_right(member, Right.ADD_MEMBERS)
        check_right_in_sources(chat_id, made_by.pk, Right.ADD_MEMBERS)
        if role != ParticipantRole.MEMBER:
            check_right(member, Right.CHANGE_ROLES)
        check_room(InviteLink, chat_id)
        secret = new_secret(InviteLink)
        now = timezone.now()
        link = InviteLink.objects.create(
            chat=chat,
            token_sha256=sha256_of(secret),
            role=ParticipantRole(role),
            most_uses=most_uses,
            created_by=made_by,
            created_at=now,
            expires_at=now + expiry(days),
        )
        append_link(ev.LinkCreated, link, by=made_by)
    return link, secret


def invite_links(chat_id: str) -> QuerySet[InviteLink]:
    """Return the invite links of a chat, the newest first."""
    rows = InviteLink.objects.filter(chat_id=chat_id).order_by("-pk")
    return rows.select_related("created_by", "revoked_by")


def revoke_invite_link(*, chat_id: str, link_id: int, revoked_by: User) -> None:
    """Revoke a link immediately; its creator may, and members who may remove others.

    Raises NotAMember if there is no such link, and NotAllowed.
    """
    with transaction.atomic():
        chat = Chat.objects.select_for_update(no_key=True).filter(pk=chat_id).first()
        member = member_of(chat, revoked_by.pk)
        link = InviteLink.objects.filter(chat_id=chat_id, pk=link_id).first()
        if link is None:
            raise NotAMember
        if link.created_by_id != revoked_by.pk:
            check_right(member, Right.REMOVE_MEMBERS)
        end_link(link, by=revoked_by)


def invitation(secret: str, user: User | None) -> Invitation | None:
    """Return the invitation behind a link for a person or (with None) a visitor.

    Returns None if the link is not active.
    """
    link = link_of(InviteLink, secret)
    if not isinstance(link, InviteLink):
        return None
    people = Participant.objects.filter(
        chat_id=link.chat_id, user__isnull=False, left_at__isnull=True
    )
    membership = _membership(link, user) if user is not None else None
    return Invitation(
        chat_id=link.chat_id,
        title=link.chat.title,
        people=people.count(),
        invited_by=link.created_by.get_username() if link.created_by else "",
        role=str(link.role),
        is_member=membership is not None and membership.left_at is None,
        was_removed=membership is not None and _was_removed(membership),
        is_used_up=_is_used_up(link),
    )


def join_by_link(secret: str, user: User) -> str | None:
    """Let a person join through a link and return the chat's id; None if it is not active.

    A member stays as they are and does not use up the link. Raises UsedUp, and WasRemoved for a
    person who was removed.
    """
    invite_link = link_of(InviteLink, secret)
    if invite_link is None:
        return None
    with transaction.atomic():
        chat = Chat.objects.select_for_update(no_key=True).get(pk=invite_link.chat_id)
        # The link may have been revoked or used up before the lock was taken.
        link = link_of(InviteLink, secret)
        if not isinstance(link, InviteLink):
            return None
        membership = _membership(link, user)
        if membership is not None and membership.left_at is None:
            return chat.pk
        if membership is not None and _was_removed(membership):
            raise WasRemoved
        if _is_used_up(link):
            raise UsedUp
        link.used_count += 1
        link.used_at = timezone.now()
        link.save(update_fields=["used_count", "used_at"])
        join(chat, by=user, user=user, role=ParticipantRole(link.role))
    return chat.pk


def _membership(link: InviteLink, user: User) -> Participant | None:
    return Participant.objects.filter(chat_id=link.chat_id, user=user).first()


def _was_removed(member: Participant) -> bool:
    """Return whether a former member was removed, or may have been."""
    return member.left_at is not None and not member.left_freely


def _is_used_up(link: InviteLink) -> bool:
    return link.most_uses is not None and link.used_count >= link.most_uses
