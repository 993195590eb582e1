"""An answer's speech: streamed as it arrives, and stored once when the answer ends."""

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
"""The amount of sound sent without delay, since models speak faster than people listen."""
TIMES_AS_FAST: Final = 8
"""After that, sound is sent at this multiple of its playing speed."""


def sound_of(output: ev.Event | str) -> ev.Delta | None:
    """Return the delta of a sound event, or None for any other."""
    if isinstance(output, ev.ResponseDelta) and isinstance(output.delta.audio, str):
        return output.delta
    return None


def milliseconds_of(delta: ev.Delta) -> int:
    """Return the approximate duration of a piece of sound."""
    return duration_ms(len(str(delta.audio)) * 3 // 4, delta.format or "pcm16")


class SpokenSound:
    """The sound of one answer.

    The run's task adds to it. The task that ends the answer calls the blocking `keep` in a thread.
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
        """Whether nothing has been spoken."""
        return not self._samples

    def add(self, delta: ev.Delta) -> None:
        """Append a piece of sound."""
        self._samples += base64.b64decode(str(delta.audio))
        self._format = delta.format or "pcm16"

    async def wait_for_listeners(self, delta: ev.Delta) -> None:
        """Wait if the answer is far ahead of what listeners can have played."""
        if pause := self._pace.wait(time.monotonic(), milliseconds_of(delta)):
            await asyncio.sleep(pause)

    def keep(self) -> uamp.ContentItem | None:
        """Store the sound as a content of the chat and return its item, once.

        Return None if there is no sound or the chat's quota is full; the words are kept regardless.
        """
        if self.is_silent:
            return None
        item = uamp.AudioContent(
            audio=base64.b64encode(self._samples).decode(),
            format=self._format,
            duration_ms=duration_ms(len(self._samples), self._format),
        )
        try:
            (stored,) = references.ingest([item], owner=chat_owner(self._chat_id))
        except InvalidMedia as error:
            logger.warning("the sound of %s is not kept: %s", self._response_id, error)
            stored = None
        self._samples.clear()
        return stored
