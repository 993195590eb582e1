"""A session on a connection, and how it hears the answers that run in this process."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from sessions_app.frames import TERMINAL

if TYPE_CHECKING:
    import asyncio
    from datetime import datetime

    from sessions_app.access.pending_inputs import PendingInputs
    from sessions_app.connection.chat_subscription import ChatSubscription
    from sessions_app.connection.client_connection import ClientConnection
    from sessions_app.records import OpenSession
    from sessions_app.response.run import Run

TOLD_REMEMBERED: Final = 256


class RunListener:
    """Hears the responses of one session straight from their runners in this process."""

    def __init__(self, connection: ClientConnection, subscription: ChatSubscription) -> None:
        self._connection = connection
        self._subscription = subscription
        self.runs: dict[str, Run] = {}
        # Those of them that have said their end.
        self._over: set[str] = set()
        # What was heard straight from its runner is not heard again from the group.
        self._told: OrderedDict[str, None] = OrderedDict()

    def was_told(self, response_id: str) -> bool:
        """Return whether a response's frames came to this session straight from its runner."""
        return response_id in self._told

    def hear(self, run: Run) -> None:
        """Listen to a run until it ends; one that is over has left its end in the log."""
        if run.listen(self):
            self.runs[run.response_id] = run

    def text(self, response_id: str, offset: int, text: str, frame: str) -> None:
        """See runner.Listener. Most text joins on and needs no turn in the queue."""
        connection, subscription = self._connection, self._subscription
        if connection.is_idle and subscription.joins(response_id, offset):
            subscription.text(response_id, offset, text, frame)
            connection.wake()
        else:
            connection.put(partial(subscription.text, response_id, offset, text, frame))

    def frame(self, response_id: str, frame: str) -> None:
        """See runner.Listener."""
        # What is said after the end, as a balance, is sent in any case.
        before_end = "" if response_id in self._over else response_id
        self._connection.put(partial(self._subscription.direct, frame, before_end))

    def event(self, seq: int, event_type: str, response_id: str, frame: str) -> None:
        """See runner.Listener."""
        if event_type == "response.created":
            self._told[response_id] = None
            if len(self._told) > TOLD_REMEMBERED:
                self._told.popitem(last=False)
        if event_type in TERMINAL:
            self._over.add(response_id)
        self._connection.put(partial(self._subscription.event, seq, event_type, response_id, frame))

    def ended(self, response_id: str) -> None:
        """See runner.Listener."""
        self.runs.pop(response_id, None)
        self._over.discard(response_id)
        self._connection.wake()


@dataclass(kw_only=True, slots=True)
class AttachedSession:
    """A session on this connection."""

    session: OpenSession
    subscription: ChatSubscription
    listener: RunListener
    inputs: PendingInputs
    pending_input_ids: list[int] = field(default_factory=list)
    auto_respond: asyncio.TimerHandle | None = None
    # The responses that began without a response.create, for the one that may still come.
    auto_started: tuple[str, ...] = ()
    typed_at: float = 0.0
    warned_of: datetime | None = None
