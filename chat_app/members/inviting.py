"""Invitations of people of other servers, whose names have a host: `name@host` (ADR 66)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.models import User
from django.db import transaction

from chat_app.members.origin_rights import check_right_in_sources
from chat_app.members.rights import Right, check_right, member_of
from chat_app.models import Chat

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet


class CannotInvite(ValueError):
    """A person of another server cannot be invited; the message is for the person."""


def _no_peers(_chat_id: str, _by: User, _name: str) -> str:
    raise CannotInvite("This server has no peers.")


def _no_guests() -> QuerySet[User]:
    return User.objects.none()


_invite: Callable[[str, User, str], str] = _no_peers
_guests: Callable[[], QuerySet[User]] = _no_guests


def invited_by(
    invite: Callable[[str, User, str], str], guests: Callable[[], QuerySet[User]]
) -> None:
    """Set the functions that invite a person and return the invitation's id, and find guests."""
    global _invite, _guests
    _invite, _guests = invite, guests


def guests() -> QuerySet[User]:
    """Return the accounts of people of other servers."""
    return _guests()


def people_here() -> QuerySet[User]:
    """Return the active people of this server, without the accounts of guests."""
    return User.objects.filter(is_active=True).exclude(pk__in=_guests().values("pk"))


def is_elsewhere(name: str) -> bool:
    """Return whether a name is that of a person of another server."""
    return "@" in name and not people_here().filter(username=name).exists()


def invite_from_elsewhere(chat_id: str, by: User, name: str) -> str:
    """Invite `name@host` to a chat, and return the id of the invitation.

    Raises CannotInvite, NotAMember and NotAllowed.
    """
    return _invite(chat_id, by, name)


@transaction.atomic
def check_may_invite(*, chat_id: str, user_id: int) -> str:
    """Check that a person may add members to a chat, and return its title.

    Raises NotAMember and NotAllowed.
    """
    chat = Chat.objects.filter(pk=chat_id).first()
    check_right(member_of(chat, user_id), Right.ADD_MEMBERS)
    check_right_in_sources(chat_id, user_id, Right.ADD_MEMBERS)
    return "" if chat is None else chat.title
