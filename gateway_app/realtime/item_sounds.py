"""The sounds of items: in memory until a response reads them, stored as contents afterwards."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

import msgspec
from django.utils import timezone

from gateway_app.openai.errors import refused
from gateway_app.realtime.items import is_unstored, unstored_bytes
from uamp import ErrorCode
from uamp.types.inline_media import media_bytes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence
    from datetime import datetime

    from gateway_app.realtime.conversation import RealtimeConversation
    from gateway_app.realtime.items import RealtimeItem, RealtimePart
    from gateway_app.realtime.speech_turns import SpeechTurns


class SoundPort(Protocol):
    """The socket's services for the sounds of its items."""

    def sound_file(self, samples: bytes, name: str) -> str:
        """Encode raw samples of a format as a base64 WAV file."""

    async def keep_sound(self, audio: str) -> str:
        """Store a base64 WAV file, and return the content's address.

        Raises RemoteProtocolError if the caller's storage is full.
        """

    async def discard_sounds(self, addresses: Iterable[str], *, since: datetime) -> None:
        """Delete sounds stored since then that no message shows."""

    async def check_rates(self) -> None:
        """Raise RemoteProtocolError if the rates admit no further turn now."""


class ItemSounds:
    """Checks and stores the sounds of one socket's items; used by the socket's task only.

    At most `limit` bytes are in memory, including the buffer of `turns`.
    """

    def __init__(
        self,
        port: SoundPort,
        conversation: RealtimeConversation,
        turns: SpeechTurns,
        *,
        limit: int,
    ) -> None:
        self._port = port
        self._conversation = conversation
        self._turns = turns
        self._limit = limit

    def with_files(self, item: RealtimeItem, place: str) -> RealtimeItem:
        """Convert the sounds of a client's item to WAV files; raises RemoteProtocolError."""
        if not any(part.type == "input_audio" for part in item.content or ()):
            return item
        parts = [
            msgspec.structs.replace(part, audio=self._file(part.audio or "", f"{place}.content"))
            if part.type == "input_audio"
            else part
            for part in item.content or ()
        ]
        item = msgspec.structs.replace(item, content=tuple(parts))
        self.check(item, place)
        return item

    def _file(self, audio: str, place: str) -> str:
        try:
            samples = media_bytes(audio)
        except ValueError:
            raise refused(place, "The audio is not base64.", ErrorCode.INVALID_MEDIA) from None
        return self._port.sound_file(samples, self._turns.settings.input_format)

    def check(self, item: RealtimeItem, place: str, *, of_buffer: int = 0) -> None:
        """Raise RemoteProtocolError if the sounds not yet stored would take too much memory.

        `of_buffer` is the number of the item's bytes that are in the buffer as well.
        """
        items = (*self._conversation.items, item)
        size = sum(map(unstored_bytes, items)) + self._turns.sound.size - of_buffer
        if size > self._limit:
            raise refused(
                place,
                "Too much audio is waiting for a response. Request one, or delete some.",
                ErrorCode.EVENT_TOO_LARGE,
            )

    @asynccontextmanager
    async def stored(self, items: Sequence[RealtimeItem]) -> AsyncIterator[list[RealtimeItem]]:
        """Store the sounds of the items that a turn answers, and yield the items.

        If the turn is refused in the block, its sounds are in memory again and their files deleted.
        Raises RemoteProtocolError.
        """
        unstored = [item for item in items if unstored_bytes(item)]
        if not unstored:
            yield [*items]
            return
        await self._port.check_rates()
        since = timezone.now()
        addresses: list[str] = []
        try:
            yield [await self._stored(item, addresses) for item in items]
        except Exception:
            # A cancelled turn may still be written, with its sounds.
            for item in unstored:
                self._conversation.replace(item)
            await self._port.discard_sounds(addresses, since=since)
            raise

    async def _stored(self, item: RealtimeItem, addresses: list[str]) -> RealtimeItem:
        """Store an item's sounds, add their addresses and return the item."""
        if not unstored_bytes(item):
            return item
        parts: list[RealtimePart] = []
        for part in item.content or ():
            if part.audio and is_unstored(part):
                addresses.append(await self._port.keep_sound(part.audio))
                parts.append(msgspec.structs.replace(part, audio=addresses[-1]))
            else:
                parts.append(part)
        item = msgspec.structs.replace(item, content=tuple(parts))
        self._conversation.replace(item)
        return item
