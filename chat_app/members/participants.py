"""Participants: people and agents that join and leave a chat.

Functions open their own transaction. Every change is an entry of the chat's log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from chat_app.ids import new_event_id
from chat_app.log.entries import NewEvent, append, milliseconds
from chat_app.members.chats import append_change
from chat_app.members.membership import NotAMember, NotAnOwner, is_member, is_owner
from chat_app.models import (
    Chat,
    Participant,
    ParticipantReplyTrigger,
    ParticipantRole,
    PayerRule,
)

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def add_participant(
    *,
    chat_id: str,
    added_by: User,
    user: User | None = None,
    agent_id: str | None = None,
    trigger: str = ParticipantReplyTrigger.MENTION,
) -> Participant:
    """Add a person or an agent to a chat, or take them back; sends it to the members.

    One that comes back is a member, whatever it was before. Where the owner or the pool pays, an
    agent is added by an owner, because its answers are paid from then on. Raises NotAMember unless
    `added_by` is in the chat, NotAnOwner for an agent that another member adds there.
    """
    with transaction.atomic():
        chat = Chat.objects.select_for_update().filter(pk=chat_id).first()
        if chat is None or not is_member(chat_id, added_by.pk):
            raise NotAMember
        is_paid_by_chat = chat.payer in {PayerRule.OWNER, PayerRule.POOL}
        if agent_id is not None and is_paid_by_chat and not is_owner(chat_id, added_by.pk):
            raise NotAnOwner
        participant, created = Participant.objects.get_or_create(
            chat=chat, user=user, agent_id=agent_id, defaults={"trigger": trigger}
        )
        if not created and participant.left_at is None:
            return participant
        participant.left_at = None
        participant.role = ParticipantRole.MEMBER
        participant.trigger = trigger
        participant.save(update_fields=["left_at", "role", "trigger"])
        _append_membership(participant, "participant.joined", by=added_by)
    return participant


def remove_participant(*, chat_id: str, removed_by: User, participant_id: int) -> None:
    """Let a member leave; an owner may remove any member.

    An owner who leaves pays for nothing any more. When the last owner leaves, the person who has
    been there the longest owns the chat. Raises NotAMember when the caller may not, or the
    participant is not in the chat.
    """
    with transaction.atomic():
        chat = Chat.objects.select_for_update().filter(pk=chat_id).first()
        caller = Participant.objects.filter(
            chat_id=chat_id, user=removed_by, left_at__isnull=True
        ).first()
        participant = Participant.objects.filter(
            chat_id=chat_id, pk=participant_id, left_at__isnull=True
        ).first()
        if chat is None or caller is None or participant is None:
            raise NotAMember
        if caller != participant and caller.role != ParticipantRole.OWNER:
            raise NotAMember
        participant.left_at = timezone.now()
        participant.save(update_fields=["left_at"])
        _append_membership(participant, "participant.left", by=removed_by)
        if participant.role == ParticipantRole.OWNER:
            _without_owner(chat, participant)


def _without_owner(chat: Chat, left: Participant) -> None:
    """Give a chat without an owner one, and stop a member who left from paying for it."""
    people = Participant.objects.filter(chat=chat, user__isnull=False, left_at__isnull=True)
    if not people.filter(role=ParticipantRole.OWNER).exists():
        longest = people.order_by("joined_at", "id").first()
        if longest is not None:
            longest.role = ParticipantRole.OWNER
            longest.save(update_fields=["role"])
    if chat.payer == PayerRule.OWNER and chat.payer_user_id == left.user_id:
        chat.refresh_from_db()
        chat.payer, chat.payer_user = PayerRule.ASKER, None
        chat.save(update_fields=["payer", "payer_user"])
        append_change(chat)


def _append_membership(participant: Participant, event_type: str, *, by: User) -> None:
    """Membership is part of the log; the event type is ours, unknown to older clients.

    `by` is the person who added or removed the member, or the member who left.
    """
    member = participant.user or participant.agent
    name = participant.user.get_username() if participant.user else str(participant.agent)
    now = timezone.now()
    append(
        participant.chat_id,
        [
            NewEvent(
                type=event_type,
                payload={
                    "type": event_type,
                    "event_id": new_event_id(),
                    "timestamp": milliseconds(now),
                    "chat_id": participant.chat_id,
                    "participant": {
                        "kind": "user" if participant.user else "agent",
                        "id": str(member.pk) if member else "",
                        "name": name,
                    },
                    "by": {"id": str(by.pk), "name": by.get_username()},
                },
            )
        ],
        at=now,
    )
