"""The trigger and context of agents in a chat: when one answers, and what it sees. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from chat_app.folding import folded
from chat_app.mentioned import JOINED, mentioned_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chat_app.log.history import HistoryMessage
    from chat_app.members.membership import AgentMember

KEYWORD_CHARS: Final = 16_384
"""How many characters at the beginning of a message are searched for keywords."""
MAX_WORD: Final = 256
_IN_WORD: Final = re.compile(rf"(?![{JOINED}])\w")
# Where a keyword may begin and end.
_START: Final = rf"(?:(?<!\w)|(?<=[{JOINED}])|(?=[{JOINED}]))"
_END: Final = rf"(?:(?!\w)|(?<=[{JOINED}])|(?=[{JOINED}]))"


def triggered(text: str, members: Sequence[AgentMember]) -> list[AgentMember]:
    """Return the agents that answer a message of a shared chat, in the order of joining."""
    mentioned = mentioned_names(text, (member.name for member in members))
    return [member for member in members if _answers(member, text, mentioned)]


def _answers(member: AgentMember, text: str, mentioned: set[str]) -> bool:
    match member.trigger:
        case "always":
            return True
        case "mention":
            return folded(member.name) in mentioned
        case "keyword":
            return folded(member.name) in mentioned or _has_keyword(text, member.keywords)
    return False


def _has_keyword(text: str, keywords: Sequence[str]) -> bool:
    """Return whether the beginning of a text contains one of these keywords, as whole words.

    Letters of scripts that are written without spaces do not continue a word.
    """
    if not keywords:
        return False
    words = "|".join(re.escape(word) for keyword in keywords if (word := _spaced(keyword)))
    if not words:
        return False
    beginning = _spaced_beginning(text[: KEYWORD_CHARS + 1])
    return re.search(rf"{_START}(?:{words}){_END}", beginning) is not None


# All agents of a chat search the same messages.
@lru_cache(maxsize=128)
def _spaced_beginning(text: str) -> str:
    """Return the first KEYWORD_CHARS of a text, up to the last word that is complete."""
    end = KEYWORD_CHARS
    if _IN_WORD.match(text, end) is not None:
        while end > KEYWORD_CHARS - MAX_WORD and _IN_WORD.match(text, end - 1) is not None:
            end -= 1
    return _spaced(text[:end])


def _spaced(text: str) -> str:
    """Return a text folded, with one space between words."""
    return " ".join(folded(text).split())


def visible_messages(
    member: AgentMember | None,
    messages: Sequence[HistoryMessage],
    thread: Sequence[HistoryMessage] = (),
) -> list[HistoryMessage]:
    """Return the part of a conversation that an agent sees, by its scope in the chat.

    The last message is always included: it is the one being answered. If it is answered in a
    `thread`, it is the last message of that thread; the thread then follows the messages of the
    chat, and its root is always included too.
    """
    if thread:
        return _shown_in_thread(member, messages, thread)
    if member is None or not messages:
        return list(messages)
    match member.context:
        case "last":
            return list(messages[-(member.context_messages or 1) :])
        case "addressed":
            earlier = [m for m in messages[:-1] if _is_addressed(m, member)]
            return [*earlier, messages[-1]]
    return list(messages)


def _shown_in_thread(
    member: AgentMember | None,
    messages: Sequence[HistoryMessage],
    thread: Sequence[HistoryMessage],
) -> list[HistoryMessage]:
    thread_ids = {message.message_id for message in thread}
    around = [message for message in messages if message.message_id not in thread_ids]
    if member is not None and member.context == "last":
        last = [*around, *thread][-(member.context_messages or 1) :]
        return last if thread[0] in last else [thread[0], *last]
    if member is not None and member.context == "addressed":
        around = [message for message in around if _is_addressed(message, member)]
    return [*around, *thread]


def is_addressed(member: AgentMember, content: str, agent_id: str | None) -> bool:
    """Return whether an agent whose scope is `addressed` sees a message.

    `agent_id` is the agent that wrote it, if one did.
    """
    if agent_id == member.agent_id:
        return True
    mentioned = mentioned_names(content, [member.name])
    if agent_id is not None:
        return folded(member.name) in mentioned
    return _answers(member, content, mentioned)


def _is_addressed(message: HistoryMessage, member: AgentMember) -> bool:
    return is_addressed(member, message.content, message.agent_id)
