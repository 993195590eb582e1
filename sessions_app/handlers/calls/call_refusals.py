"""Shared parts of the call handlers: the chat of an event, and refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from chat_app.calls import agents, call_change, operations
from chat_app.log.homes import BelongsElsewhere
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from sessions_app.connection.attached_session import AttachedSession


def chat_of(attached: AttachedSession, chat_id: str | None) -> str:
    """Return the session's chat; raises RemoteProtocolError if an event names another."""
    if chat_id is not None and chat_id != attached.session.chat_id:
        raise RemoteProtocolError(ErrorCode.CHAT_NOT_FOUND, "This session belongs to another chat.")
    return attached.session.chat_id


REFUSALS: Final = (
    BelongsElsewhere,
    agents.NoSuchAgent,
    agents.TakesNoCalls,
    agents.TooManyAgents,
    call_change.NoSuchMember,
    call_change.NoSuchCall,
    call_change.NotInCall,
    operations.CallRuns,
    operations.CallIsFull,
)
"""The reasons for refusing an action in a call."""


def refusal(error: Exception) -> RemoteProtocolError:
    """Convert a refused action in a call to the client's error."""
    if isinstance(error, agents.NoSuchAgent | agents.TakesNoCalls | agents.TooManyAgents):
        return _refusal_of_agent(error)
    if isinstance(error, call_change.NoSuchMember | BelongsElsewhere):
        return _refusal_of_chat(error)
    if isinstance(error, call_change.NoSuchCall):
        return RemoteProtocolError(
            ErrorCode.CALL_NOT_FOUND, "This call is over. Start one with a new call_id."
        )
    if isinstance(error, operations.CallRuns):
        return RemoteProtocolError(
            ErrorCode.CALL_RUNNING, str(error), details={"call_id": error.call_id}
        )
    if isinstance(error, operations.CallIsFull):
        return RemoteProtocolError(
            ErrorCode.CALL_FULL, "The call has the maximum number of people."
        )
    return RemoteProtocolError(ErrorCode.NOT_IN_CALL, "Only participants of the call may do that.")


def _refusal_of_chat(error: Exception) -> RemoteProtocolError:
    if isinstance(error, BelongsElsewhere):
        return RemoteProtocolError(ErrorCode.FORBIDDEN, str(error))
    return RemoteProtocolError(
        ErrorCode.CHAT_NOT_FOUND, "Only members of the session's chat can be called."
    )


def _refusal_of_agent(error: Exception) -> RemoteProtocolError:
    if isinstance(error, agents.NoSuchAgent):
        return RemoteProtocolError(
            ErrorCode.AGENT_NOT_FOUND, "The chat has no agent with that name. Add it first."
        )
    if isinstance(error, agents.TakesNoCalls):
        return RemoteProtocolError(
            ErrorCode.UNSUPPORTED_MODALITY,
            "The agent's model does not support speech. See its capabilities.",
            details={"modality": "audio"},
        )
    return RemoteProtocolError(ErrorCode.CALL_FULL, "The call has the maximum number of agents.")
