"""The speech of a Realtime client: appended audio becomes items, by commit or after silence."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any, Final, Protocol

from gateway_app.openai.errors import refused
from gateway_app.realtime.audio_fields import SpeechSettings
from gateway_app.realtime.input_sound import InputSound, SpeechStarted
from gateway_app.realtime.items import RealtimeItem, RealtimePart
from uamp import ErrorCode

if TYPE_CHECKING:
    from gateway_app.realtime.read import AudioAppendFrame, RealtimeFrame

_BUFFER: Final = "input_audio_buffer"


class SpeechPort(Protocol):
    """The socket's services for speech."""

    def show(self, *messages: dict[str, Any]) -> None:
        """Send events to the client."""

    def add_sound(self, item_id: str, samples: bytes, name: str) -> str | None:
        """Add a sound to the conversation; return the id of the item before it.

        Raises RemoteProtocolError if the conversation is full.
        """

    async def respond(self) -> None:
        """Request a response; raises RemoteProtocolError."""

    async def interrupt(self) -> None:
        """Cancel the running response, if any."""


class SpeechTurns:
    """Handles the `input_audio_buffer` events; used by the socket's task only.

    The buffer holds at most `limit` bytes.
    """

    def __init__(self, port: SpeechPort, *, limit: int) -> None:
        self.settings = SpeechSettings()
        self.takes: tuple[str, ...] = ()
        self.sound = InputSound(limit)
        self._port = port
        self._item_id = ""
        # How many turns of speech have ended since the owner last reset this.
        self.turns = 0

    def change(self, settings: SpeechSettings) -> None:
        """Apply other settings; on invalid ones, raise RemoteProtocolError and change nothing."""
        settings.check(self.takes)
        self.sound.change_format(settings.input_format)
        self.settings = settings

    async def take(self, frame: RealtimeFrame) -> None:
        """Handle `clear` and `commit`; raises RemoteProtocolError for the unsupported rest."""
        self._check(frame)
        if frame.type == f"{_BUFFER}.clear":
            self.sound.clear()
            self._port.show({"type": f"{_BUFFER}.cleared"})
        elif frame.type == f"{_BUFFER}.commit":
            self._commit(self.sound.whole())
            self.sound.clear()
        else:
            raise refused(
                "type",
                "WebRTC is not supported. Connect over WebSocket.",
                ErrorCode.UNSUPPORTED_MODALITY,
            )

    async def append(self, frame: AudioAppendFrame) -> None:
        """Append a piece of audio; finished speech becomes an item and is answered."""
        self._check(frame)
        self.sound.append(frame.audio)
        detection = self.settings.detection
        while detection is not None and self.sound.has_more:
            change = self.sound.find(detection)
            # Let other sockets run before the rest of a large piece is examined.
            await asyncio.sleep(0)
            if change is None:
                continue
            if isinstance(change, SpeechStarted):
                self._item_id = _new_id()
                self._show("speech_started", audio_start_ms=change.at_ms)
                if detection.interrupt_response:
                    await self._port.interrupt()
                continue
            self._show("speech_stopped", audio_end_ms=change.at_ms)
            self.turns += 1
            self._commit(self.sound.take_speech())
            if detection.create_response:
                await self._port.respond()

    def _check(self, frame: RealtimeFrame) -> None:
        if not self.takes:
            raise refused(
                frame.type.partition(".")[0],
                "The agent does not accept audio. Send conversation.item.create.",
                ErrorCode.UNSUPPORTED_MODALITY,
            )

    def _commit(self, samples: bytes) -> None:
        item_id, self._item_id = self._item_id or _new_id(), ""
        self._port.add_sound(item_id, samples, self.sound.format)

    def _show(self, kind: str, **members: Any) -> None:
        self._port.show({"type": f"{_BUFFER}.{kind}", **members, "item_id": self._item_id})


def sound_item(item_id: str, audio: str) -> RealtimeItem:
    """Return a user message that consists of one sound."""
    part = RealtimePart(type="input_audio", audio=audio)
    return RealtimeItem(id=item_id, type="message", role="user", content=(part,))


def _new_id() -> str:
    return f"item_{uuid.uuid4().hex[:24]}"
