"""The base of the connections to a peer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Self

import msgspec
from django.utils import timezone

from federation_app.envelope.errors import EnvelopeCode
from federation_app.envelope.limits import ENVELOPE_BYTES
from federation_app.envelope.members.reading import Intent
from federation_app.envelope.streams.deltas import DeltaType, delta_at
from federation_app.remote_agents import questions
from sessions_app import database

if TYPE_CHECKING:
    from agents_app.remote.protocols.peers import PeerQuestion
    from federation_app.remote_agents.questions import SignedQuestion

RECORD_BYTES: Final = 2 * ENVELOPE_BYTES
"""Larger than an envelope, because the delta `done` contains the signed answer."""


class ConnectionLost(Exception):
    """The connection broke or was never made; the stream may resume on another one."""


class PeerConnection(ABC):
    """One connection for one question, used by one task."""

    def __init__(self, question: PeerQuestion, signed: SignedQuestion) -> None:
        self.question = question
        self.signed_question = signed

    @abstractmethod
    async def __aenter__(self) -> Self:
        """Connect; raises ConnectionLost."""

    @abstractmethod
    async def __aexit__(self, *raised: object) -> None:
        """Close the connection."""

    @abstractmethod
    async def begin(self, after: int) -> None:
        """Send the question, or resume its stream after delta `after` (0 or more).

        Raises ConnectionLost and PeerRefusal.
        """

    @abstractmethod
    async def receive(self) -> bytes:
        """Return the next record; raises ConnectionLost, PeerRefusal and TimeoutError."""

    @abstractmethod
    async def acknowledge(self, delta_seq: int) -> None:
        """Acknowledge the deltas up to this one; raises ConnectionLost."""

    @abstractmethod
    async def miss(self, expected: int) -> None:
        """Request the stream from a missing delta on; raises ConnectionLost."""

    @abstractmethod
    async def tell(self, raw: bytes) -> None:
        """Send an envelope without reading its stream; raises ConnectionLost and PeerRefusal."""

    async def signed(self, intent: Intent, **content: int) -> bytes:
        """Return a signed envelope about the stream."""
        return await database.run(questions.signed_about, self.signed_question, intent, content)


class RecordConnection(PeerConnection):
    """A connection on which records travel both ways (WebSocket, gRPC)."""

    _sent = 0
    _missed = -1

    @abstractmethod
    async def send(self, record: bytes) -> None:
        """Send a record; raises ConnectionLost."""

    async def begin(self, after: int) -> None:
        """See PeerConnection."""
        is_new = after < 0
        raw = (
            self.signed_question.raw if is_new else await self.signed(Intent.SUBSCRIBE, after=after)
        )
        await self.send(raw)

    async def acknowledge(self, delta_seq: int) -> None:
        """See PeerConnection."""
        await self._delta(DeltaType.PROGRESS, {"ack": delta_seq})

    async def miss(self, expected: int) -> None:
        """See PeerConnection; the request is sent once, and earlier deltas are ignored."""
        if self._missed != expected:
            self._missed = expected
            error = {"code": EnvelopeCode.CONFLICT.value, "expected": expected}
            await self._delta(DeltaType.ERROR, error)

    async def _delta(self, type_: DeltaType, payload: dict[str, object]) -> None:
        delta = delta_at(self._sent, self.signed_question.stream_id, timezone.now(), type_, payload)
        self._sent += 1
        await self.send(msgspec.json.encode(delta))
