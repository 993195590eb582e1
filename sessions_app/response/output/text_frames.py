"""The text of a running response, sent at a bounded frame rate.

Normally each piece of text is sent as one frame. An answer generated faster than anyone can read,
such as an echo of a long message, would cost a frame per word and reader, so pieces that arrive
before the next frame is due are merged.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from sessions_app.access.pacing import Pace

if TYPE_CHECKING:
    from sessions_app.response.output.subscribers import Subscribers

FRAMES_PER_SECOND: Final = 200
FRAMES_BURST: Final = 256


class TextFrames:
    """Sends text to a response's subscribers, immediately or merged with what follows.

    The run's task, its tools' tasks and a timer call it, all on one event loop.
    """

    def __init__(self, subscribers: Subscribers) -> None:
        self._subscribers = subscribers
        self._pace = Pace(
            per_minute=FRAMES_PER_SECOND * 60,
            burst=FRAMES_BURST,
            left=FRAMES_BURST,
            at=time.monotonic(),
        )
        self._offset = 0
        self._parts: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, offset: int, text: str) -> None:
        """Send or collect text of the answer, located at `offset` in code points."""
        if self._parts:
            self._parts.append(text)
        elif pause := self._pace.wait(time.monotonic()):
            self._offset, self._parts = offset, [text]
            self._timer = asyncio.get_running_loop().call_later(pause, self.flush)
        else:
            self._subscribers.send_text(offset, text)

    def flush(self) -> None:
        """Send the collected text now, before another frame or the end of the response."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._parts:
            text, self._parts = "".join(self._parts), []
            self._subscribers.send_text(self._offset, text)
