"""The receiver of envelopes: bytes in, receipts and deltas out, independent of any transport.

A transport creates one EnvelopeReceiver per connection or request, passes each envelope to `take`
and sends the deltas of `open`. It sends back a receipt, a delta or an EnvelopeError.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, malformed
from federation_app.envelope.members.body import text_of
from federation_app.envelope.members.extensions import hops_of
from federation_app.envelope.members.reading import Intent
from federation_app.envelope.streams.deltas import MAX_SEQUENCE
from federation_app.exchange import admission, chats, outcomes, rate_limits, relay, requests
from federation_app.exchange.answers import envelope_error
from federation_app.exchange.receipts import EnvelopeReceipt
from federation_app.exchange.replies import demand_members, done_members
from federation_app.exchange.streams import DeltaStream
from federation_app.exchange.turns import PeerTurn
from federation_app.exchange.windowed import check_room, open_streams
from federation_app.guests import receiving
from federation_app.peers import quotas
from sessions_app import database
from sessions_app.handlers.sessions import find_session
from uamp import RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from federation_app.exchange.admission import Admitted
    from federation_app.exchange.windowed import WindowedStream
    from federation_app.models import EnvelopeStream, Peer, ReceivedEnvelope
    from sessions_app.records import OpenSession

    PassOn = Callable[[Admitted, bytes], Awaitable[relay.Passed]]


_LAST_PLACE: Final = MAX_SEQUENCE - 2**32
"""The last delta of an answer that is believed; it leaves numbers for those that follow."""


class EnvelopeReceiver:
    """Accepts the envelopes of peers; `address` is the IP address of their client.

    `relays` are the servers that have passed them on, and `pass_on` is the way to other members.
    """

    def __init__(
        self, *, address: str = "", relays: tuple[str, ...] = (), pass_on: PassOn | None = None
    ) -> None:
        self._address = address
        self._relays = relays
        self._relay = pass_on or partial(relay.pass_on, relays=relays)

    async def take(
        self, raw: bytes, *, follows: bool = False, holds: bool = False
    ) -> EnvelopeReceipt:
        """Verify an envelope and carry out its request; raises EnvelopeError.

        An accepted `ask` starts a response; the same envelope again has no further effect. A
        refused envelope leaves no row; `rate_limits` says against what it counts. A caller that
        `follows` opens the receipt or leaves it. One that `holds` keeps the turn in the receipt,
        if there is one, for a reader; that needs no room for a stream.
        """
        admitted = await rate_limits.admit(raw, address=self._address, relays=self._relays)
        if admitted.routes:
            return await self._pass_on_to_all(admitted, raw)
        if admitted.relayed_to is not None:
            return await self._pass_on(admitted, raw)
        if admitted.is_about_guests:
            return await self._share(admitted)
        if admitted.envelope.intent is Intent.ASK:
            return await self._ask(admitted, follows=follows, holds=holds)
        if chat_id := requests.chat_of(admitted):
            return await self._subscribe(admitted, chat_id)
        return await self._about_stream(admitted)

    async def open(self, receipt: EnvelopeReceipt) -> WindowedStream:
        """Open the deltas that follow a receipt; raises EnvelopeError. The caller closes them.

        A stream is busy until its response has begun.
        """
        if receipt.stream is None:
            raise EnvelopeError(EnvelopeCode.NOT_FOUND, "There is no stream to read.")
        return await self.open_stream(
            receipt.peer,
            receipt.stream,
            after=receipt.after,
            request=receipt.request,
            turn=receipt.turn,
        )

    async def open_stream(
        self,
        peer: Peer,
        stream: EnvelopeStream,
        *,
        after: int,
        request: ReceivedEnvelope | None = None,
        turn: PeerTurn | None = None,
    ) -> WindowedStream:
        """Open a stream's deltas after `after`; raises EnvelopeError. The caller closes them."""
        if not stream.response_id and not stream.chat_id:
            raise EnvelopeError(EnvelopeCode.BUSY, "The stream is still being opened.")
        if after >= 0:
            # A returning reader has received the delta that it names.
            await self._check_place(peer, stream, after)
            await database.run(admission.acknowledge, stream, after)
        principal = admission.principal_of(peer, address=self._address)
        limit = quotas.streams_of(peer)
        opened: WindowedStream
        if stream.chat_id:
            # Without a place, a reader begins where the stream has been acknowledged.
            place = after if after >= 0 else stream.acknowledged
            opened = chats.ChatStream(stream, principal, peer=peer, limit=limit, after=place)
        else:
            opened = DeltaStream(
                stream,
                principal,
                limit=limit,
                after=after,
                turn=turn,
                on_done=partial(done_members, peer, stream, request),
                on_demand=partial(demand_members, peer, stream),
            )
        await opened.open()
        return opened

    async def _acknowledge(self, peer: Peer, stream: EnvelopeStream, delta_seq: int) -> None:
        """Pass an acknowledgement to the readers of a stream, here and in other processes.

        Raises EnvelopeError malformed for a delta that was not sent to a reader here.
        """
        readers = open_streams(stream.pk)
        for reader in readers:
            reader.acknowledge(delta_seq)
        if not readers:
            await self._check_place(peer, stream, delta_seq)
        await database.run(admission.acknowledge, stream, delta_seq)

    async def _check_place(self, peer: Peer, stream: EnvelopeStream, place: int) -> None:
        """Raise EnvelopeError for a delta that no process can have sent."""
        if stream.chat_id:
            await database.run(chats.check_place, peer, stream.chat_id, place)
        elif place > _LAST_PLACE:
            raise malformed("No answer has so many deltas.", detail="delta_seq")

    async def _share(self, admitted: Admitted) -> EnvelopeReceipt:
        """Carry out an envelope about a shared chat (ADR 66); a refused one leaves no row."""
        share = partial(receiving.take, admitted.peer, admitted.envelope)
        is_repeated = await outcomes.carry_out(admitted, share)
        return EnvelopeReceipt(
            intent=admitted.envelope.intent,
            peer=admitted.peer,
            stream=None,
            opens=False,
            is_repeated=is_repeated,
        )

    async def _pass_on(self, admitted: Admitted, raw: bytes) -> EnvelopeReceipt:
        passed = await self._relay(admitted, raw)
        return EnvelopeReceipt(
            intent=admitted.envelope.intent,
            peer=admitted.peer,
            stream=passed.stream,
            opens=False,
            is_repeated=passed.is_repeated,
        )

    async def _pass_on_to_all(self, admitted: Admitted, raw: bytes) -> EnvelopeReceipt:
        deliveries = await relay.pass_on_to_all(admitted, raw, relays=self._relays)
        return EnvelopeReceipt(
            intent=admitted.envelope.intent,
            peer=admitted.peer,
            stream=None,
            opens=False,
            is_repeated=all(
                delivery.passed is not None and delivery.passed.is_repeated
                for delivery in deliveries
            ),
            deliveries=deliveries,
        )

    async def _ask(self, admitted: Admitted, *, follows: bool, holds: bool) -> EnvelopeReceipt:
        text, servers = text_of(admitted.envelope.body), hops_of(admitted.envelope.ext)
        principal = admission.principal_of(admitted.peer, address=self._address, servers=servers)
        is_ours_alone = admitted.is_ours_alone
        if follows and is_ours_alone:
            check_room(principal, limit=quotas.streams_of(admitted.peer))
        received, is_repeated, session = await database.run(
            outcomes.remember_question, admitted, principal
        )
        stream = _stream_of(received)
        if is_repeated and not stream.response_id:
            stream = await outcomes.begun_by_another(received, stream)
            session = await find_session(stream.session_id, principal)
        turn: PeerTurn | None = None
        if not stream.response_id:
            turn = PeerTurn(principal, agent=admitted.agent)
            await self._begin(received, stream, turn, session, text)
            is_kept = (follows or holds) and is_ours_alone
            if not (is_kept and turn.has_begun_here):
                await turn.close()
                turn = None
        return EnvelopeReceipt(
            intent=Intent.ASK,
            peer=admitted.peer,
            stream=stream,
            opens=is_ours_alone,
            is_repeated=is_repeated,
            request=received,
            turn=turn,
        )

    async def _subscribe(self, admitted: Admitted, chat_id: str) -> EnvelopeReceipt:
        """Follow a chat of the peer's account, after the place in the body, or from now on."""
        place = requests.place_of(admitted)
        place = -1 if place is None else place
        head = await database.run(chats.check_place, admitted.peer, chat_id, place)
        after = head if place < 0 else place
        remember = partial(admission.remember, admitted, chat_id=chat_id)
        received, is_repeated = await database.run(remember)
        stream = _stream_of(received)
        if is_repeated:
            after = stream.acknowledged
        else:
            await database.run(admission.acknowledge, stream, after)
            stream.acknowledged = after
        return EnvelopeReceipt(
            intent=Intent.SUBSCRIBE,
            peer=admitted.peer,
            stream=stream,
            opens=admitted.is_ours_alone,
            after=after,
            is_repeated=is_repeated,
        )

    async def _begin(
        self,
        received: ReceivedEnvelope,
        stream: EnvelopeStream,
        turn: PeerTurn,
        session: OpenSession | None,
        text: str,
    ) -> None:
        """Begin the response to an `ask`; the caller closes the turn unless this raises."""
        event_id = f"env-{received.envelope_id}"
        try:
            response_id = await turn.begin(stream.session_id, session, text, event_id=event_id)
            await database.run(admission.record_response, stream, response_id)
        except RemoteProtocolError as error:
            await turn.close()
            await database.run(admission.forget, received)
            raise envelope_error(error) from None
        except BaseException:
            await turn.close()
            raise

    async def _about_stream(self, admitted: Admitted) -> EnvelopeReceipt:
        stream = await database.run(
            partial(
                admission.find_own_stream,
                admitted.peer,
                stream_id=admitted.envelope.stream_id,
                reply_to=admitted.envelope.reply_to,
            )
        )
        requests.check_receiver(admitted, stream)
        # Parsed before the envelope is recorded, so that a malformed one leaves no row.
        place, submit = requests.place_of(admitted), requests.payment_of(admitted)
        if submit is None:
            return await self._follow(admitted, stream, place)
        pay = partial(self._pay, admitted, stream, submit)
        is_repeated = await outcomes.finished(outcomes.carry_out(admitted, pay))
        return EnvelopeReceipt(
            intent=Intent.CONFIRM,
            peer=admitted.peer,
            stream=stream,
            opens=False,
            is_repeated=is_repeated,
        )

    async def _follow(
        self, admitted: Admitted, stream: EnvelopeStream, place: int | None
    ) -> EnvelopeReceipt:
        """Carry out an envelope about a stream; one that is refused leaves no row."""
        intent, peer = admitted.envelope.intent, admitted.peer
        cancels = intent in admission.CANCELLING
        remember = partial(
            admission.remember, admitted, cancelled=stream if cancels and stream.chat_id else None
        )
        received, is_repeated = await database.run(remember)
        try:
            if cancels and stream.chat_id:
                chats.cancel_readers(stream.pk)
            elif cancels:
                await self._cancel(admitted, stream)
            elif intent is Intent.PROGRESS:
                await self._acknowledge(peer, stream, place or 0)
            elif place is not None:
                await self._check_place(peer, stream, place)
        except EnvelopeError:
            if not is_repeated:
                await database.run(admission.forget, received)
            raise
        return EnvelopeReceipt(
            intent=intent,
            peer=peer,
            stream=stream,
            opens=intent in {Intent.SUBSCRIBE, Intent.ERROR} and admitted.is_ours_alone,
            after=-1 if place is None else place,
            is_repeated=is_repeated,
        )

    async def _pay(
        self, admitted: Admitted, stream: EnvelopeStream, submit: ev.PaymentSubmit
    ) -> None:
        """Pay for the response of a stream; raises RemoteProtocolError for a refused payment."""
        turn = PeerTurn(
            admission.principal_of(admitted.peer, address=self._address), agent=admitted.agent
        )
        try:
            await turn.join(stream.response_id)
            await turn.pay(submit)
            for reader in open_streams(stream.pk):
                reader.woken.set()
        finally:
            await turn.close()

    async def _cancel(self, admitted: Admitted, stream: EnvelopeStream) -> None:
        """Cancel the response of a stream, unless it has ended (envelope §10)."""
        turn = PeerTurn(
            admission.principal_of(admitted.peer, address=self._address), agent=admitted.agent
        )
        try:
            await turn.join(stream.response_id)
            await turn.cancel()
        except RemoteProtocolError as error:
            raise envelope_error(error) from None
        finally:
            await turn.close()


def _stream_of(received: ReceivedEnvelope) -> EnvelopeStream:
    """Return the stream that an envelope opened; raises EnvelopeError conflict if none."""
    if received.stream is None:
        raise EnvelopeError(EnvelopeCode.CONFLICT, "You used this id before.", detail="id_conflict")
    return received.stream
