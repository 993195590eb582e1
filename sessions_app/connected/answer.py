"""One answer that a daemon was asked for: what it sent and was not read yet, in order."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

import uamp
from agents_app.runtime.agent_run import AgentError
from agents_app.runtime.daemons import DaemonLost
from chat_app.ids import new_event_id
from sessions_app.frames import now_ms
from uamp import ErrorCode
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable

ENDS: Final = (ev.ResponseDone, ev.ResponseError, ev.ResponseCancelled)


class QueuedAnswer:
    """The DaemonAnswer (agents_app.runtime.daemons) of one turn on one socket.

    The socket's task calls `take` and `lose`; the run's task calls the others. All are on one event
    loop. What is not read is bounded by `most` bytes: a daemon that writes on while the answer
    waits for a payment does not fill the memory, nor stop the other answers of its socket.
    """

    def __init__(
        self,
        turn_id: str,
        *,
        response_id: str,
        send: Callable[[str, str], None],
        on_close: Callable[[QueuedAnswer], None],
        most: int,
    ) -> None:
        self.turn_id = turn_id
        self.sent_bytes = 0
        # Whether the daemon sent the end of the answer.
        self.has_ended = False
        self._response_id = response_id
        self._send, self._on_close = send, on_close
        self._most = most
        self._events: deque[tuple[uamp.Event, int]] = deque()
        self._bytes = 0
        self._is_lost = self._is_too_much = self._is_closed = False
        self._woken = asyncio.Event()

    # --- From the socket ---

    def take(self, event: uamp.Event, size: int) -> None:
        """Keep an event of `size` bytes until the run reads it."""
        self._bytes += size
        if self._bytes > self._most:
            self._is_too_much = True
            self._events.clear()
        else:
            self._events.append((event, size))
        self.has_ended = isinstance(event, ENDS)
        self._woken.set()

    def lose(self) -> None:
        """Take note that the daemon sends nothing more; what it sent before is still read."""
        self._is_lost = True
        self._woken.set()

    # --- From the run ---

    async def next(self) -> uamp.Event:
        """Return what the daemon sent next; raises DaemonLost and AgentError."""
        while not self._events:
            if self._is_too_much:
                raise AgentError(
                    "The agent sent more than can be kept while the answer waited.",
                    code=ErrorCode.ANSWER_TOO_LONG,
                )
            if self._is_lost:
                raise DaemonLost
            self._woken.clear()
            await self._woken.wait()
        event, size = self._events.popleft()
        self._bytes -= size
        return event

    def send(self, event: uamp.Event, *, is_read: bool = False) -> None:
        """Send the daemon an event of this turn.

        One that `is_read` is the conversation: its bytes bound the input tokens that are believed.
        Refusals do not, or a daemon raised its bound by what it asks in vain.
        """
        text = uamp.encode(
            event, event_id=new_event_id(), timestamp=now_ms(), session_id=self.turn_id
        )
        if is_read:
            self.sent_bytes += len(text.encode())
        self._send(text, self.turn_id)

    def close(self, *, cancel: bool) -> None:
        """Read no further; `cancel` sends `response.cancel` where the daemon still answers."""
        if self._is_closed:
            return
        self._is_closed = True
        self._events.clear()
        if cancel and not self.has_ended and not self._is_lost:
            self.send(ev.ResponseCancel(response_id=self._response_id))
        self._on_close(self)
