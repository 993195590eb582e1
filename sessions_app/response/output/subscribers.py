"""The listeners of one response in this process, and its chat's group."""

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
    """The listeners of one response in this process, and whether its chat's group receives it.

    Connections call `listen`, `leave` and `watch`; the run's task and its tools' tasks send. All of
    them are on one event loop, and only `send_event` and `drain` wait.
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
        """Whether a client may receive the response from the chat's group."""
        return self._fan_out or not self._listeners

    def listen(self, listener: Listener) -> bool:
        """Have a listener receive every frame; return False where nothing follows.

        A run may be over before its process has forgotten it: a listener that came then would not
        learn that it ended.
        """
        if not self._is_over and listener not in self._listeners:
            self._listeners.append(listener)
        return not self._is_over

    def leave(self, listener: Listener) -> None:
        """Send nothing more to a listener; from now on the chat's group receives the frames."""
        if listener in self._listeners:
            self._listeners.remove(listener)
            self.watch()

    def watch(self) -> None:
        """Send every frame to the chat's group too: a client reads it there."""
        self._fan_out = True

    def end(self) -> None:
        """Send nothing more; the listeners get `ended`."""
        self._is_over = True
        for listener in list(self._listeners):
            listener.ended(self._response_id)

    def send_text(self, offset: int, text: str) -> None:
        """Send text of the answer; `offset` is in code points."""
        # The hottest path: no event is made, and only the text is encoded, once.
        if self._listeners:
            frame = self._deltas.frame(text, offset=offset, timestamp=now_ms())
            for listener in self._listeners:
                listener.text(self._response_id, offset, text, frame)
        if self._fan_out:
            self._broadcaster.text(self._response_id, offset, text, self._origin)

    def replace_text(self, text: str) -> None:
        """Send the whole text to the chat's group: it replaces what another process sent."""
        self._broadcaster.replace(self._response_id, text)

    def send_here(self, text: str) -> None:
        """Send a frame to the listeners."""
        for listener in self._listeners:
            listener.frame(self._response_id, text)

    def send_to_group(self, text: str) -> None:
        """Send a frame to the chat's group where a client reads it there, in its place."""
        if self._fan_out:
            self._signal(text, to_session_id=None)

    def send_to_session(self, text: str) -> None:
        """Send a frame to the session that asked, over the group where that may be elsewhere."""
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
        """Send a durable event that is committed, with its place in the chat's log."""
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
        """Send what is queued for the group; only durable events follow."""
        await self._broadcaster.drain()
