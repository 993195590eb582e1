"""The facts of a turn: what is stored about its chat, read at once on one database thread.

Assembling the message and choosing the agents that answer are pure functions of these facts. A turn
in a private chat whose agent is cached reads nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from django.conf import settings

from agents_app import selectors as agents
from agents_app.selectors import AgentSpec
from chat_app.conversation.threads import followers_of
from chat_app.log import history as chat_history
from chat_app.members import membership
from chat_app.members.agents.triggers import triggered
from chat_app.members.membership import AgentMember
from chat_app.members.mentions import mentioned_people
from chat_app.mentioned import has_sign
from sessions_app import database, services
from sessions_app.queue import rows
from sessions_app.turn.threads import TurnThread, names_thread, thread_of
from sessions_app.turn.versions import ReplacedAnswer, read_replaced
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from chat_app.log.history import HistoryMessage
    from sessions_app.process.history import History
    from sessions_app.records import OpenSession
    from sessions_app.turn.request import TurnRequest


class TurnFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts from which a turn is assembled and its agents are chosen.

    `members` are the agents of the chat as its asker may use them. `agent` is that of a private
    chat; None if its asker may no longer use it. `last_seq` is the place of the last entry in the
    chat's log; None if it was not read.
    """

    replaced: ReplacedAnswer | None = None
    thread: TurnThread | None = None
    # The message that the turn replies to, and its quote for agents.
    reply_to: str | None = None
    quote: str = ""
    mentions: tuple[int, ...] = ()
    followers: tuple[int, ...] = ()
    members: Sequence[AgentMember] = ()
    agent: AgentSpec | None = None
    last_seq: int | None = None


class QueueFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that decide whether a turn is queued; `is_busy` comes from `queue.rows`."""

    is_member: bool
    is_busy: bool
    members: Sequence[AgentMember]


async def facts_of(request: TurnRequest, text: str | None, history: History) -> TurnFacts:
    """Read the facts of a turn; `text` is that of its message, or None if it has no message.

    Also read the history of the chat if an agent is about to answer and it is not cached. Raises
    RemoteProtocolError (chat_not_found, message_not_found, forbidden, message_conflict or
    thread_nested) if the turn cannot replace, reply to or continue what it names.
    """
    agent = _cached_agent(request.session)
    if not _is_read(request, text, agent):
        return TurnFacts(thread=thread_of(request, None), agent=agent)
    chat_id = request.session.chat_id
    facts, messages = await database.run(_read, request, text, known_seq=history.seq_of(chat_id))
    if messages is not None and facts.last_seq is not None:
        history.remember(chat_id, facts.last_seq, messages)
    return facts


async def queue_facts_of(request: TurnRequest) -> QueueFacts:
    """Return the facts that decide whether a turn is queued."""
    return await database.run(_read_queue, request)


def _read_queue(request: TurnRequest) -> QueueFacts:
    session = request.session
    is_named = request.create.agents is not None
    return QueueFacts(
        is_member=services.is_member(session),
        is_busy=session.home is not None or rows.is_busy(session.chat_id),
        members=_members(session)[0] if is_named else (),
    )


def _is_read(request: TurnRequest, text: str | None, agent: AgentSpec | None) -> bool:
    """Return whether anything about a turn has to be read."""
    return (
        request.create.replaces is not None
        or names_thread(request)
        or _reply_to(request) is not None
        or _reads_people(request, text)
        or _reads_members(request)
        or (_has_agent(request.session) and agent is None and not request.asked)
    )


def _reads_people(request: TurnRequest, text: str | None) -> bool:
    """Return whether a message of a shared chat may concern people who are not its asker."""
    if text is None or not request.session.is_shared:
        return False
    return has_sign(text) or request.thread is not None


def _reads_members(request: TurnRequest) -> bool:
    return not request.asked and (request.session.chat_scoped or not _has_agent(request.session))


def _has_agent(session: OpenSession) -> bool:
    """Return whether the session's agent answers it, in a private chat."""
    is_named = session.agent_id is not None and session.agent_name is not None
    return is_named and not session.chat_scoped


def _reply_to(request: TurnRequest) -> str | None:
    return next(
        (input_event.reply_to for input_event in request.inputs if input_event.reply_to), None
    )


# --- On a database thread ---


def _read(
    request: TurnRequest, text: str | None, *, known_seq: int | None
) -> tuple[TurnFacts, list[HistoryMessage] | None]:
    """Return the facts, and the history up to `last_seq` if needed and newer than `known_seq`."""
    session, message_id = request.session, _reply_to(request)
    replaces = request.create.replaces
    if session.is_shared and (replaces or message_id or names_thread(request)):
        _check_member(session)
    replaced = None if replaces is None else read_replaced(session, replaces)
    thread = thread_of(request, replaced)
    quote = "" if message_id is None else _quote_of(session, message_id)
    mentions: tuple[int, ...] = ()
    followers: tuple[int, ...] = ()
    if text is not None and session.is_shared:
        author = session.principal.user_id
        mentions = mentioned_people(session.chat_id, text, author=author)
        if thread is not None:
            followers = followers_of(
                session.chat_id, thread.root_id, mentions=mentions, author=author
            )
    members: list[AgentMember] = []
    last_seq: int | None = None
    agent: AgentSpec | None = None
    if _reads_members(request):
        members, last_seq = _members(session)
    elif not request.asked:
        agent = _agent_of(session)
    facts = TurnFacts(
        replaced=replaced,
        thread=thread,
        reply_to=message_id,
        quote=quote,
        mentions=mentions,
        followers=followers,
        members=members,
        agent=agent,
        last_seq=last_seq,
    )
    called = [member for member in _called(request, text, members) if _may_answer(member)]
    for member in called:
        # It is cached for the steps that follow, which raise this again.
        with suppress(agents.AgentNotFoundError):
            agents.get_spec(member.agent_id)
    if not called or last_seq is None or last_seq == known_seq or replaced is not None:
        return facts, None
    limit = settings.UAMP_HISTORY_MESSAGES
    return facts, chat_history.history(session.chat_id, limit=limit, before=last_seq + 1)


def _called(
    request: TurnRequest, text: str | None, members: Sequence[AgentMember]
) -> Sequence[AgentMember]:
    """Return the agents that may answer, from what is known before they are chosen."""
    session, names = request.session, request.create.agents
    if names is not None:
        return [member for member in members if any(map(member.is_named, names))]
    if session.agent_id is not None:
        return [member for member in members if member.agent_id == session.agent_id]
    if text is not None:
        return triggered(text, members)
    return [member for member in members if member.trigger == "always"] or members[:1]


def _may_answer(member: AgentMember) -> bool:
    return member.is_enabled and member.is_usable and not member.is_quiet


def _check_member(session: OpenSession) -> None:
    if not services.is_member(session):
        raise RemoteProtocolError(
            ErrorCode.CHAT_NOT_FOUND, "There is no such chat, or you are not in it."
        )


def _quote_of(session: OpenSession, message_id: str) -> str:
    quotes = chat_history.quotes_of(session.chat_id, [message_id])
    if message_id not in quotes:
        raise RemoteProtocolError(
            ErrorCode.MESSAGE_NOT_FOUND, "reply_to does not match any message in this chat."
        )
    return quotes[message_id]


def _members(session: OpenSession) -> tuple[list[AgentMember], int | None]:
    """Return the agents of a session's chat as its person may use them, and its last `seq`."""
    return membership.agents_and_seq(session.chat_id, asker=session.principal.user_id)


def _agent_of(session: OpenSession) -> AgentSpec | None:
    """Return the agent of a private chat, if it is still available to its person."""
    if session.agent_id is None:
        return None
    try:
        spec = agents.get_spec(session.agent_id)
    except agents.AgentNotFoundError:
        return None
    if _is_open_to(spec, session):
        return spec
    viewer = session.principal.user_id
    agent = agents.get_agent(session.agent_id, viewer=viewer, is_enabled=spec.is_enabled)
    return None if agent is None else spec


def _cached_agent(session: OpenSession) -> AgentSpec | None:
    """Return the agent of a private chat if the cache says that its person may use it."""
    if session.agent_id is None or not _has_agent(session):
        return None
    spec = agents.remembered(session.agent_id)
    return spec if spec is not None and _is_open_to(spec, session) else None


def _is_open_to(spec: AgentSpec, session: OpenSession) -> bool:
    """Return whether an agent is public or a session's own, so that no staff right is needed.

    For delegated work, permission was checked when the work was given.
    """
    viewer = session.principal.user_id
    is_theirs = session.parent is not None or (viewer is not None and spec.owner_id == viewer)
    return is_theirs or spec.is_public
