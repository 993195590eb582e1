"""Detecting people, credentials and agents that lost the right to have an answer running.

Read from rows, so it does not matter which process made the change. Synchronous.
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
    """The basis of an answer's rights: its agent, asker, chat and credential.

    Visitors have no `user_id` and no credential.
    """

    agent_id: str
    agent: str
    user_id: int | None
    chat_id: str
    credential: str


class Loss(NamedTuple):
    """Why an answer must stop: the error code and message of its end."""

    code: ErrorCode
    message: str

    @property
    def is_by_others(self) -> bool:
        """Whether others than the asker and the payer may have caused it."""
        return self.code == ErrorCode.AGENT_DISABLED or self.message == NOT_IN_CHAT


def lost(asked: Mapping[str, Asked]) -> dict[str, Loss]:
    """Return the answers that must stop, with reasons; takes three queries in total."""
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
    """Return the reason that a switched-off agent does not answer."""
    return Loss(ErrorCode.AGENT_DISABLED, f"{name} is switched off.")
