"""The rights of a chat's members by role: the single table, and its check."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from chat_app.log.homes import ELSEWHERE
from chat_app.members.membership import NotAMember, NotAnOwner
from chat_app.members.payers import payers_of
from chat_app.models import Participant, ParticipantRole, PayerRule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_app.rest.rights import Rights
    from chat_app.models import Chat


class Right(StrEnum):
    """Something that not every member of every chat may do."""

    ADD_MEMBERS = "add_members"
    QUIET_AGENTS = "quiet_agents"
    DESCRIBE = "describe"
    REMOVE_MEMBERS = "remove_members"
    MANAGE_AGENTS = "manage_agents"
    CHANGE_ROLES = "change_roles"
    MANAGE_MONEY = "manage_money"
    RULE = "rule"
    DELETE = "delete"
    SHARE = "share"


_OF_MEMBERS: Final = frozenset({Right.ADD_MEMBERS, Right.QUIET_AGENTS})
_OF_ADMINS: Final = _OF_MEMBERS | {
    Right.DESCRIBE,
    Right.REMOVE_MEMBERS,
    Right.MANAGE_AGENTS,
    Right.SHARE,
}
RIGHTS: Final[Mapping[str, frozenset[Right]]] = {
    ParticipantRole.OWNER: frozenset(Right),
    ParticipantRole.ADMIN: _OF_ADMINS,
    ParticipantRole.MEMBER: _OF_MEMBERS,
}
"""The rights of each role. docs/members.md has the same table, which a test compares."""


class NotAllowed(NotAnOwner):
    """A member lacks a right: `right` names it, and the message explains why."""

    def __init__(self, right: Right, reason: str = "") -> None:
        super().__init__(reason or _REASONS[right])
        self.right = right


_REASONS: Final[Mapping[Right, str]] = {
    Right.ADD_MEMBERS: "Only members may add people and agents.",
    Right.QUIET_AGENTS: "Only members may pause the agents.",
    Right.DESCRIBE: "Only owners and admins may change a chat's name, description and picture.",
    Right.REMOVE_MEMBERS: "Only owners and admins may remove members, and only owners may remove"
    " owners.",
    Right.MANAGE_AGENTS: "Only owners and admins may set how an agent answers. If the owner or"
    " the pool pays, only owners may add and set agents.",
    Right.CHANGE_ROLES: "Only owners may change roles.",
    Right.MANAGE_MONEY: "Only owners may choose the payer and set budgets.",
    Right.RULE: "Only owners may change the rules of a chat.",
    Right.DELETE: "Only owners may delete a chat.",
    Right.SHARE: "Only owners and admins may create links that show a chat to others.",
}


def member_of(chat: Chat | None, user_id: int | None) -> Participant:
    """Return a person's membership of a chat; raises NotAMember."""
    membership = None
    if chat is not None and user_id is not None:
        membership = Participant.objects.filter(
            chat=chat, user_id=user_id, left_at__isnull=True
        ).first()
    if chat is None or membership is None:
        raise NotAMember
    membership.chat = chat
    return membership


def check_right(member: Participant, right: Right) -> None:
    """Raise NotAllowed if a member's role lacks a right; no one has one in a mirror (ADR 66)."""
    if member.chat.home is not None:
        raise NotAllowed(right, ELSEWHERE)
    if right not in RIGHTS[member.role]:
        raise NotAllowed(right)


def check_may_set_agents(chat: Chat, member: Participant, right: Right, rights: Rights) -> None:
    """Check a right concerning agents; if the chat pays for answers, only owners have it.

    Their credential must then be one that may commit money. Raises NotAllowed and MissingRight.
    """
    check_right(member, right)
    if chat.payer not in {PayerRule.OWNER, PayerRule.POOL}:
        return
    if member.role != ParticipantRole.OWNER:
        raise NotAllowed(Right.MANAGE_AGENTS)
    rights.check_commits()


def check_may_manage_money(chat: Chat, member: Participant, rights: Rights) -> None:
    """Check that a member, by their credential, may choose the payer and set budgets.

    While an owner pays, that owner alone may. Raises NotAllowed and MissingRight.
    """
    check_right(member, Right.MANAGE_MONEY)
    payer = payers_of([chat.pk])[chat.pk]
    if payer.rule == PayerRule.OWNER and payer.owner_id != member.user_id:
        raise NotAllowed(
            Right.MANAGE_MONEY, "Only the owner who pays may change the payer and budgets."
        )
    rights.check_commits()
