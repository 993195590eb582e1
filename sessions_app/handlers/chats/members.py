"""A member's changes to the session's chat: settings, members, agents (additions).

The chat receives each change as a log entry. The sender gets a reply only where that entry does not
reach them: in sessions that did not name a chat, and for changes without effect.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from django.contrib.auth.models import User

from agents_app.rest.rights import MissingRight
from chat_app.members import chats, participants
from chat_app.members.agents import agent_settings
from chat_app.members.agents.agent_settings import AgentSettings, NoKeywords
from chat_app.members.avatars import InvalidAvatar
from chat_app.members.chats import ChatChange, NoSponsor
from chat_app.members.inviting import (
    CannotInvite,
    invite_from_elsewhere,
    is_elsewhere,
    people_here,
)
from chat_app.members.membership import NotAMember
from chat_app.members.participants import LastOwner
from chat_app.members.rights import NotAllowed
from sessions_app import database, services
from sessions_app.access.protocol_rights import forbidden
from sessions_app.connection.rate_limit import check_rate
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    import uamp
    from sessions_app.connection.attached_session import AttachedSession
    from sessions_app.connection.client_connection import ClientConnection
    from sessions_app.records import OpenSession

    Change: TypeAlias = (
        ev.ChatUpdate | ev.ParticipantAdd | ev.ParticipantRemove | ev.ParticipantUpdate
    )


async def take_chat_update(connection: ClientConnection, event: ev.ChatUpdate) -> None:
    """Change the name and settings of the session's chat."""
    await _change(connection, event, _update_chat)


async def take_addition(connection: ClientConnection, event: ev.ParticipantAdd) -> None:
    """Add a person or an agent to the session's chat; a person of another server is invited."""
    if (event.user is None) == (event.agent is None):
        raise RemoteProtocolError(ErrorCode.INVALID_EVENT, "Send either a user or an agent.")
    if event.user is not None and event.trigger is not None:
        raise RemoteProtocolError(ErrorCode.INVALID_EVENT, "Only agents can have a trigger.")
    await _change(connection, event, _add)


async def take_removal(connection: ClientConnection, event: ev.ParticipantRemove) -> None:
    """Remove the sender or another member from the session's chat."""
    await _change(connection, event, _remove)


async def take_participant_update(
    connection: ClientConnection, event: ev.ParticipantUpdate
) -> None:
    """Change a person's role, or when and how an agent answers in the session's chat."""
    if event.role is not None and _settings_of(event) != AgentSettings():
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT, "Change the role of a person, or how an agent answers."
        )
    await _change(connection, event, _update_participant)


async def _change(
    connection: ClientConnection,
    event: Change,
    change: Callable[..., uamp.Event | None],
) -> None:
    attached: AttachedSession = connection.attached_to(event)
    session = attached.session
    if event.chat_id is not None and event.chat_id != session.chat_id:
        raise RemoteProtocolError(ErrorCode.CHAT_NOT_FOUND, "This session belongs to another chat.")
    await check_rate(connection, session.principal, "writes", session.wire_id)
    try:
        done = await database.run(partial(_as_person, session, event, change))
    except Exception as error:
        if (refusal := _refusal(error)) is None:
            raise
        raise refusal from None
    if done is not None and (done.seq is None or not session.chat_scoped):
        connection.reply(done, session_id=session.wire_id, in_reply_to=event.event_id)


def _as_person(
    session: OpenSession, event: Change, change: Callable[..., uamp.Event | None]
) -> uamp.Event | None:
    user_id = session.principal.user_id
    person = None if user_id is None else User.objects.filter(pk=user_id).first()
    if person is None:
        raise NotAMember
    return change(session, event, person)


def _update_chat(session: OpenSession, event: ev.ChatUpdate, person: User) -> uamp.Event:
    values = {name: getattr(event, name) for name in ChatChange.__struct_fields__}
    return chats.update_chat(
        chat_id=session.chat_id,
        changed_by=person,
        change=ChatChange(**values),
        rights=session.principal.rights,
    )


def _add(session: OpenSession, event: ev.ParticipantAdd, person: User) -> uamp.Event | None:
    if event.user is not None:
        if is_elsewhere(event.user):
            invite_from_elsewhere(session.chat_id, person, event.user)
            return None
        user = people_here().filter(username=event.user).first()
        if user is None:
            raise RemoteProtocolError(
                ErrorCode.INVALID_EVENT, f"There is no person named {event.user!r}."
            )
        participants.add_participant(chat_id=session.chat_id, added_by=person, user=user)
        return None
    spec = services.agent_by_name(event.agent or "", session.principal)
    participants.add_participant(
        chat_id=session.chat_id,
        added_by=person,
        agent_id=spec.id,
        trigger=event.trigger or spec.trigger,
        rights=session.principal.rights,
    )
    return None


def _remove(session: OpenSession, event: ev.ParticipantRemove, person: User) -> None:
    participants.remove_participant(
        chat_id=session.chat_id, removed_by=person, participant_id=event.participant_id
    )


def _update_participant(
    session: OpenSession, event: ev.ParticipantUpdate, person: User
) -> uamp.Event:
    if event.role is not None:
        return participants.change_role(
            chat_id=session.chat_id,
            changed_by=person,
            participant_id=event.participant_id,
            role=event.role,
        )
    return agent_settings.set_agent(
        chat_id=session.chat_id,
        changed_by=person,
        participant_id=event.participant_id,
        change=_settings_of(event),
        rights=session.principal.rights,
    )


def _settings_of(event: ev.ParticipantUpdate) -> AgentSettings:
    return AgentSettings(**{name: getattr(event, name) for name in AgentSettings.__struct_fields__})


def _refusal(error: Exception) -> RemoteProtocolError | None:
    """Convert a refused change to its protocol error; None for other errors."""
    match error:
        case MissingRight():
            return forbidden(error)
        case NotAMember():
            code, words = ErrorCode.CHAT_NOT_FOUND, "There is no such member in this chat."
        case NotAllowed():
            code, words = ErrorCode.FORBIDDEN, str(error)
        case LastOwner():
            code = ErrorCode.FORBIDDEN
            words = "A chat needs an owner: make another member an owner first."
        case NoSponsor():
            code = ErrorCode.INVALID_EVENT
            words = "No agent of this chat has an owner who pays for its answers."
        case InvalidAvatar() | NoKeywords() | CannotInvite():
            code, words = ErrorCode.INVALID_EVENT, str(error)
        case _:
            return None
    return RemoteProtocolError(code, words)
