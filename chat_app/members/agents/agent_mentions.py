"""Mentions of agents by agents: which are answered, and what stops them. Synchronous.

Guards decide, based on rows alone: how many times in a row agents asked each other (hops), how
often these two have asked each other recently (the pair window), whether agents are silenced,
whether the agent that is asked is enabled, and whether both the asker and the owner of the asking
agent may use it. A mention that a guard stops becomes a log entry with the reason.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import msgspec
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from agents_app import selectors as agents
from chat_app.folding import folded
from chat_app.ids import new_event_id
from chat_app.log.entries import append, lock_chats, milliseconds, salted_entry
from chat_app.members.membership import AgentMember, all_agent_members
from chat_app.mentioned import has_sign, mentioned_names
from chat_app.models import AgentMention, ChatKind
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from chat_app.log.entries import NewMessage
    from chat_app.models import Chat

_QUOTE: Final = re.compile(r" {0,3}>")
_FENCE: Final = re.compile(r" {0,3}(?:(`{3,})[^`]*\Z|(~{3,}))")
_CODE: Final = re.compile(r"`[^`]*`")


DISABLED: Final = "disabled"
"""The reason given for an agent that is switched off."""
PRIVATE: Final = "private"
"""The reason given for an agent that the asker, or the owner of the asking one, may not use."""


class MentionStop(msgspec.Struct, frozen=True, kw_only=True):
    """Why an agent does not answer a mention: `reason` for programs, `words` for people."""

    agent_id: str
    agent: str
    reason: str
    words: str
    mentioned_by: str | None = None


def may_mention(message: NewMessage) -> bool:
    """Return whether an answer may mention an agent: it must be complete."""
    return message.status == "completed" and has_sign(message.content)


def without_quotes(text: str) -> str:
    """Return a text without quotes and code: mentions in them address no one."""
    lines = []
    fence = ""
    for line in text.split("\n"):
        if fence:
            if line.lstrip(" ").startswith(fence):
                fence = ""
        elif (opening := _FENCE.match(line)) is not None:
            fence = opening[1] or opening[2]
        elif _QUOTE.match(line) is None:
            lines.append(_CODE.sub("", line))
    return "\n".join(lines)


def append_stops(
    chat_id: str,
    stops: Sequence[MentionStop],
    *,
    message_id: str | None = None,
    response_id: str | None = None,
    thread: str | None = None,
) -> None:
    """Append the reasons why agents do not answer to the log of their chat."""
    if not stops:
        return
    now = timezone.now()
    entries = []
    for stop in stops:
        event = ev.AgentStopped(
            event_id=new_event_id(),
            timestamp=milliseconds(now),
            chat_id=chat_id,
            agent=stop.agent,
            agent_id=stop.agent_id,
            reason=stop.reason,
            message=stop.words,
            mentioned_by=stop.mentioned_by,
            message_id=message_id,
            response_id=response_id,
            thread=thread,
        )
        entries.append(salted_entry(event))
    append(chat_id, entries, at=now)


def agents_asked(
    chat_id: str,
    *,
    by: AgentMember,
    asker: int | None = None,
    text: str,
    hops: int,
    but: Collection[str],
    message_id: str,
    thread: str | None = None,
) -> list[AgentMember]:
    """Return the agents of a chat that another agent's answer asks, and record the mentions.

    `asker` is the person for whom the first one answers, `hops` is how many times agents had asked
    each other before this answer, `but` are the ids of agents that the answered message asked as
    well, `thread` is the thread of the answer, if any.
    Mentions stopped by a guard are logged.
    """
    own_text = without_quotes(text)
    with transaction.atomic():
        chat = lock_chats([chat_id]).get(chat_id)
        if chat is None or chat.kind != ChatKind.GROUP:
            return []
        limit = settings.UAMP_AGENT_HOPS if chat.agent_hops is None else chat.agent_hops
        members = all_agent_members(chat_id, asker=asker)
        names = mentioned_names(own_text, (member.name for member in members))
        meant = [
            member
            for member in members
            if folded(member.name) in names
            and member.trigger != "never"
            and member.agent_id not in {by.agent_id, *but}
        ]
        if not limit or not meant:
            return []
        meant = _usable_by_owner_of(by, meant, chat_id)
        stops = [_stop(chat, member, by=by, hops=hops, limit=limit) for member in meant]
        targets = [member for member, stop in zip(meant, stops, strict=True) if stop is None]
        AgentMention.objects.bulk_create(
            AgentMention(chat=chat, pair=_pair(member, by)) for member in targets
        )
        stopped = [stop for stop in stops if stop is not None]
        append_stops(chat_id, stopped, message_id=message_id, thread=thread)
    return targets


def _usable_by_owner_of(
    by: AgentMember, meant: Sequence[AgentMember], chat_id: str
) -> list[AgentMember]:
    """Return these members; those that the owner of `by` may not use are not usable."""
    standing = agents.standing_of([by.agent_id]).get(by.agent_id)
    if standing is None or standing.owner_id is None:
        return list(meant)
    theirs = all_agent_members(chat_id, asker=standing.owner_id)
    usable = {member.agent_id for member in theirs if member.is_usable}
    return [
        msgspec.structs.replace(member, is_usable=member.is_usable and member.agent_id in usable)
        for member in meant
    ]


def _stop(
    chat: Chat, member: AgentMember, *, by: AgentMember, hops: int, limit: int
) -> MentionStop | None:
    """Return the guard that stops a mention, if any."""
    window = timedelta(seconds=settings.UAMP_AGENT_PAIR_SECONDS)
    since = timezone.now() - window
    AgentMention.objects.filter(chat=chat, created_at__lt=since).delete()
    if not member.is_usable:
        reason, words = PRIVATE, "it is private"
    elif not member.is_enabled:
        reason, words = DISABLED, "it is switched off"
    elif member.is_quiet:
        reason, words = "quiet", "the agents of this chat are paused"
    elif hops >= limit:
        reason = "hops"
        words = f"agents asked each other {limit} times in a row, which is the limit here"
    elif (
        AgentMention.objects.filter(chat=chat, pair=_pair(member, by)).count()
        >= settings.UAMP_AGENT_PAIR_MENTIONS
    ):
        reason = "pair"
        words = (
            f"the two asked each other {settings.UAMP_AGENT_PAIR_MENTIONS} times in"
            f" {window.total_seconds() / 60:g} minutes, which is the limit"
        )
    else:
        return None
    return MentionStop(
        agent_id=member.agent_id,
        agent=member.name,
        reason=reason,
        words=f"{by.name} mentioned {member.name}, which does not answer: {words}.",
        mentioned_by=by.name,
    )


def _pair(member: AgentMember, other: AgentMember) -> str:
    return " ".join(sorted((member.agent_id, other.agent_id)))
