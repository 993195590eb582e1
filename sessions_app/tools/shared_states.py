"""Reading and changing the state of a chat for a response's agent. Synchronous."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from django.db import transaction

from agents_app.tools.registry import ToolError
from chat_app.log.entries import lock_chats
from chat_app.log.shared_state import read_state, write_state
from sessions_app.models import Response
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from uamp.shared_state import StateChange, VersionedState


def read_for_response(chat_id: str) -> VersionedState:
    """Return the state of the chat that a response belongs to."""
    return read_state(chat_id)


def change_for_response(
    change: StateChange, *, chat_id: str, response_id: str, fence: int, agent: str
) -> VersionedState | None:
    """Change the state for the run that holds a response; return None if another run holds it.

    Raises ToolError if the change is refused; after a conflict the message contains the current
    state.
    """
    with transaction.atomic():
        lock_chats([chat_id])
        if not Response.objects.filter(pk=response_id, fence=fence).exists():
            return None
        try:
            return write_state(chat_id, change, agent=agent, response_id=response_id)
        except RemoteProtocolError as error:
            if error.code != ErrorCode.STATE_CONFLICT:
                raise ToolError(error.message) from None
            value = msgspec.json.encode(read_state(chat_id).value).decode()
            raise ToolError(f"{error.message} It is: {value}") from None
