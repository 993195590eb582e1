"""Invitations of people of other servers, whose names have a host: `name@host` (ADR 66)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.models import User
from django.db import transaction

from chat_app.log.homes import guests
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


_invite: Callable[[str, User, str], str] = _no_peers


def invited_by(invite: Callable[[str, User, str], str]) -> None:
    """Set the function that invites a person and returns the invitation's id."""
    global _invite  # noqa: PLW0603 one for the process
    _invite = invite


def people_here() -> QuerySet[User]:
    """Return the active people of this server, without the accounts of guests."""
    return User.objects.filter(is_active=True).exclude(pk__in=guests().values("pk"))


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
