"""The bodies that this server signs in a stream: the answer or its digest, a demand for payment."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.utils import timezone

from federation_app import own_names
from federation_app.envelope.limits import ENVELOPE_BYTES
from federation_app.envelope.members.reading import Intent
from federation_app.envelope.members.writing import new_envelope
from federation_app.envelope.streams.deltas import DIGEST_TYPE, PAYMENT_STAGE
from federation_app.models import ReceivedEnvelope
from federation_app.terms.chain_payments import offered
from sessions_app import database
from uamp.signatures import text_sha256

if TYPE_CHECKING:
    from federation_app.models import EnvelopeStream, Peer
    from uamp import events as ev

SIGNED_CHARS: Final = 256 * 1024
SIGNED_BYTES: Final = ENVELOPE_BYTES - 64 * 1024
"""Of longer answers, which would not fit into an envelope, the digest is signed.

Escaped characters count as they are written: a control character takes six bytes.
"""
EVENT_TYPE: Final = "application/vnd.uamp.event+json"
PAYMENT_TYPE: Final = "application/vnd.uamp.payment+json"


async def done_members(
    peer: Peer, stream: EnvelopeStream, request: ReceivedEnvelope | None, text: str
) -> dict[str, object]:
    """Return the members of `done` about the whole answer: its text or digest, signed for the peer.

    `request` is the envelope that opened the stream; it is read if not given.
    """
    members: dict[str, object] = {"mime": "text/markdown", "length": len(text)}
    inform = partial(_signed, peer, stream, Intent.INFORM, request=request)
    if len(text) <= SIGNED_CHARS and len(msgspec.json.encode(text)) <= SIGNED_BYTES:
        members["envelope"] = await database.run(partial(inform, text, type_="text/markdown"))
    else:
        members["digest"] = await database.run(partial(inform, _digest_of(text), type_=DIGEST_TYPE))
    return members


async def demand_members(
    peer: Peer, stream: EnvelopeStream, event: ev.PaymentRequired
) -> dict[str, object]:
    """Return the payload of the `progress` that demands a payment, with a signed `propose`."""
    text = msgspec.json.encode(offered(event)).decode()
    envelope = await database.run(
        partial(_signed, peer, stream, Intent.PROPOSE, text, type_=PAYMENT_TYPE)
    )
    return {"stage": PAYMENT_STAGE, "envelope": envelope}


def signed_event(peer: Peer, stream: EnvelopeStream, event: dict[str, Any]) -> dict[str, Any]:
    """Return an event of a chat as a signed `notify`."""
    content = msgspec.json.encode(event).decode()
    return _signed(peer, stream, Intent.NOTIFY, content, type_=EVENT_TYPE)


def _digest_of(text: str) -> str:
    value = {"sha256": text_sha256(text), "length": len(text)}
    return msgspec.json.encode(value).decode()


def _signed(
    peer: Peer,
    stream: EnvelopeStream,
    intent: Intent,
    content: str,
    *,
    type_: str,
    request: ReceivedEnvelope | None = None,
) -> dict[str, Any]:
    """Return a signed envelope from a stream's receiver that references its request."""
    if request is None:
        request = ReceivedEnvelope.objects.filter(stream=stream).order_by("id").first()
    members: dict[str, Any] = {"stream_id": stream.stream_id}
    if request is not None:
        members["reply_to"] = f"urn:uuid:{request.envelope_id}"
        members["context"] = [
            {"id": f"urn:uuid:{request.envelope_id}", "hash": f"sha256:{request.sha256}"}
        ]
    return new_envelope(
        own_names.own_signer(stream.receiver),
        to=[peer.did],
        intent=intent,
        content=content,
        now=timezone.now(),
        type_=type_,
        members=members,
    )
