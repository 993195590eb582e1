"""A request of a foreign protocol as the events of a UAMP client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import uamp
from uamp import ErrorCode, RemoteProtocolError
from uamp.blank_text import is_blank
from uamp.conversation import says_something

if TYPE_CHECKING:
    from uamp.events import InputEvent


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientTurn:
    """The events of one turn: a session, its inputs and the request for a response.

    `thread` is the id under which the protocol's client continues a conversation: the same caller,
    agent and thread share a session. Without it, each turn gets a new session. `session_id` names
    an open session of the caller to continue instead. `is_kept` stores a turn's own session until
    its chat is deleted, because its client may come back to the response. A visitor takes the
    identity of the session `follows`, and may read what was sent there. With `shares_state`, the
    chat's state is read and followed before the response begins.
    """

    session: uamp.SessionCreate
    inputs: tuple[InputEvent | uamp.StateUpdate, ...] = ()
    response: uamp.ResponseCreate
    thread: str = ""
    session_id: str = ""
    is_kept: bool = False
    follows: str = ""
    shares_state: bool = False

    def check_content(self) -> None:
        """Raise RemoteProtocolError if all texts are blank, so that there is nothing to answer."""
        config = self.response.response or uamp.ResponseConfig()
        inputs = [event for event in self.inputs if not isinstance(event, uamp.StateUpdate)]
        has_content = any(
            not isinstance(event, uamp.InputText) or not is_blank(event.text) for event in inputs
        )
        if not has_content and not any(map(says_something, config.messages or ())):
            raise RemoteProtocolError(
                ErrorCode.INVALID_EVENT, "There is nothing to answer: send a message with text."
            )
