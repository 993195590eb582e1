"""Rejection of turns with nothing to answer, before an agent is called or paid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chat_app.log import history
from sessions_app import database
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev
from uamp.conversation import says_something

if TYPE_CHECKING:
    from sessions_app.turn.request import TurnRequest


async def check_content(request: TurnRequest) -> None:
    """Reject a turn with nothing to answer; raises RemoteProtocolError invalid_event.

    That is a turn whose texts are all blank. A turn without inputs or messages is valid if its chat
    has messages, or if instructions let the agent speak first.
    """
    create, session = request.create, request.session
    config = create.response or ev.ResponseConfig()
    if create.replaces is not None or request.attachments or any(map(_says, request.inputs)):
        return
    if any(map(says_something, config.messages or ())):
        return
    if not request.inputs:
        if (config.instructions or session.config.instructions or "").strip():
            return
        last = await database.run(history.last_messages, session.chat_id, limit=1)
        if config.messages is None and last:
            return
    raise RemoteProtocolError(
        ErrorCode.INVALID_EVENT,
        "There is nothing to answer: send a message with text, or a file.",
        event_id=create.event_id,
    )


def _says(given: ev.InputEvent) -> bool:
    """Return whether an input has content; media always do."""
    if not isinstance(given, ev.InputText):
        return True
    return bool(given.text.strip()) or any(map(says_something, given.messages or ()))
