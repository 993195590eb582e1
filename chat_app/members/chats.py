"""Chats: creating them, and changing their title, description and rules.

Functions open their own transaction. Every change is an entry of the chat's log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from django.db import transaction
from django.utils import timezone

from agents_app.rest.rights import ALL
from agents_app.selectors import is_owned
from agents_app.sponsorships import sponsors_of
from chat_app.ids import new_event_id
from chat_app.log.entries import append, milliseconds, salted_entry
from chat_app.members.agreed_prices import prices_in
from chat_app.members.avatars import use_avatar
from chat_app.members.membership import NotAMember
from chat_app.members.rights import Right, check_may_manage_money, check_right, member_of
from chat_app.models import (
    Chat,
    ChatBudgetPeriod,
    ChatKind,
    Participant,
    ParticipantRole,
    PayerRule,
)
from chat_app.new_rows import insert
from chat_app.people.names import clean_title
from chat_app.people.notices import notify_person
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.contrib.auth.models import User

    from agents_app.rest.rights import Rights


class NoSponsor(Exception):
    """No agent of the chat has an owner who pays for its answers."""


@transaction.atomic(savepoint=False)
def create_chat(
    *,
    title: str,
    created_by_id: int | None,
    user_ids: Iterable[int],
    agents: Iterable[tuple[str, str]],
    kind: str = ChatKind.GROUP,
    metadata: Mapping[str, str] | None = None,
    chat_id: str = "",
    chooses_triggers: bool = True,
) -> Chat:
    """Create a chat with its members; `agents` are pairs of agent id and trigger rule.

    `chooses_triggers` is whether the creator chose these rules, for which their approvals then pay.
    The title is stored without direction marks and other invisible characters. Raises
    IntegrityError if there is a chat of the id `chat_id` already; without one, the id is new.
    """
    chat = Chat(title=clean_title(title), created_by_id=created_by_id, kind=kind, metadata=metadata)
    chat.pk = chat_id or chat.pk
    insert(chat)
    members = [
        Participant(
            chat=chat,
            user_id=user_id,
            role=(ParticipantRole.OWNER if user_id == created_by_id else ParticipantRole.MEMBER),
        )
        for user_id in dict.fromkeys(user_ids)
    ]
    members += [
        Participant(
            chat=chat,
            agent_id=agent_id,
            trigger=trigger,
            trigger_by_id=created_by_id if chooses_triggers else None,
            is_lent=is_owned(agent_id, created_by_id),
        )
        for agent_id, trigger in agents
    ]
    if members:
        insert(*members)
    if kind == ChatKind.GROUP:
        for member in members:
            if member.user_id is not None:
                notify_person(member.user_id, "chat_added", chat_id=chat.pk, added=True)
    return chat


def set_metadata(*, chat_id: str, changed_by_id: int, metadata: Mapping[str, str]) -> None:
    """Replace the metadata of a chat; raises NotAMember, and NotAllowed as for its description."""
    with transaction.atomic():
        chat = Chat.objects.select_for_update(no_key=True).filter(pk=chat_id).first()
        check_right(member_of(chat, changed_by_id), Right.DESCRIBE)
        Chat.objects.filter(pk=chat_id).update(metadata=metadata)


class ChatChange(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of a chat to change; None leaves a field as it is, an empty string clears it."""

    title: str | None = None
    description: str | None = None
    avatar: str | None = None
    payer: str | None = None
    only_owners_pin: bool | None = None
    agents_quiet: bool | None = None
    agent_hops: int | None = None
    budget: str | None = None
    budget_period: str | None = None

    def rights(self) -> set[Right]:
        """Return the rights that the change needs."""
        named = {name for name in self.__struct_fields__ if getattr(self, name) is not None}
        return {_RIGHT_OF[name] for name in named}


_RIGHT_OF: Final = {
    "title": Right.DESCRIBE,
    "description": Right.DESCRIBE,
    "avatar": Right.DESCRIBE,
    "payer": Right.MANAGE_MONEY,
    "budget": Right.MANAGE_MONEY,
    "budget_period": Right.MANAGE_MONEY,
    "only_owners_pin": Right.RULE,
    "agent_hops": Right.RULE,
    "agents_quiet": Right.QUIET_AGENTS,
}
_STORED: Final = ("payer_user", "agreed_prices", *_RIGHT_OF)


def update_chat(
    *, chat_id: str, changed_by: User, change: ChatChange, rights: Rights = ALL
) -> ev.ChatUpdated:
    """Change a chat's title, description or rules, and send the change to its members.

    `rights` are those of the credential. Returns the event, without `seq` if nothing changed. An
    owner who chooses `owner` becomes the payer. Raises NotAMember for strangers, NotAllowed for
    members whose role lacks the right, MissingRight for a credential that may not commit money,
    NoSponsor if no agent of the chat is sponsored, and InvalidAvatar.
    """
    with transaction.atomic():
        chat = Chat.objects.select_for_update(no_key=True).filter(pk=chat_id).first()
        member = member_of(chat, changed_by.pk)
        if chat is None:
            raise NotAMember
        for right in sorted(change.rights()):
            if right == Right.MANAGE_MONEY:
                check_may_manage_money(chat, member, rights)
            else:
                check_right(member, right)
        before = [getattr(chat, name) for name in _STORED]
        _apply(chat, change, changed_by, rights.chats)
        if [getattr(chat, name) for name in _STORED] == before:
            return chat_event(chat, by=changed_by)
        chat.save(update_fields=_STORED)
        return append_change(chat, by=changed_by)


_PLAIN: Final = ("only_owners_pin", "agents_quiet", "agent_hops")


def _apply(chat: Chat, change: ChatChange, by: User, chats: frozenset[str] | None) -> None:
    for name in _PLAIN:
        if (value := getattr(change, name)) is not None:
            setattr(chat, name, value)
    if change.title is not None:
        chat.title = clean_title(change.title)
    if change.description is not None:
        chat.description = change.description or None
    if change.avatar is not None:
        chat.avatar = use_avatar(chat.pk, change.avatar, setter_id=by.pk, chats=chats)
    if change.payer is not None:
        _set_payer(chat, PayerRule(change.payer), by)
    set_budget(chat, change.budget, change.budget_period)


def set_budget(row: Chat | Participant, amount: str | None, period: str | None) -> None:
    """Set the budget of a chat or of an agent in it; an empty or zero amount removes it.

    A budget without a period is a daily one.
    """
    if amount is not None:
        row.budget = amount if any(digit in "123456789" for digit in amount) else None
    if period is not None:
        row.budget_period = period
    if row.budget is None:
        row.budget_period = None
    elif row.budget_period is None:
        row.budget_period = ChatBudgetPeriod.DAY


def _set_payer(chat: Chat, payer: PayerRule, by: User) -> None:
    if payer == PayerRule.SPONSOR != chat.payer:
        members = Participant.objects.filter(
            chat=chat, agent__isnull=False, left_at__isnull=True
        ).values_list("agent_id", flat=True)
        if not sponsors_of([agent_id for agent_id in members if agent_id]):
            raise NoSponsor
    chat.payer = payer
    chat.payer_user = by if payer == PayerRule.OWNER else None
    is_agreed = payer in {PayerRule.OWNER, PayerRule.POOL}
    chat.agreed_prices = prices_in(chat.pk) if is_agreed else None


def chat_event(chat: Chat, *, by: User | None) -> ev.ChatUpdated:
    """Return the event that describes the current state of a chat."""
    return ev.ChatUpdated(
        event_id=new_event_id(),
        timestamp=milliseconds(timezone.now()),
        chat_id=chat.pk,
        title=chat.title,
        description=chat.description or "",
        avatar=chat.avatar,
        payer=str(chat.payer),
        only_owners_pin=bool(chat.only_owners_pin),
        agents_quiet=bool(chat.agents_quiet),
        agent_hops=chat.agent_hops,
        budget=chat.budget,
        budget_period=chat.budget_period,
        by=None if by is None else ev.Actor(id=str(by.pk), name=by.get_username()),
    )


def append_change(chat: Chat, *, by: User | None = None) -> ev.ChatUpdated:
    """Append the current state of a chat to its log as `chat.updated`; needs a transaction."""
    event = chat_event(chat, by=by)
    entry = salted_entry(event)
    seq = append(chat.pk, [entry], at=timezone.now())
    return msgspec.structs.replace(event, seq=seq)
