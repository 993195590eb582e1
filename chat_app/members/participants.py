"""Participants: people and agents that join and leave a chat.

Functions open their own transaction. Every change is an entry of the chat's log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from django.db import transaction
from django.utils import timezone

import uamp
from agents_app.rest.rights import ALL
from agents_app.selectors import is_owned
from audit_app.record import AuditAction, record
from chat_app.calls.agents import end_agent_participation
from chat_app.calls.operations import end_participation
from chat_app.ids import new_event_id
from chat_app.log import fanout
from chat_app.log.entries import append, milliseconds, salted_entry
from chat_app.log.homes import guests
from chat_app.members.agreed_prices import prices_of, without_agent
from chat_app.members.chats import append_change
from chat_app.members.link_validity import end_links_of
from chat_app.members.membership import NotAMember
from chat_app.members.origin_rights import check_right_in_sources
from chat_app.members.rights import (
    NotAllowed,
    Right,
    check_may_set_agents,
    check_right,
    member_of,
)
from chat_app.models import (
    Chat,
    Participant,
    ParticipantReplyTrigger,
    ParticipantRole,
    PayerRule,
)
from chat_app.people.notices import notify_person
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User

    from agents_app.rest.rights import Rights

GUESTS_ARE_INVITED: Final = "People of other servers join by invitation."
GUESTS_ARE_MEMBERS: Final = "People of other servers are plain members."

Change = TypeVar("Change", ev.ParticipantJoined, ev.ParticipantLeft, ev.ParticipantUpdated)


def _nothing_runs(_chat_id: str, _agent_id: str | None, _user_id: int) -> None:
    """Stop nothing: this process serves no sessions."""


_stop_answers: Callable[[str, str | None, int], None] = _nothing_runs


def answers_stopped_by(stop: Callable[[str, str | None, int], None]) -> None:
    """Set the function that stops the answers in a chat, for a person: of an agent, or of all."""
    global _stop_answers  # noqa: PLW0603 one for the process
    _stop_answers = stop


class LastOwner(Exception):
    """A chat of people needs an owner: appoint another one first."""


def add_participant(
    *,
    chat_id: str,
    added_by: User,
    user: User | None = None,
    agent_id: str | None = None,
    trigger: str = ParticipantReplyTrigger.MENTION,
    rights: Rights = ALL,
    has_accepted: bool = False,
) -> Participant:
    """Add a person or an agent to a chat, or readmit one, and notify the members.

    A person of another server is added only if they have accepted an invitation.

    A readmitted person is a plain member, whatever their earlier role. If the owner or the pool
    pays, only an owner may add an agent, because they pay for its answers from then on.
    `rights` are those of the credential. Raises NotAMember unless `added_by` is in the chat,
    NotAllowed if their role lacks the right, and MissingRight.
    """
    with transaction.atomic():
        chat = Chat.objects.select_for_update(no_key=True).filter(pk=chat_id).first()
        member = member_of(chat, added_by.pk)
        if chat is None:
            raise NotAMember
        if agent_id is None:
            check_right(member, Right.ADD_MEMBERS)
            check_right_in_sources(chat_id, added_by.pk, Right.ADD_MEMBERS)
            if user is not None and not has_accepted and guests().filter(pk=user.pk).exists():
                raise NotAllowed(Right.ADD_MEMBERS, GUESTS_ARE_INVITED)
        else:
            check_may_set_agents(chat, member, Right.ADD_MEMBERS, rights)
            pays = chat.payer == PayerRule.OWNER and chat.payer_user_id == added_by.pk
            if pays or chat.payer == PayerRule.POOL:
                chat.agreed_prices = {**(chat.agreed_prices or {}), **prices_of([agent_id])}
                chat.save(update_fields=["agreed_prices"])
        was_there = Participant.objects.filter(
            chat=chat, agent_id=agent_id, user=user, left_at__isnull=True
        ).exists()
        row = join(chat, by=added_by, user=user, agent_id=agent_id, trigger=trigger)
        if row.trigger_by_id == added_by.pk and not rights.may_commit and not was_there:
            # Approvals pay for what the person chose, not for what a limited key chose.
            row.trigger_by = None
            row.save(update_fields=["trigger_by"])
        return row


def join(
    chat: Chat,
    *,
    by: User,
    user: User | None = None,
    agent_id: str | None = None,
    trigger: str = ParticipantReplyTrigger.MENTION,
    role: str = ParticipantRole.MEMBER,
) -> Participant:
    """Put a person or an agent into a locked chat.

    A current member stays unchanged, but an owner who adds their agent again lends it. An agent
    that comes back has the budget that it had: adding it takes less of a right than setting one.
    """
    is_lent = agent_id is not None and is_owned(agent_id, by.pk)
    chosen_by = None if agent_id is None else by
    participant, created = Participant.objects.get_or_create(
        chat=chat,
        user=user,
        agent_id=agent_id,
        defaults={"trigger": trigger, "trigger_by": chosen_by, "is_lent": is_lent},
    )
    if not created and participant.left_at is None:
        if is_lent and not participant.is_lent:
            participant.is_lent = True
            participant.save(update_fields=["is_lent"])
        return participant
    participant.left_at = participant.left_freely = None
    participant.role = ParticipantRole(role)
    participant.trigger, participant.trigger_by = trigger, chosen_by
    participant.is_lent = is_lent
    participant.keywords = participant.context = participant.context_messages = None
    participant.muted_at = participant.notifications = None
    participant.save()
    append_membership(ev.ParticipantJoined, participant, by=by)
    if participant.user_id is not None:
        notify_person(participant.user_id, "chat_added", chat_id=chat.pk, added=True)
    return participant


def remove_participant(*, chat_id: str, removed_by: User, participant_id: int) -> None:
    """Remove a member, or let one leave; owners may remove anyone, admins all but owners.

    An owner who leaves stops paying, and links created by the member end. When the last owner
    leaves, the longest-standing admin becomes the owner, or else the longest-standing person of
    this server; if only people of other servers are left, the chat ends for all. Others no longer
    see the member typing, and the call of the chat continues. Answers of a removed agent are
    cancelled on behalf of `removed_by`, and its prices are no longer agreed to. Raises NotAMember
    if the caller or the participant is not in the chat, NotAllowed if the caller lacks the right.
    """
    with transaction.atomic():
        chat = Chat.objects.select_for_update(no_key=True).filter(pk=chat_id).first()
        caller = member_of(chat, removed_by.pk)
        participant = Participant.objects.filter(
            chat_id=chat_id, pk=participant_id, left_at__isnull=True
        ).first()
        if chat is None or participant is None:
            raise NotAMember
        if caller != participant:
            check_right(caller, Right.REMOVE_MEMBERS)
            if ParticipantRole.OWNER == participant.role != caller.role:
                check_right(caller, Right.CHANGE_ROLES)
        leave(participant, by=removed_by)
        if participant.agent_id is not None and chat.agreed_prices is not None:
            chat.agreed_prices = without_agent(chat.agreed_prices, participant.agent_id, chat.pk)
            chat.save(update_fields=["agreed_prices"])
        if participant.role == ParticipantRole.OWNER:
            _without_owner(chat, participant)


def leave(participant: Participant, *, by: User | None) -> None:
    """End a membership of a locked chat, with what belongs to it; `by` as in membership_event."""
    chat_id, now = participant.chat_id, timezone.now()
    participant.left_at = now
    participant.left_freely = by is not None and by.pk == participant.user_id
    participant.save(update_fields=["left_at", "left_freely"])
    end_links_of(participant, role=None)
    append_membership(ev.ParticipantLeft, participant, by=by)
    if participant.user is not None:
        notify_person(participant.user.pk, "chat_removed", chat_id=chat_id, removed=True)
        _stop_typing(chat_id, participant.user)
        end_participation(chat_id=chat_id, user_id=participant.user.pk, now=now)
    elif participant.agent_id is not None and by is not None:
        _stop_answers(chat_id, participant.agent_id, by.pk)
        end_agent_participation(chat_id=chat_id, agent_id=participant.agent_id, now=now)


def delete_chat(*, chat_id: str, deleted_by: User) -> None:
    """Delete a chat for everyone: all members leave it, and its answers are cancelled.

    From then on no reader finds it. `sessions_app.data_rights.deleted_chats` deletes its rows when
    its answers have ended. Raises NotAMember, and NotAllowed unless `deleted_by` is an owner.
    """
    with transaction.atomic():
        chat = Chat.objects.select_for_update(no_key=True).filter(pk=chat_id).first()
        member = member_of(chat, deleted_by.pk)
        if chat is None:
            raise NotAMember
        check_right(member, Right.DELETE)
        _end(chat, by=deleted_by)


def _end(chat: Chat, *, by: User) -> None:
    """Delete a locked chat for everyone, in the name of the person who deletes it."""
    chat.deleted_at = timezone.now()
    chat.save(update_fields=["deleted_at"])
    record(by, AuditAction.CHAT_DELETED, chat)
    _stop_answers(chat.pk, None, by.pk)
    members = Participant.objects.filter(chat=chat, left_at__isnull=True)
    for participant in members.select_related("user", "agent").order_by("pk"):
        leave(participant, by=by)


def _stop_typing(chat_id: str, user: User) -> None:
    event = ev.PresenceTyping(
        event_id=new_event_id(),
        timestamp=milliseconds(timezone.now()),
        user_id=str(user.pk),
        username=user.get_username(),
        is_typing=False,
        chat_id=chat_id,
    )
    signal = fanout.signal_message(chat_id=chat_id, frame=uamp.encode(event), user_id=user.pk)
    fanout.publish_on_commit(chat_id, [signal])


def change_role(
    *, chat_id: str, changed_by: User, participant_id: int, role: str
) -> ev.ParticipantUpdated:
    """Change the role of a person in a chat, and notify the members.

    Returns the event, without `seq` if they already have the role. Raises NotAMember, NotAllowed
    unless `changed_by` is an owner and for a person of another server, and LastOwner.
    """
    with transaction.atomic():
        chat = Chat.objects.select_for_update(no_key=True).filter(pk=chat_id).first()
        caller = member_of(chat, changed_by.pk)
        participant = Participant.objects.filter(
            chat_id=chat_id, pk=participant_id, user__isnull=False, left_at__isnull=True
        ).first()
        if chat is None or participant is None:
            raise NotAMember
        check_right(caller, Right.CHANGE_ROLES)
        is_guest = guests().filter(pk=str(participant.user_id)).exists()
        if is_guest and role != ParticipantRole.MEMBER:
            raise NotAllowed(Right.CHANGE_ROLES, GUESTS_ARE_MEMBERS)
        if participant.role == role:
            return membership_event(ev.ParticipantUpdated, participant, by=changed_by)
        was_owner = participant.role == ParticipantRole.OWNER
        participant.role = ParticipantRole(role)
        participant.save(update_fields=["role"])
        owners = Participant.objects.filter(
            chat=chat, role=ParticipantRole.OWNER, left_at__isnull=True
        )
        if not owners.exists():
            raise LastOwner
        event = append_membership(ev.ParticipantUpdated, participant, by=changed_by)
        end_links_of(participant, role=role)
        if was_owner:
            _without_payer(chat, participant)
    return event


def _without_owner(chat: Chat, leaver: Participant) -> None:
    """Appoint an owner if the chat has none left, and stop a member who left from paying for it.

    A guest owns no chat: without a person of this server, the chat ends.
    """
    people = Participant.objects.filter(chat=chat, user__isnull=False, left_at__isnull=True)
    local = people.exclude(user__in=guests())
    if not local.filter(role=ParticipantRole.OWNER).exists():
        admins = local.filter(role=ParticipantRole.ADMIN)
        longest = (
            admins.order_by("joined_at", "id").first() or local.order_by("joined_at", "id").first()
        )
        if longest is None and leaver.user is not None and people.exists():
            _end(chat, by=leaver.user)
        if longest is not None:
            longest.role = ParticipantRole.OWNER
            longest.save(update_fields=["role"])
            append_membership(ev.ParticipantUpdated, longest, by=None)
    _without_payer(chat, leaver)


def _without_payer(chat: Chat, former: Participant) -> None:
    """Fall back to askers paying if the payer no longer owns the chat."""
    if chat.payer == PayerRule.OWNER and chat.payer_user_id == former.user_id:
        chat.refresh_from_db()
        chat.payer, chat.payer_user, chat.agreed_prices = PayerRule.ASKER, None, None
        chat.save(update_fields=["payer", "payer_user", "agreed_prices"])
        append_change(chat)


def membership_event(kind: type[Change], participant: Participant, *, by: User | None) -> Change:
    """Return a membership event; `by` is the person who caused it, None for the server."""
    return kind(
        event_id=new_event_id(),
        timestamp=milliseconds(timezone.now()),
        chat_id=participant.chat_id,
        participant=_member(participant),
        by=None if by is None else ev.Actor(id=str(by.pk), name=by.get_username()),
    )


def _member(row: Participant) -> ev.ChatMember:
    if row.user is not None:
        return ev.ChatMember(
            kind="user",
            id=str(row.user.pk),
            name=row.user.get_username(),
            participant_id=row.pk,
            role=str(row.role),
        )
    return ev.ChatMember(
        kind="agent",
        id=str(row.agent_id),
        name=str(row.agent),
        participant_id=row.pk,
        role=str(row.role),
        trigger=str(row.trigger),
        keywords=tuple(row.keywords or ()) or None,
        context=row.context,
        context_messages=row.context_messages,
        budget=row.budget,
        budget_period=row.budget_period,
    )


def append_membership(kind: type[Change], participant: Participant, *, by: User | None) -> Change:
    """Append a membership event to the log of its chat; needs a transaction."""
    event = membership_event(kind, participant, by=by)
    entry = salted_entry(event)
    seq = append(participant.chat_id, [entry], at=timezone.now())
    return msgspec.structs.replace(event, seq=seq)
