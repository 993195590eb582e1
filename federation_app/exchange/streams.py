"""The deltas of one stream to one reader, within its window (envelope §5).

A stream is not stored: its deltas are derived from the events of its response. A reader that
returns, to this process or another, names the last delta that it has and resumes with the next
number: a `patch` with the whole text so far, then the rest. So no delta costs a write, and none is
lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.utils import timezone

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.streams.deltas import DeltaType, StreamDelta, delta_at
from federation_app.envelope.streams.windows import SendWindow
from federation_app.exchange import admission
from federation_app.exchange.answers import AnswerDeltas, envelope_error
from federation_app.exchange.turns import PeerTurn
from federation_app.peers import registry
from sessions_app import database
from sessions_app.process import registry as processes
from uamp import RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from federation_app.models import EnvelopeStream
    from sessions_app.access.principal import Principal

logger = logging.getLogger(__name__)

ROW_SECONDS: Final = 0.25
"""How often a full window checks for acknowledgements that reached another process."""
PAYMENT_SECONDS: Final = 1.0
"""How often a stream checks for a payment that reached another process."""
TRUST_SECONDS: Final = 5.0
_open: Final[dict[int, set[DeltaStream]]] = defaultdict(set)
_counts: Final[Counter[str]] = Counter()


class DeltaStream:
    """The deltas of a stream after the last one that its reader has.

    The reader's task iterates over `deltas` and calls `close`; any other task of the process may
    call `acknowledge`. The peer reads at most `most` streams here. `on_done` returns additional
    members of the payload of `done`, given the whole text. `on_demand` returns the payload of the
    `progress` that demands a payment.
    """

    def __init__(
        self,
        stream: EnvelopeStream,
        principal: Principal,
        *,
        most: int,
        after: int = -1,
        on_done: Callable[[str], Awaitable[dict[str, object]]],
        on_demand: Callable[[ev.PaymentRequired], Awaitable[dict[str, object]]],
    ) -> None:
        self.stream = stream
        self._principal = principal
        self._most = most
        self._on_done = on_done
        self._on_demand = on_demand
        self._demanded: ev.PaymentRequired | None = None
        self._window = SendWindow(stream.window, after=after)
        self._answer = AnswerDeltas(replaces=after >= 0)
        self._turn = PeerTurn(principal, agent="")
        self._acknowledged = asyncio.Event()
        self._woken = asyncio.Event()
        self._checked_at = time.monotonic()
        self._is_open = False

    async def open(self) -> None:
        """Join the response; raises EnvelopeError not_found, or busy if the peer reads too many."""
        if _counts[self._principal.key] >= self._most:
            raise EnvelopeError(
                EnvelopeCode.BUSY, "You read too many streams. Close one first.", retry_after=1
            )
        _counts[self._principal.key] += 1
        _open[self.stream.pk].add(self)
        self._is_open = True
        try:
            await self._turn.join(self.stream.response_id)
        except RemoteProtocolError as error:
            await self.close()
            raise envelope_error(error) from None
        except BaseException:
            await self.close()
            raise

    async def deltas(self) -> AsyncIterator[StreamDelta | None]:
        """Yield deltas until a terminal one, and None after a period of silence.

        Raises EnvelopeError busy if the window stays full, and unauthenticated if the peer is no
        longer trusted.
        """
        try:
            while True:
                async for delta in self._deltas_of_turn():
                    yield delta
                if self._answer.has_ended:
                    return
                if self._demanded is None or processes.current().draining:
                    break
                # The turn ends where it waits for a payment, which any process may receive.
                while await self._turn.waits_for_payment():
                    yield None
                    await self._pause()
                await self._rejoin()
        except RemoteProtocolError as error:
            raise envelope_error(error) from None
        # The process shuts down, or the response was left midway: its reader may return.
        raise EnvelopeError(
            EnvelopeCode.BUSY, "The stream has ended before its answer. Resume it.", retry_after=1
        )

    def acknowledge(self, delta_seq: int) -> None:
        """Process an acknowledgement from the reader; raises EnvelopeError malformed."""
        self._window.acknowledge(delta_seq)
        self._acknowledged.set()

    def wake(self) -> None:
        """Look at once whether the answer still waits for a payment."""
        self._woken.set()

    async def close(self) -> None:
        """Leave the response, which keeps running; later calls do nothing."""
        if not self._is_open:
            return
        self._is_open = False
        _counts[self._principal.key] -= 1
        if not _counts[self._principal.key]:
            del _counts[self._principal.key]
        _open[self.stream.pk].discard(self)
        if not _open[self.stream.pk]:
            del _open[self.stream.pk]
        await self._turn.close()

    async def _deltas_of_turn(self) -> AsyncIterator[StreamDelta | None]:
        async for events in self._turn.events():
            for event in events:
                self._answer.feed(event)
                if isinstance(event, ev.PaymentRequired):
                    await self._demand(event)
                elif isinstance(event, ev.ToolApprovalRequired):
                    await self._refuse_call()
            if not events:
                yield None
            async for delta in self._sendable():
                yield delta
            if self._answer.has_ended:
                return
            await self._check_trust()
            # Events that arrive meanwhile are collected, and sent in one chunk.
            await self._room()

    async def _pause(self) -> None:
        """Wait for `wake`, at most PAYMENT_SECONDS."""
        await self._check_trust()
        self._woken.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), PAYMENT_SECONDS)

    async def _rejoin(self) -> None:
        await self._turn.close()
        self._turn = PeerTurn(self._principal, agent="")
        await self._turn.join(self.stream.response_id)

    async def _sendable(self) -> AsyncIterator[StreamDelta]:
        while self._answer.has_pending:
            await self._room()
            extra: dict[str, object] = {}
            if self._answer.next_is_done:
                extra = await self._on_done(self._answer.text)
            type_, payload = self._answer.take()
            if type_ is DeltaType.DONE:
                payload = {**payload, **extra}
            number = self._window.take()
            yield delta_at(number, self.stream.stream_id, timezone.now(), type_, payload)

    async def _room(self) -> None:
        """Wait until the window has room; raises EnvelopeError busy if it stays full."""
        ends_at = time.monotonic() + settings.UAMP_ENVELOPE_STALL_SECONDS
        while not self._window.has_room:
            if time.monotonic() > ends_at:
                raise EnvelopeError(
                    EnvelopeCode.BUSY,
                    "No delta was acknowledged for a long time. Resume the stream.",
                    detail="window",
                    retry_after=1,
                )
            self._acknowledged.clear()
            try:
                await asyncio.wait_for(self._acknowledged.wait(), ROW_SECONDS)
            except TimeoutError:
                stored = await database.run(admission.acknowledged, self.stream.pk)
                self._window.acknowledge(min(stored, self._window.next - 1))
            await self._check_trust()

    async def _check_trust(self) -> None:
        if time.monotonic() - self._checked_at < TRUST_SECONDS:
            return
        self._checked_at = time.monotonic()
        if not await database.run(registry.is_trusted, self.stream.peer_id):
            raise EnvelopeError(
                EnvelopeCode.UNAUTHENTICATED, "The peer is trusted no more.", detail="peer"
            )

    async def _demand(self, event: ev.PaymentRequired) -> None:
        """Demand a payment once: a turn that joins a waiting answer may report it twice."""
        known, self._demanded = self._demanded, event
        if known is None or known.requirements != event.requirements:
            self._answer.demand(await self._on_demand(event))

    async def _refuse_call(self) -> None:
        """Cancel an answer that needs a person's permission, which an envelope cannot provide."""
        error = EnvelopeError(
            EnvelopeCode.UNAUTHORIZED, "A person would have to allow a call first."
        )
        self._answer.fail(error)
        await self._turn.cancel()


def open_streams(stream_pk: int) -> list[DeltaStream]:
    """Return the readers of a stream in this process."""
    return list(_open.get(stream_pk, ()))
