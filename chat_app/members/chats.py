"""Chats: creating them, changing their title and their payer.

Functions open their own transaction. Every change is an entry of the chat's log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from agents_app.sponsorships import sponsors_of
from chat_app.ids import new_event_id
from chat_app.log.entries import NewEvent, append, milliseconds
from chat_app.members.membership import NotAMember, NotAnOwner, is_member, is_owner
from chat_app.members.payers import payers_of
from chat_app.models import (
    Chat,
    ChatKind,
    Participant,
    ParticipantRole,
    PayerRule,
)
from chat_app.new_rows import insert

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import User


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
) -> Chat:
    """Create a chat with its members; `agents` are pairs of agent id and trigger rule."""
    chat = Chat(title=title, created_by_id=created_by_id, kind=kind)
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
        Participant(chat=chat, agent_id=agent_id, trigger=trigger) for agent_id, trigger in agents
    ]
    if members:
        insert(*members)
    return chat


def update_chat(
    *,
    chat_id: str,
    changed_by: User,
    title: str | None = None,
    payer: str | None = None,
    only_owners_pin: bool | None = None,
) -> None:
    """Change a chat's title, its payer or who pins messages; sends the change to the members.

    An owner who chooses `owner` becomes the payer. Raises NotAMember to strangers, NotAnOwner
    to members who do not own it, NoSponsor where no agent of the chat is sponsored.
    """
    with transaction.atomic():
        chat = Chat.objects.select_for_update().filter(pk=chat_id).first()
        if chat is None or not is_member(chat_id, changed_by.pk):
            raise NotAMember
        if not is_owner(chat_id, changed_by.pk):
            raise NotAnOwner
        before = (chat.title, chat.payer, chat.payer_user_id, chat.only_owners_pin)
        chat.title = chat.title if title is None else title
        if payer is not None:
            _set_payer(chat, PayerRule(payer), changed_by)
        if only_owners_pin is not None:
            chat.only_owners_pin = only_owners_pin
        if (chat.title, chat.payer, chat.payer_user_id, chat.only_owners_pin) == before:
            return
        chat.save(update_fields=["title", "payer", "payer_user", "only_owners_pin"])
        append_change(chat)


def _set_payer(chat: Chat, payer: PayerRule, by: User) -> None:
    chosen = payers_of([chat.pk])[chat.pk]
    if payer == chosen.rule == PayerRule.OWNER:
        # One of the owners pays already: another one does not take it over by saving a form.
        return
    if payer == PayerRule.SPONSOR != chat.payer:
        members = Participant.objects.filter(
            chat=chat, agent__isnull=False, left_at__isnull=True
        ).values_list("agent_id", flat=True)
        if not sponsors_of([agent_id for agent_id in members if agent_id]):
            raise NoSponsor
    chat.payer = payer
    chat.payer_user = by if payer == PayerRule.OWNER else None


def append_change(chat: Chat) -> None:
    """Append what the chat is now to its log as `chat.updated`; needs a transaction."""
    now = timezone.now()
    payload = {
        "type": "chat.updated",
        "event_id": new_event_id(),
        "timestamp": milliseconds(now),
        "chat_id": chat.pk,
        "title": chat.title,
        "payer": str(chat.payer),
        "only_owners_pin": bool(chat.only_owners_pin),
    }
    append(chat.pk, [NewEvent(type="chat.updated", payload=payload)], at=now)
