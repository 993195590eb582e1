"""Detecting people, credentials and agents that lost the right to have an answer running.

Read from rows, so it does not matter which process made the change. Synchronous.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agents_app import selectors as agents
from chat_app.members import membership
from sessions_app.access import keys
from sessions_app.access.principal import PrincipalKind
from sessions_app.access.stored_keys import ended_actors, owner_of_key
from uamp import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY_ENDED: Final = "The key that asked for this answer was revoked or has expired."
PEER_ENDED: Final = "This server no longer trusts the server that asked for this answer."
PASSED_ON: Final = "The token that asked for this answer was passed on with a key that has ended."
NOT_IN_CHAT: Final = "The person who asked for this answer has left the chat or was deactivated."


class AnswerBasis(NamedTuple):
    """The basis of an answer's rights: its agent, asker, chat and credential.

    Visitors have no `user_id` and no credential. An agent that works for another one
    (`is_delegated`) need not be the asker's to use: the other one's owner may have lent it.
    """

    agent_id: str
    agent: str
    user_id: int | None
    chat_id: str
    credential: str
    actors: tuple[tuple[str, int], ...] = ()
    is_delegated: bool = False


class Loss(NamedTuple):
    """Why an answer must stop: the error code and message of its end."""

    code: ErrorCode
    message: str
    is_by_others: bool = False
    """Whether others than the asker and the payer may have caused it."""
    by: int | None = None
    """The person who caused it, if known: it is not by others if they asked or pay."""


def revoked_answers(bases: Mapping[str, AnswerBasis]) -> dict[str, Loss]:
    """Return the answers that must stop, with reasons.

    Takes three queries in total, two more if private agents answer others than their owners, and
    another one each if peers asked and if tokens were passed on; a loss takes up to two more.
    """
    standing = agents.standing_of({basis.agent_id for basis in bases.values()})
    uses = {(basis.agent_id, basis.user_id) for basis in bases.values() if not basis.is_delegated}
    barred = agents.barred(uses, standing)
    at_stake = {
        (basis.chat_id, basis.agent_id)
        for basis in bases.values()
        if basis.user_id is not None and (basis.agent_id, basis.user_id) in barred
    }
    lent = membership.lent_agents(at_stake) if at_stake else set()
    people = {basis.user_id for basis in bases.values() if basis.user_id is not None}
    chats = {basis.chat_id for basis in bases.values() if basis.user_id is not None}
    members = membership.active_members(chats, people) if people else set()
    ended = keys.ended({basis.credential for basis in bases.values()})
    gone = ended_actors(actor for basis in bases.values() for actor in basis.actors)
    losses: dict[str, Loss] = {}
    for response_id, basis in bases.items():
        agent = standing.get(basis.agent_id)
        if agent is None or not agent.is_enabled:
            code, message = agent_disabled(basis.agent)
            losses[response_id] = Loss(code, message, is_by_others=True)
        elif (
            not basis.is_delegated
            and (basis.agent_id, basis.user_id) in barred
            and (basis.chat_id, basis.agent_id) not in lent
        ):
            message = is_private(basis.agent)
            losses[response_id] = Loss(ErrorCode.UNAUTHORIZED, message, is_by_others=True)
        elif basis.credential in ended:
            # A peer's trust is for operators to end, a key for its owner.
            is_peer = basis.credential.startswith(PrincipalKind.PEER.prefix)
            losses[response_id] = Loss(
                ErrorCode.UNAUTHORIZED, PEER_ENDED if is_peer else KEY_ENDED, is_by_others=is_peer
            )
        elif not gone.isdisjoint(basis.actors):
            by = owner_of_key(next(actor for actor in basis.actors if actor in gone))
            losses[response_id] = Loss(ErrorCode.UNAUTHORIZED, PASSED_ON, is_by_others=True, by=by)
        elif basis.user_id is not None and (basis.chat_id, basis.user_id) not in members:
            by = membership.ended_by(basis.chat_id, basis.user_id)
            losses[response_id] = Loss(
                ErrorCode.UNAUTHORIZED, NOT_IN_CHAT, is_by_others=True, by=by
            )
    return losses


def agent_disabled(name: str) -> tuple[ErrorCode, str]:
    """Return the reason that a switched-off agent does not answer."""
    return ErrorCode.AGENT_DISABLED, f"{name} is switched off."


def is_private(name: str) -> str:
    """Return the reason that an agent does not answer those who may not use it."""
    return f"{name} is private: only its owner and operators may use it."
