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
from typing import TYPE_CHECKING, Final

from django.utils import timezone

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.streams.deltas import DeltaType, StreamDelta, delta_at
from federation_app.exchange.answers import AnswerDeltas, envelope_error
from federation_app.exchange.turns import PeerTurn
from federation_app.exchange.windowed import WindowedStream
from federation_app.terms.chain_payments import due_of
from sessions_app.process import registry as processes
from uamp import RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from federation_app.models import EnvelopeStream
    from sessions_app.access.principal import Principal

logger = logging.getLogger(__name__)

PAYMENT_SECONDS: Final = 1.0
"""How often a stream checks for a payment that reached another process."""


class DeltaStream(WindowedStream):
    """The deltas of the answer to an `ask`.

    `turn` has begun the answer here; without it, the answer is joined, in whichever process it
    runs. `on_done` returns additional members of the payload of `done`, given the whole text.
    `on_demand` returns the payload of the `progress` that demands a payment.
    """

    def __init__(
        self,
        stream: EnvelopeStream,
        principal: Principal,
        *,
        limit: int,
        after: int = -1,
        turn: PeerTurn | None = None,
        on_done: Callable[[str], Awaitable[dict[str, object]]],
        on_demand: Callable[[ev.PaymentRequired], Awaitable[dict[str, object]]],
    ) -> None:
        super().__init__(stream, principal, limit=limit, after=after)
        self._on_done = on_done
        self._on_demand = on_demand
        self._has_waited = False
        self._proposed: tuple[str | None, ev.PaymentRequirements] | None = None
        self._answer = AnswerDeltas(replaces=after >= 0)
        self._is_begun = turn is not None
        self._turn = turn or PeerTurn(principal, agent="")

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
                self.check_trust()
                if not self._has_waited or processes.current().draining:
                    break
                async for delta in self._until_paid():
                    yield delta
                await self._rejoin()
        except RemoteProtocolError as error:
            raise envelope_error(error) from None
        # The process shuts down, or the response was left midway: its reader may return.
        raise EnvelopeError(EnvelopeCode.BUSY, "The stream ended before the answer did. Resume it.")

    async def join(self) -> None:
        """See WindowedStream."""
        if self._is_begun:
            self._turn.stay()
        else:
            await self._turn.join(self.stream.response_id)

    async def leave(self) -> None:
        """See WindowedStream."""
        await self._turn.close()

    def refuse(self) -> None:
        """See WindowedStream."""
        super().refuse()
        self._turn.end()

    async def _deltas_of_turn(self) -> AsyncIterator[StreamDelta | None]:
        async for events in self._turn.events():
            for event in events:
                self._answer.feed(event)
                if isinstance(event, ev.PaymentRequired):
                    self._has_waited = True
                    await self._propose()
                elif isinstance(event, ev.ToolApprovalRequired):
                    await self._refuse_call()
            if not events:
                yield None
            async for delta in self._sendable():
                yield delta
            if self._answer.has_ended:
                return
            self.check_trust()
            # Events that arrive meanwhile are collected, and sent in one chunk.
            await self.wait_for_room()

    async def _until_paid(self) -> AsyncIterator[StreamDelta | None]:
        """Wait until no demand is open, and propose each when those before it are paid.

        The turn ends where it waits for a payment, which any process may receive.
        """
        while await self._propose():
            async for delta in self._sendable():
                yield delta
            yield None
            await self._pause()

    async def _pause(self) -> None:
        self.woken.clear()
        self.check_trust()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.woken.wait(), PAYMENT_SECONDS)

    async def _rejoin(self) -> None:
        await self._turn.close()
        self._turn = PeerTurn(self._principal, agent="")
        await self._turn.join(self.stream.response_id)

    async def _sendable(self) -> AsyncIterator[StreamDelta]:
        while self._answer.has_pending:
            await self.wait_for_room()
            extra: dict[str, object] = {}
            if self._answer.next_is_done:
                extra = await self._on_done(self._answer.text)
            type_, payload = self._answer.take()
            if type_ is DeltaType.DONE:
                payload = {**payload, **extra}
            number = self.window.take()
            yield delta_at(number, self.stream.stream_id, timezone.now(), type_, payload)

    async def _propose(self) -> bool:
        """Propose the oldest demand that can be paid, once; return whether any is open."""
        demands = await self._turn.demands()
        if due := due_of(demands):
            demand = due[0]
            terms = demand.response_id, demand.requirements
            if terms != self._proposed:
                self._proposed = terms
                self._answer.demand(await self._on_demand(demand))
        return bool(demands)

    async def _refuse_call(self) -> None:
        """Cancel an answer that needs a person's permission, which an envelope cannot provide."""
        error = EnvelopeError(
            EnvelopeCode.UNAUTHORIZED, "A person would have to allow a call first."
        )
        self._answer.fail(error)
        await self._turn.cancel()
