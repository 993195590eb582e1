"""The sounds of items: in memory until a response reads them, stored as contents afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from gateway_app.openai.errors import refused
from gateway_app.realtime.items import is_unstored, unstored_bytes
from uamp import ErrorCode
from uamp.types.inline_media import media_bytes

if TYPE_CHECKING:
    from gateway_app.realtime.conversation import RealtimeConversation
    from gateway_app.realtime.items import RealtimeItem
    from gateway_app.realtime.speech_turns import SpeechTurns


class SoundPort(Protocol):
    """The socket's services for the sounds of its items."""

    def sound_file(self, samples: bytes, name: str) -> str:
        """Encode raw samples of a format as a base64 WAV file."""

    async def keep_sound(self, audio: str) -> str:
        """Store a base64 WAV file, and return the content's address.

        Raises RemoteProtocolError if the caller's storage is full.
        """


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

    async def stored(self, item: RealtimeItem) -> RealtimeItem:
        """Store an item's sounds as contents and return the item; raises RemoteProtocolError."""
        if not unstored_bytes(item):
            return item
        parts = [
            msgspec.structs.replace(part, audio=await self._port.keep_sound(part.audio))
            if part.audio and is_unstored(part)
            else part
            for part in item.content or ()
        ]
        item = msgspec.structs.replace(item, content=tuple(parts))
        self._conversation.replace(item)
        return item
