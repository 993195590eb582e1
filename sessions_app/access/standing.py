"""Who may not act any more while an answer runs for them: people, credentials and agents.

It is read from rows, so that it holds whichever process made the change. Synchronous.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agents_app import selectors as agents
from chat_app.members import membership
from sessions_app.access import keys
from uamp import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY_ENDED: Final = "The key that asked for this answer was revoked or has expired."
NOT_IN_CHAT: Final = "Who asked for this answer is not in the chat any more, or was deactivated."


class Asked(NamedTuple):
    """The rights that an answer needs: its agent, who asked, in which chat, with which credential.

    A visitor has no `user_id` and no credential.
    """

    agent_id: str
    agent: str
    user_id: int | None
    chat_id: str
    credential: str


class Loss(NamedTuple):
    """Why an answer may not go on: the code and the words of its end."""

    code: ErrorCode
    message: str


def lost(asked: Mapping[str, Asked]) -> dict[str, Loss]:
    """Return which of these answers may not go on, and why; three queries for all of them."""
    enabled = agents.enabled({one.agent_id for one in asked.values()})
    people = {one.user_id for one in asked.values() if one.user_id is not None}
    chats = {one.chat_id for one in asked.values() if one.user_id is not None}
    members = membership.active_members(chats, people) if people else set()
    ended = keys.ended({one.credential for one in asked.values()})
    losses: dict[str, Loss] = {}
    for response_id, one in asked.items():
        if one.agent_id not in enabled:
            losses[response_id] = agent_disabled(one.agent)
        elif one.credential in ended:
            losses[response_id] = Loss(ErrorCode.UNAUTHORIZED, KEY_ENDED)
        elif one.user_id is not None and (one.chat_id, one.user_id) not in members:
            losses[response_id] = Loss(ErrorCode.UNAUTHORIZED, NOT_IN_CHAT)
    return losses


def agent_disabled(name: str) -> Loss:
    """Return why an agent that is switched off does not answer."""
    return Loss(ErrorCode.AGENT_DISABLED, f"{name} is switched off.")
