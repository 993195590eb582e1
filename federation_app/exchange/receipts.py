"""The receipts of accepted envelopes, and their JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from federation_app.envelope.members.reading import Intent
    from federation_app.exchange.relay import Delivery
    from federation_app.exchange.turns import PeerTurn
    from federation_app.models import EnvelopeStream, Peer, ReceivedEnvelope


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvelopeReceipt:
    """An accepted envelope, with its `stream`, if it has one; `after` is where a reader begins.

    `opens` means that the sender expects deltas: the envelope was an `ask`, a `subscribe`, or an
    `error` about a missing delta, and all its receivers are ours. Any other receiver could replay
    it, and would read the answer. `is_repeated` means that the same envelope was accepted before.
    """

    intent: Intent
    peer: Peer
    stream: EnvelopeStream | None
    opens: bool
    after: int = -1
    is_repeated: bool = False
    # The outcomes at each member, if several are its receivers.
    deliveries: tuple[Delivery, ...] = ()
    # The row of an `ask`, and the turn that began its answer here, if the caller follows it.
    request: ReceivedEnvelope | None = None
    turn: PeerTurn | None = None

    @property
    def stream_id(self) -> str:
        """The stream's id; '' if there is none."""
        return "" if self.stream is None else self.stream.stream_id

    @property
    def window(self) -> int:
        """The stream's window; 0 if there is none."""
        return 0 if self.stream is None else self.stream.window

    async def leave(self) -> None:
        """Leave the turn, unless it was opened; the response keeps running. Idempotent."""
        if self.turn is not None:
            await self.turn.close()


def receipt_members(receipt: EnvelopeReceipt) -> dict[str, Any]:
    """Return the JSON members of a receipt, for transports that answer with a body."""
    if receipt.deliveries:
        receivers = [delivery_members(delivery) for delivery in receipt.deliveries]
        return {"repeated": receipt.is_repeated, "receivers": receivers}
    if receipt.stream is None:
        return {"repeated": receipt.is_repeated}
    return {
        "stream_id": receipt.stream_id,
        "delta_window": receipt.window,
        "repeated": receipt.is_repeated,
    }


def delivery_members(delivery: Delivery) -> dict[str, Any]:
    """Return the JSON members of the outcome at one member of the hub."""
    members: dict[str, Any] = {"to": list(delivery.to)}
    if delivery.error is not None:
        return members | delivery.error.payload()
    if delivery.passed is not None and (stream := delivery.passed.stream) is not None:
        members |= {"stream_id": stream.stream_id, "delta_window": stream.window}
    return members | {"repeated": delivery.passed is not None and delivery.passed.is_repeated}


def encoded_receipt(receipt: EnvelopeReceipt) -> bytes:
    """Return a receipt as encoded JSON."""
    return msgspec.json.encode(receipt_members(receipt))
