"""A request of a foreign protocol as the events of a UAMP client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import uamp
from uamp import ErrorCode, RemoteProtocolError
from uamp.conversation import says_something

if TYPE_CHECKING:
    from uamp.events import InputEvent


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientTurn:
    """The events of one turn: a session, its inputs, and what asks for the response.

    `thread` is the id under which the protocol's client goes on with a conversation: the same
    caller, agent and thread find the same session. Without one each turn has a session of its own.
    `session_id` is an open session of the caller, which the turn goes on with instead. `is_kept`
    keeps a session of its own until its chat is deleted: its client may come back to the response.
    A visitor is the one of the session `follows`, and may read what was sent there. With
    `shares_state` the chat's state is read, and its changes followed, before the response begins.
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
        """Raise RemoteProtocolError where all texts are blank: there is nothing to answer."""
        config = self.response.response or uamp.ResponseConfig()
        given = [one for one in self.inputs if not isinstance(one, uamp.StateUpdate)]
        said = any(not isinstance(one, uamp.InputText) or one.text.strip() for one in given)
        if not said and not any(map(says_something, config.messages or ())):
            raise RemoteProtocolError(
                ErrorCode.INVALID_EVENT, "There is nothing to answer: send a message with text."
            )
