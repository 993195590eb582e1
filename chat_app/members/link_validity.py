"""Links into chats: their secrets and lifetime, when one is valid, and how it ends. Synchronous.

A link acts on behalf of its creator. It ends with that person's membership, account or right, also
in the sources of a fork, and is not restored with them: its end is stored when they lose it, or at
the latest when someone uses the link. `chat_app.links` implements the two kinds.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from chat_app.ids import new_event_id
from chat_app.log.entries import append, milliseconds, salted_entry
from chat_app.members.origin_rights import may_in_sources
from chat_app.members.rights import RIGHTS, Right
from chat_app.models import InviteLink, Participant, ParticipantRole, ShareLink
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from django.contrib.auth.models import User
    from django.db.models import QuerySet

AnyLink: TypeAlias = ShareLink | InviteLink

SECRET_BYTES: Final = 32
PREFIXES: Final[Mapping[type[AnyLink], str]] = {ShareLink: "shr_", InviteLink: "inv_"}
"""The prefixes of the secrets; logs redact anything that begins with one."""
NEEDED: Final[Mapping[type[AnyLink], Right]] = {
    ShareLink: Right.SHARE,
    InviteLink: Right.ADD_MEMBERS,
}
"""The right that the creator of a link needs for as long as it is active."""


class TooManyLinks(Exception):
    """The chat has as many active links as allowed."""


def new_secret(kind: type[AnyLink]) -> str:
    """Return the secret of a new link: its prefix and 256 random bits."""
    return PREFIXES[kind] + secrets.token_urlsafe(SECRET_BYTES)


def sha256_of(secret: str) -> str:
    """Return the stored hash of a secret. With 256 random bits, one round suffices."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def expiry(days: int | None) -> timedelta:
    """Return the lifetime of a new link; UAMP_LINK_DAYS by default."""
    limit = settings.UAMP_LINK_DAYS_MAX
    return timedelta(days=min(days or settings.UAMP_LINK_DAYS, limit))


def in_force(kind: type[AnyLink], chat_id: str | None = None) -> QuerySet[AnyLink]:
    """Return the links that are neither revoked nor expired."""
    rows: QuerySet[AnyLink] = kind._default_manager.filter(  # noqa: SLF001 Django's documented name
        revoked_at__isnull=True, expires_at__gt=timezone.now()
    )
    return rows if chat_id is None else rows.filter(chat_id=chat_id)


def check_room(kind: type[AnyLink], chat_id: str) -> None:
    """Raise TooManyLinks if a chat cannot have another link; the chat is locked."""
    if in_force(kind, chat_id).count() >= settings.UAMP_LINKS_PER_CHAT:
        raise TooManyLinks


def link_of(kind: type[AnyLink], secret: str) -> AnyLink | None:
    """Return the link with a secret, if it is active and its creator still has the right.

    Unknown, expired and revoked links are indistinguishable.
    """
    row = (
        in_force(kind)
        .select_related("chat", "created_by")
        .filter(token_sha256=sha256_of(secret))
        .first()
    )
    return row if row is not None and keep_or_end(row) else None


def keep_or_end(link: AnyLink) -> bool:
    """Return whether an active link's creator still has the right; store the end otherwise."""
    if maker_may(link):
        return True
    with transaction.atomic():
        end_link(link, by=None)
    return False


def needed_for(link: AnyLink) -> set[Right]:
    """Return the rights that the creator of a link needs while it is active."""
    if isinstance(link, InviteLink) and link.role != ParticipantRole.MEMBER:
        return {NEEDED[InviteLink], Right.CHANGE_ROLES}
    return {NEEDED[type(link)]}


def maker_may(link: AnyLink) -> bool:
    """Return whether the creator is an active member with the right, also in a fork's sources."""
    if link.created_by_id is None:
        return False
    roles = [role for role, rights in RIGHTS.items() if needed_for(link) <= rights]
    return Participant.objects.filter(
        chat_id=link.chat_id,
        user_id=link.created_by_id,
        user__is_active=True,
        left_at__isnull=True,
        role__in=roles,
    ).exists() and may_in_sources(link.chat_id, link.created_by_id, {NEEDED[type(link)]})


def end_link(link: AnyLink, *, by: User | None) -> bool:
    """Revoke a link and record it in the chat's log; needs a transaction and the chat's lock.

    `by` is who revoked it, None for the server. Return whether it had not been revoked before.
    """
    rows = type(link)._default_manager.filter(pk=link.pk, revoked_at__isnull=True)  # noqa: SLF001 as above
    if not rows.update(revoked_at=timezone.now(), revoked_by=by):
        return False
    append_link(ev.LinkRevoked, link, by=by)
    return True


def end_links_of(member: Participant, *, role: str | None) -> None:
    """End a member's links that they would no longer be allowed to create; needs the chat's lock.

    These are links into the chat, and into its forks, and their forks. `role` is their new role,
    None if they leave.
    """
    if member.user_id is None:
        return
    rights = RIGHTS[role] if role is not None else frozenset()
    for kind in NEEDED:
        for link in in_force(kind).filter(created_by_id=member.user_id):
            is_here = link.chat_id == member.chat_id
            if not (needed_for(link) <= rights if is_here else maker_may(link)):
                end_link(link, by=None)


def end_links_by(user_id: int) -> None:
    """End every link that a person made: their account was deactivated."""
    with transaction.atomic():
        for kind in NEEDED:
            for link in in_force(kind).filter(created_by_id=user_id).order_by("chat_id"):
                end_link(link, by=None)


def end_with_account(
    sender: type[User],
    instance: User,
    update_fields: Collection[str] | None = None,
    **_signal: Any,
) -> None:
    """End the links of a person whose account is saved as deactivated (a `post_save` receiver)."""
    del sender
    if not instance.is_active and (update_fields is None or "is_active" in update_fields):
        end_links_by(instance.pk)


def append_link(
    kind: type[ev.LinkCreated | ev.LinkRevoked], link: AnyLink, *, by: User | None
) -> None:
    """Append an event of a link to the log of its chat; needs a transaction."""
    event = kind(
        event_id=new_event_id(),
        timestamp=milliseconds(timezone.now()),
        chat_id=link.chat_id,
        link=_fact(link),
        by=None if by is None else ev.Actor(id=str(by.pk), name=by.get_username()),
    )
    entry = salted_entry(event)
    append(link.chat_id, [entry], at=timezone.now())


def _fact(link: AnyLink) -> ev.ChatLink:
    """Return the public facts of a link for the log, without its secret."""
    expires_at = milliseconds(link.expires_at)
    if isinstance(link, ShareLink):
        return ev.ChatLink(
            kind="share",
            id=str(link.pk),
            expires_at=expires_at,
            title=link.title or None,
            grows=link.until_seq is None,
        )
    return ev.ChatLink(
        kind="invite",
        id=str(link.pk),
        expires_at=expires_at,
        role=str(link.role),
        most_uses=link.most_uses,
    )
