"""Links of chats: their secrets, when one is in force, and how it ends. Synchronous.

A link acts for the member who made it. It ends with that person's membership or right, and does not
come back with them. What the two kinds do is in `chat_app.links`.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeAlias

from django.conf import settings
from django.utils import timezone

import uamp
from chat_app.ids import new_event_id
from chat_app.log.entries import NewEvent, append, milliseconds
from chat_app.members.origin_rights import may_in_sources
from chat_app.members.rights import RIGHTS, Right
from chat_app.models import InviteLink, Participant, ParticipantRole, ShareLink
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.contrib.auth.models import User
    from django.db.models import QuerySet

AnyLink: TypeAlias = ShareLink | InviteLink

SECRET_BYTES: Final = 32
PREFIXES: Final[Mapping[type[AnyLink], str]] = {ShareLink: "shr_", InviteLink: "inv_"}
"""How the secrets begin; logs are written without what begins like this."""
NEEDED: Final[Mapping[type[AnyLink], Right]] = {
    ShareLink: Right.SHARE,
    InviteLink: Right.ADD_MEMBERS,
}
"""The right that a link's maker needs, for as long as it is in force."""


class TooManyLinks(Exception):
    """The chat has as many links in force as it may have."""


def new_secret(kind: type[AnyLink]) -> str:
    """Return the secret of a new link: its prefix and 256 random bits."""
    return PREFIXES[kind] + secrets.token_urlsafe(SECRET_BYTES)


def sha256_of(secret: str) -> str:
    """Return what is kept of a secret. It has 256 random bits, so that one round suffices."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def expiry(days: int | None) -> timedelta:
    """Return how long a new link is in force: UAMP_LINK_DAYS where nothing is said."""
    most = settings.UAMP_LINK_DAYS_MAX
    return timedelta(days=min(days or settings.UAMP_LINK_DAYS, most))


def in_force(kind: type[AnyLink], chat_id: str | None = None) -> QuerySet[AnyLink]:
    """Return the links that were neither revoked nor have expired."""
    rows: QuerySet[AnyLink] = kind._default_manager.filter(  # noqa: SLF001 Django's documented name
        revoked_at__isnull=True, expires_at__gt=timezone.now()
    )
    return rows if chat_id is None else rows.filter(chat_id=chat_id)


def check_room(kind: type[AnyLink], chat_id: str) -> None:
    """Raise TooManyLinks where another link of a chat is one too many; the chat is locked."""
    if in_force(kind, chat_id).count() >= settings.UAMP_LINKS_PER_CHAT:
        raise TooManyLinks


def link_of(kind: type[AnyLink], secret: str) -> AnyLink | None:
    """Return the link with a secret, where it is in force and its maker still has the right.

    An unknown secret, an expired and a revoked link are alike.
    """
    row = (
        in_force(kind)
        .select_related("chat", "created_by")
        .filter(token_sha256=sha256_of(secret))
        .first()
    )
    return row if row is not None and maker_may(row) else None


def needed_for(link: AnyLink) -> set[Right]:
    """Return the rights that the maker of a link needs while it is in force."""
    if isinstance(link, InviteLink) and link.role != ParticipantRole.MEMBER:
        return {NEEDED[InviteLink], Right.CHANGE_ROLES}
    return {NEEDED[type(link)]}


def maker_may(link: AnyLink) -> bool:
    """Return whether the maker is an active member who has its right, in sources of a fork too."""
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


def end_link(link: AnyLink, *, by: User | None) -> None:
    """Revoke a link and say so in the log of its chat; needs a transaction and the chat's lock.

    `by` is who revoked it, None for the server. One that was revoked before stays as it is.
    """
    rows = type(link)._default_manager.filter(pk=link.pk, revoked_at__isnull=True)  # noqa: SLF001 as above
    if rows.update(revoked_at=timezone.now(), revoked_by=by):
        append_link(ev.LinkRevoked, link, by=by)


def end_links_of(member: Participant, *, role: str | None) -> None:
    """End the links that a member made and may not have made any more; needs the chat's lock.

    `role` is what they are from now on, None where they leave.
    """
    if member.user_id is None:
        return
    left = RIGHTS[role] if role is not None else frozenset()
    for kind in NEEDED:
        for link in in_force(kind, member.chat_id).filter(created_by_id=member.user_id):
            if not needed_for(link) <= left:
                end_link(link, by=None)


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
    entry = NewEvent(type=uamp.type_of(event), payload=uamp.to_dict(event))
    append(link.chat_id, [entry], at=timezone.now())


def _fact(link: AnyLink) -> ev.ChatLink:
    """Return what the log says of a link: nothing of its secret."""
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
