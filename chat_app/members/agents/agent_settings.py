"""The settings of an agent in one chat: its trigger, its context, its budget. Synchronous."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from django.db import transaction

from agents_app.rest.rights import ALL
from chat_app.members.chats import set_budget
from chat_app.members.membership import NotAMember
from chat_app.members.participants import append_membership, membership_event
from chat_app.members.rights import (
    Right,
    check_may_manage_money,
    check_may_set_agents,
    member_of,
)
from chat_app.models import Chat, ContextScope, Participant, ParticipantReplyTrigger
from uamp import events as ev

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from agents_app.rest.rights import Rights

CONTEXT_MESSAGES: Final = 20
"""How many messages an agent with context `last` sees if no number is set."""


class NoKeywords(ValueError):
    """An agent with the keyword trigger needs at least one keyword."""


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings to change for an agent in a chat; None keeps the current value."""

    trigger: str | None = None
    keywords: tuple[str, ...] | None = None
    context: str | None = None
    context_messages: int | None = None
    budget: str | None = None
    budget_period: str | None = None


_STORED: Final = AgentSettings.__struct_fields__


def set_agent(
    *,
    chat_id: str,
    changed_by: User,
    participant_id: int,
    change: AgentSettings,
    rights: Rights = ALL,
) -> ev.ParticipantUpdated:
    """Change how an agent answers in a chat, and notify the members.

    `rights` are those of the credential. Returns the event, without `seq` if nothing changed.
    Raises NotAMember, NotAllowed, MissingRight, and NoKeywords.
    """
    with transaction.atomic():
        chat = Chat.objects.select_for_update(no_key=True).filter(pk=chat_id).first()
        caller = member_of(chat, changed_by.pk)
        row = Participant.objects.filter(
            chat_id=chat_id, pk=participant_id, agent__isnull=False, left_at__isnull=True
        ).first()
        if chat is None or row is None:
            raise NotAMember
        if (change.budget, change.budget_period) != (None, None):
            check_may_manage_money(chat, caller, rights)
        answering = (change.trigger, change.keywords, change.context, change.context_messages)
        if any(value is not None for value in answering):
            check_may_set_agents(chat, caller, Right.MANAGE_AGENTS, rights)
        before = [getattr(row, name) for name in _STORED]
        trigger_before = (row.trigger, row.keywords)
        _apply(row, change)
        if [getattr(row, name) for name in _STORED] == before:
            return membership_event(ev.ParticipantUpdated, row, by=changed_by)
        if (row.trigger, row.keywords) != trigger_before:
            # Approvals pay for what the person chose, not for what a limited key chose.
            row.trigger_by = changed_by if rights.may_commit else None
        row.save(update_fields=(*_STORED, "trigger_by"))
        return append_membership(ev.ParticipantUpdated, row, by=changed_by)


def _apply(row: Participant, change: AgentSettings) -> None:
    if change.trigger is not None:
        row.trigger = ParticipantReplyTrigger(change.trigger)
    if change.keywords is not None:
        keywords = dict.fromkeys(
            word for keyword in change.keywords if (word := " ".join(keyword.split()))
        )
        row.keywords = list(keywords) or None
    if row.trigger == ParticipantReplyTrigger.KEYWORD and not row.keywords:
        raise NoKeywords("Add at least one keyword for the agent to answer.")
    if change.context is not None:
        row.context = ContextScope(change.context)
    if change.context_messages is not None:
        row.context_messages = change.context_messages
    if row.context == ContextScope.LAST:
        row.context_messages = row.context_messages or CONTEXT_MESSAGES
    else:
        row.context_messages = None
    set_budget(row, change.budget, change.budget_period)
