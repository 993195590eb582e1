"""An answer requested from a daemon: the events that it sent and that are still unread."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

import msgspec

import uamp
from agents_app.runtime.agent_run import AgentError
from agents_app.runtime.connected.daemons import DaemonLost
from chat_app.ids import new_event_id
from sessions_app.frames import now_ms
from uamp import ErrorCode
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable

_READ_CONTEXT: Final = ("tools", "response_format")
"""The parts of a turn's context that a model reads."""
ENDS: Final = (ev.ResponseDone, ev.ResponseError, ev.ResponseCancelled)


class QueuedAnswer:
    """The DaemonAnswer (agents_app.runtime.connected.daemons) of one turn on one socket.

    The socket's task calls `take` and `lose`; the run's task calls the others. All run on one event
    loop. Unread events are limited to `limit` bytes, so that a daemon that keeps writing while the
    answer waits for a payment neither fills the memory nor blocks other answers on its socket.
    """

    def __init__(
        self,
        turn_id: str,
        *,
        response_id: str,
        send: Callable[[str, str], None],
        on_close: Callable[[QueuedAnswer], None],
        limit: int,
    ) -> None:
        self.turn_id = turn_id
        self.sent_bytes = 0
        # Whether the daemon has sent the end of the answer.
        self.has_ended = False
        self._response_id = response_id
        self._send, self._on_close = send, on_close
        self._limit = limit
        self._events: deque[tuple[uamp.Event, int]] = deque()
        self._bytes = 0
        self._is_lost = self._is_too_much = self._is_closed = False
        self._woken = asyncio.Event()

    # --- From the socket ---

    def take(self, event: uamp.Event, size: int) -> None:
        """Queue an event of `size` bytes for the run to read."""
        self._bytes += size
        if self._bytes > self._limit:
            self._is_too_much = True
            self._events.clear()
        else:
            self._events.append((event, size))
        self.has_ended = isinstance(event, ENDS)
        self._woken.set()

    def lose(self, *, cancel: bool = False) -> None:
        """Record that the daemon sends nothing more; earlier events can still be read.

        `cancel` sends the daemon `response.cancel` first, if it is still answering.
        """
        if cancel and not (self.has_ended or self._is_lost or self._is_closed):
            self._cancel()
        self._is_lost = True
        self._woken.set()

    # --- From the run ---

    async def next(self) -> uamp.Event:
        """Return the daemon's next event; raises DaemonLost and AgentError."""
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

    def ask(self, event: ev.InputText) -> None:
        """Send the daemon its turn.

        The bytes of what a model reads cap the input tokens that the daemon may report. The last
        message, which the event has twice, counts once, and what surrounds the conversation does
        not count. Nor do later refusals, or a daemon could raise its cap with futile requests.
        """
        context = event.context or {}
        read = [event.messages, *(context.get(name) for name in _READ_CONTEXT)]
        self.sent_bytes = len(msgspec.json.encode(read))
        self.send(event)

    def send(self, event: uamp.Event) -> None:
        """Send the daemon an event of this turn."""
        text = uamp.encode(
            event, event_id=new_event_id(), timestamp=now_ms(), session_id=self.turn_id
        )
        self._send(text, self.turn_id)

    def close(self, *, cancel: bool) -> None:
        """Stop reading; `cancel` sends `response.cancel` if the daemon is still answering."""
        if self._is_closed:
            return
        self._is_closed = True
        self._events.clear()
        if cancel and not self.has_ended and not self._is_lost:
            self._cancel()
        self._on_close(self)

    def _cancel(self) -> None:
        self.send(ev.ResponseCancel(response_id=self._response_id))
