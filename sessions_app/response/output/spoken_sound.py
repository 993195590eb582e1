"""The sound that one answer speaks: sent as it comes, and stored once, at the end of the answer."""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from typing import TYPE_CHECKING, Final

import uamp
from chat_app.contents import references
from chat_app.contents.media_types import InvalidMedia
from chat_app.contents.wave import duration_ms
from sessions_app.access.pacing import Pace
from sessions_app.tools.contents import chat_owner
from uamp import events as ev

if TYPE_CHECKING:
    from sessions_app.response.context import RunContext

logger = logging.getLogger(__name__)

AHEAD_MS: Final = 20_000
"""So much sound is sent at once: models speak faster than people listen."""
TIMES_AS_FAST: Final = 8
"""After that it is sent so many times as fast as it is played."""


def sound_of(shown: ev.Event | str) -> ev.Delta | None:
    """Return the delta of an event that is a piece of sound; None for any other."""
    if isinstance(shown, ev.ResponseDelta) and isinstance(shown.delta.audio, str):
        return shown.delta
    return None


def milliseconds_of(delta: ev.Delta) -> int:
    """Return about how long a piece is."""
    return duration_ms(len(str(delta.audio)) * 3 // 4, delta.format or "pcm16")


class SpokenSound:
    """The sound of one answer.

    The run's task adds to it. The task that ends the answer calls `keep`, which blocks, in a
    thread.
    """

    def __init__(self, context: RunContext) -> None:
        self._response_id, self._chat_id = context.response_id, context.chat_id
        self._samples = bytearray()
        self._format = ""
        self._pace = Pace(
            per_minute=TIMES_AS_FAST * 60_000,
            burst=AHEAD_MS,
            left=AHEAD_MS,
            at=time.monotonic(),
        )

    @property
    def is_silent(self) -> bool:
        """Whether nothing was spoken."""
        return not self._samples

    def add(self, delta: ev.Delta) -> None:
        """Keep a piece."""
        self._samples += base64.b64decode(str(delta.audio))
        self._format = delta.format or "pcm16"

    async def wait_for_listeners(self, delta: ev.Delta) -> None:
        """Wait where the answer is far ahead of what its listeners can have played."""
        if pause := self._pace.wait(time.monotonic(), milliseconds_of(delta)):
            await asyncio.sleep(pause)

    def keep(self) -> uamp.ContentItem | None:
        """Store the sound as a content of the chat, and return its item, once.

        None where there is none, and where the chat may store no more: the words stay.
        """
        if self.is_silent:
            return None
        item = uamp.AudioContent(
            audio=base64.b64encode(self._samples).decode(),
            format=self._format,
            duration_ms=duration_ms(len(self._samples), self._format),
        )
        try:
            (kept,) = references.ingest([item], owner=chat_owner(self._chat_id))
        except InvalidMedia as error:
            logger.warning("the sound of %s is not kept: %s", self._response_id, error)
            kept = None
        self._samples.clear()
        return kept
