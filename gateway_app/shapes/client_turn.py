"""What a request of a foreign protocol asks for, as the events of a UAMP client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uamp
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
