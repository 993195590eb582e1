"""The subscribers of a response: local listeners and its chat's group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

import uamp
from chat_app.ids import new_event_id
from chat_app.log import fanout
from sessions_app.frames import now_ms
from sessions_app.response.output.broadcast import Broadcaster

if TYPE_CHECKING:
    from chat_app.log.entries import NewEvent
    from sessions_app.response.context import Listener, RunContext


class Subscribers:
    """The local listeners of one response, and whether its chat's group receives it too.

    Connections call `listen`, `leave` and `watch`; the run's task and its tools' tasks send. All
    run on one event loop; only `send_event` and `drain` await.
    """

    def __init__(self, context: RunContext) -> None:
        self._response_id, self._chat_id = context.response_id, context.chat_id
        self._origin, self._session_id = context.origin, context.session_id
        self._listeners: list[Listener] = []
        self._deltas = uamp.TextDeltas(context.response_id, event_id=new_event_id())
        self._broadcaster = Broadcaster(context.chat_id, settings.UAMP_COALESCE_MS / 1000)
        self._fan_out = context.fan_out
        self._is_over = False

    @property
    def reads_group(self) -> bool:
        """Whether a client may be receiving the response from the chat's group."""
        return self._fan_out or not self._listeners

    def listen(self, listener: Listener) -> bool:
        """Add a listener for every frame; return False if nothing will follow.

        A run may have ended before its process forgets it. A listener added then would never learn
        of the end.
        """
        if not self._is_over and listener not in self._listeners:
            self._listeners.append(listener)
        return not self._is_over

    def leave(self, listener: Listener) -> None:
        """Remove a listener; from now on its frames go to the chat's group."""
        if listener in self._listeners:
            self._listeners.remove(listener)
            self.watch()

    def watch(self) -> None:
        """Send every frame to the chat's group too, for clients that read it there."""
        self._fan_out = True

    def end(self) -> None:
        """Stop sending and notify the listeners with `ended`."""
        self._is_over = True
        for listener in list(self._listeners):
            listener.ended(self._response_id)

    def send_text(self, offset: int, text: str) -> None:
        """Send text of the answer; `offset` is in code points."""
        # The hottest path: no event object is built, and the text is encoded only once.
        if self._listeners:
            frame = self._deltas.frame(text, offset=offset, timestamp=now_ms())
            for listener in self._listeners:
                listener.text(self._response_id, offset, text, frame)
        if self._fan_out:
            self._broadcaster.text(self._response_id, offset, text, self._origin)

    def replace_text(self, text: str) -> None:
        """Send the whole text to the chat's group, replacing what another process sent."""
        self._broadcaster.replace(self._response_id, text)

    def send_here(self, text: str) -> None:
        """Send a frame to the listeners."""
        for listener in self._listeners:
            listener.frame(self._response_id, text)

    def send_to_group(self, text: str) -> None:
        """Send a frame, in order, to the chat's group if clients read it there."""
        if self._fan_out:
            self._signal(text, to_session_id=None)

    def send_to_session(self, text: str) -> None:
        """Send a frame to the session that asked, through the group if it may be elsewhere."""
        if self.reads_group:
            self._signal(text, to_session_id=self._session_id)

    def _signal(self, text: str, *, to_session_id: str | None) -> None:
        self._broadcaster.signal(
            fanout.signal_message(
                chat_id=self._chat_id,
                frame=text,
                origin=self._origin,
                response_id=self._response_id,
                to_session_id=to_session_id,
                before_end=True,
            )
        )

    async def send_event(self, seq: int, new: NewEvent) -> None:
        """Send a committed durable event with its position in the chat's log."""
        text = fanout.frame_of(new.payload, seq)
        for listener in self._listeners:
            listener.event(seq, new.type, self._response_id, text)
        if self._fan_out:
            await fanout.send(
                fanout.chat_group(self._chat_id),
                fanout.event_message(
                    chat_id=self._chat_id,
                    seq=seq,
                    event_type=new.type,
                    response_id=self._response_id,
                    frame=text,
                    origin=self._origin,
                ),
            )

    async def drain(self) -> None:
        """Send what is queued for the group; only durable events may follow."""
        await self._broadcaster.drain()
