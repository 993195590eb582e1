"""The trigger and context of agents in a chat: when one answers, and what it sees. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from chat_app.mentioned import JOINED, mentioned_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chat_app.log.history import HistoryMessage
    from chat_app.members.membership import AgentMember

# Where a keyword may begin and end.
_START: Final = rf"(?:(?<!\w)|(?<=[{JOINED}])|(?=[{JOINED}]))"
_END: Final = rf"(?:(?!\w)|(?<=[{JOINED}])|(?=[{JOINED}]))"
# The soft hyphen, joiners, direction marks, and variation selectors.
_NOT_SHOWN: Final = re.compile(
    "[\u00ad\u200b-\u200f\u2060-\u2064\u202a-\u202e\u2066-\u2069\ufe00-\ufe0f\ufeff]"
)


def triggered(text: str, members: Sequence[AgentMember]) -> list[AgentMember]:
    """Return the agents that answer a message of a shared chat, in the order of joining."""
    mentioned = mentioned_names(text)
    return [member for member in members if _answers(member, text, mentioned)]


def _answers(member: AgentMember, text: str, mentioned: set[str]) -> bool:
    match member.trigger:
        case "always":
            return True
        case "mention":
            return member.name.casefold() in mentioned
        case "keyword":
            return member.name.casefold() in mentioned or _has_keyword(text, member.keywords)
    return False


def _has_keyword(text: str, keywords: Sequence[str]) -> bool:
    """Return whether a text contains one of these keywords or phrases, as whole words.

    Letters of scripts that are written without spaces do not continue a word.
    """
    if not keywords:
        return False
    words = "|".join(re.escape(_folded(word)) for word in keywords)
    return re.search(rf"{_START}(?:{words}){_END}", _folded(text)) is not None


def _folded(text: str) -> str:
    """Return a text in one case, width and spacing, without characters that are not shown."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(_NOT_SHOWN.sub("", folded).split())


def shown_to(
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
    known = {message.message_id for message in thread}
    around = [message for message in messages if message.message_id not in known]
    if member is not None and member.context == "last":
        last = [*around, *thread][-(member.context_messages or 1) :]
        return last if thread[0] in last else [thread[0], *last]
    if member is not None and member.context == "addressed":
        around = [message for message in around if _is_addressed(message, member)]
    return [*around, *thread]


def _is_addressed(message: HistoryMessage, member: AgentMember) -> bool:
    if message.agent_id == member.agent_id:
        return True
    mentioned = mentioned_names(message.content)
    if message.agent_id is not None:
        return member.name.casefold() in mentioned
    return _answers(member, message.content, mentioned)
