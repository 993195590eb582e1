"""The text of one running response on its way to whoever hears it, in a bounded number of frames.

Each piece of text is a frame of its own as long as they are few. An answer that is made faster than
anybody reads, such as an echo of a long message, would cost a frame for each word and reader: what
comes before the next frame may go joins on to one.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from sessions_app.access.pacing import Pace
from uamp import events as ev

if TYPE_CHECKING:
    from sessions_app.response.run import Run

FRAMES_PER_SECOND: Final = 200
FRAMES_BURST: Final = 256


class Speech:
    """Hands text to `Run.tell_text`: at once, or joined with what comes in the next moment."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._pace = Pace(
            per_minute=FRAMES_PER_SECOND * 60,
            burst=FRAMES_BURST,
            left=FRAMES_BURST,
            at=time.monotonic(),
        )
        self._offset = 0
        self._parts: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def say(self, offset: int, delta: ev.Delta, text: str) -> None:
        """Take the text of a delta, which is at `offset` in code points."""
        if self._parts:
            self._parts.append(text)
        elif pause := self._pace.wait(time.monotonic()):
            self._offset, self._parts = offset, [text]
            self._timer = asyncio.get_running_loop().call_later(pause, self.flush)
        else:
            self._run.tell_text(offset, delta, text)

    def flush(self) -> None:
        """Tell now what waits: something else comes after it, or the response ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._parts:
            text, self._parts = "".join(self._parts), []
            self._run.tell_text(self._offset, ev.Delta(type="text", text=text), text)
