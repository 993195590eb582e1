"""Work that another agent does for a response, published as progress of the call that waits.

A delegated run normally has a listener in the process of the waiting response. A run that another
process took over publishes to the groups of the chats that wait for it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from django.conf import settings

import uamp
from chat_app.log import fanout
from sessions_app.frames import TERMINAL, frame
from sessions_app.response.output.broadcast import Broadcaster
from sessions_app.tools.delegated_calls import calls_above, progress_of_call
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sessions_app.tools.delegated_calls import CallAbove

FORWARD_SECONDS: Final = 0.1


class Forwarder:
    """Publishes another agent's output as progress of the waiting call (UAMP §6.13).

    The delegated run calls it on the event loop; `publish` takes the events of the waiting
    response, which may have ended.
    """

    def __init__(self, call: CallAbove, agent: str, publish: Callable[[ev.Event], None]) -> None:
        self._call = call
        self._agent = agent
        self._publish = publish
        self._text: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def text(self, response_id: str, offset: int, text: str, frame: tuple[str, str]) -> None:
        """See Listener."""
        del response_id, offset, frame
        self._add(text)

    def frame(self, response_id: str, frame: str) -> None:
        """See Listener."""
        del response_id
        match uamp.decode(frame, sender="server"):
            case ev.Thinking(content=content) if settings.DELEGATE_FORWARD_THINKING:
                self._add(content)
            case ev.Progress() as progress:
                self._flush()
                self._publish(progress_of_call(progress, self._call, self._agent))
            case ev.ResponseDelta(delta=ev.Delta(tool_call=uamp.ToolCallData(name=name))) if name:
                self._flush()
                self._publish(
                    ev.Progress(
                        target="tool",
                        target_id=self._call.call_id,
                        stage="working",
                        message=f"{self._agent} uses {name}",
                        response_id=self._call.response_id,
                    )
                )

    def event(self, seq: int, event_type: str, response_id: str, frame: str) -> None:
        """See Listener. The call's result carries the end, after all progress."""
        del seq, response_id, frame
        if event_type in TERMINAL:
            self._flush()

    def ended(self, response_id: str) -> None:
        """See Listener."""
        del response_id
        self._flush()

    def _add(self, text: str) -> None:
        self._text.append(text)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FORWARD_SECONDS, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._text:
            progress = ev.ToolProgress(call_id=self._call.call_id, text="".join(self._text))
            self._text = []
            self._publish(
                ev.ResponseDelta(
                    response_id=self._call.response_id,
                    delta=ev.Delta(type="tool_progress", tool_progress=progress),
                )
            )


class _WaitingChats:
    """Publishes the progress of a call to the groups of its chat and of those further above."""

    def __init__(self, above: Sequence[CallAbove], agent: str) -> None:
        delay = settings.UAMP_COALESCE_MS / 1000
        self._agent = agent
        self._queues = [(call, Broadcaster(call.chat_id, delay)) for call in above]

    def publish(self, event: ev.Event) -> None:
        """Send an event of the nearest call; the others receive its progress only."""
        for place, (call, queue) in enumerate(self._queues):
            if place:
                if not isinstance(event, ev.Progress):
                    return
                event = progress_of_call(event, call, self._agent)
            queue.signal(
                fanout.signal_message(
                    chat_id=call.chat_id,
                    frame=frame(event),
                    response_id=call.response_id,
                    before_end=True,
                )
            )


def to_waiting_chats(response_id: str, agent: str) -> Forwarder | None:
    """Return a forwarder to the chats that wait for a response; None if none does. Synchronous."""
    above = calls_above(response_id)
    return Forwarder(above[0], agent, _WaitingChats(above, agent).publish) if above else None
