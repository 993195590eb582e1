"""The relay between members of this server's hub: it passes on envelopes from one to another.

The bytes are those that the sender signed, so the receiver verifies the sender, and trusts this
server with nothing. What keeps it in bounds:

- Both are peers, and an operator has switched it on for them (`Peer.is_relayed`).
- An envelope is verified and counted here like any other of its sender, once for each member that
  it is for. Each of those is posted it once (`pass_on_to_all`), and one that refuses it or does not
  answer stops no other.
- `UAMP-Relayed-By` names the servers that passed it on. A server that finds itself there refuses
  it, and so does one beyond MAX_RELAYS. One that leaves itself out causes no loop either: an
  envelope in transit is refused (5.04), and one that was accepted is not passed on again.
- A member that does not answer holds up AT_ONCE envelopes of a process, for POST_SECONDS each.

Nothing is stored for later: a sender to which no one answered sends the same bytes again (5.04),
and the receiver recognises them.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import aiohttp
from django.db import IntegrityError, transaction
from django.utils import timezone

from agents_app.outbound.rules import Unreachable
from agents_app.remote.addresses import session_of, target_of
from federation_app import own_names
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, malformed
from federation_app.envelope.limits import DOCUMENT_BYTES, MAX_WINDOW, load
from federation_app.envelope.members.reading import Intent, is_stream_id
from federation_app.envelope.names.identity import read_identity
from federation_app.models import EnvelopeStream, ReceivedEnvelope
from federation_app.peers.connections import tls
from sessions_app import database

if TYPE_CHECKING:
    from federation_app.exchange.admission import Admitted
    from federation_app.models import Peer

RELAYED_BY: Final = "UAMP-Relayed-By"
MAX_RELAYS: Final = 3
"""How many servers may pass on an envelope."""
POST_SECONDS: Final = 10.0
AT_ONCE: Final = 16
"""How many envelopes a process passes on to one member at a time."""
RETRY_SECONDS: Final = 5
ABANDONED: Final = timedelta(minutes=1)
"""After this time, an envelope under way may be sent again: its process has died."""
OPENING: Final = frozenset({Intent.ASK, Intent.SUBSCRIBE})
"""The intents that open a stream; an answer to any other names the stream that it is about."""
_ACCEPTED: Final = 202
_MAX_RETRY: Final = 3600
_WORD_CHARS: Final = 500
_DELIVERIES: Final = uuid.UUID("0d9d8c8e-6f0c-4b52-9d5a-3c1f7a3e5b11")
_relaying: Final[Counter[int]] = Counter()


@dataclass(frozen=True, kw_only=True, slots=True)
class Passed:
    """An envelope that its receiver accepted, and the stream with which that answers, if any."""

    stream: EnvelopeStream | None
    is_repeated: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    """The outcome of an envelope at one member of the hub; `to` lists the receivers there."""

    to: tuple[str, ...]
    passed: Passed | None = None
    error: EnvelopeError | None = None


class _Receipt(NamedTuple):
    stream_id: str
    window: int


def read_relays(header: str) -> tuple[str, ...]:
    """Return the servers that have passed on an envelope; raises EnvelopeError.

    unauthorized if this server is one of them, or if there are too many.
    """
    names = tuple(name.strip() for name in header.split(",")) if header.strip() else ()
    if len(names) >= MAX_RELAYS or own_names.own_identity().did in names:
        raise EnvelopeError(
            EnvelopeCode.UNAUTHORIZED,
            "The envelope was relayed in a loop, or by too many servers.",
            detail="relayed_by",
        )
    for name in names:
        read_identity(name)
    return names


async def pass_on(admitted: Admitted, raw: bytes, *, relays: tuple[str, ...]) -> Passed:
    """Pass on an envelope and return how its receiver answered.

    Raises the receiver's EnvelopeError if it refuses, and busy if it does not answer.
    """
    member = admitted.relayed_to
    if member is None:
        raise malformed(
            "The envelope is addressed to this server, so there is nothing to relay.", detail="to"
        )
    received, is_new = await database.run(_begin, admitted, member)
    if not is_new:
        return Passed(stream=received.stream, is_repeated=True)
    try:
        receipt = await _post(member, raw, relays)
        stream = await database.run(_end, received, admitted, member, receipt)
    except BaseException:
        await database.run(_forget, received)
        raise
    return Passed(stream=stream, is_repeated=False)


async def pass_on_to_all(
    admitted: Admitted, raw: bytes, *, relays: tuple[str, ...]
) -> tuple[Delivery, ...]:
    """Pass on an envelope to each member that it is for; return the outcomes in order.

    A repeat is posted only to those that have not accepted it. Raises EnvelopeError if none has:
    busy if another try may succeed, or else that of the first.
    """
    await database.run(_check_id, admitted)
    attempts = [_deliver(admitted, member, to, raw, relays) for member, to in admitted.routes]
    deliveries = tuple(await asyncio.gather(*attempts))
    errors = [delivery.error for delivery in deliveries if delivery.error is not None]
    if len(errors) == len(deliveries):
        busy = (error for error in errors if error.code is EnvelopeCode.BUSY)
        raise next(busy, errors[0])
    return deliveries


async def _deliver(
    admitted: Admitted,
    member: Peer | None,
    to: tuple[str, ...],
    raw: bytes,
    relays: tuple[str, ...],
) -> Delivery:
    if member is None:
        error = EnvelopeError(
            EnvelopeCode.UNAUTHORIZED, "The receiver is not a member of this hub.", detail="to"
        )
        return Delivery(to=to, error=error)
    relayed = replace(admitted, relayed_to=member, receiver=to[0])
    try:
        return Delivery(to=to, passed=await pass_on(relayed, raw, relays=relays))
    except EnvelopeError as error:
        return Delivery(to=to, error=error)


def begin_stream(admitted: Admitted, member: Peer) -> tuple[EnvelopeStream, ReceivedEnvelope, bool]:
    """Record an `ask` or `subscribe` that is passed on over a socket, and the stream that follows.

    The third value is whether it was passed on before: it is again, because its stream comes back
    on the same socket. Raises EnvelopeError conflict if its id or its stream was used for something
    else.
    """
    envelope, peer = admitted.envelope, admitted.peer
    with transaction.atomic():
        stream_id = admitted.stream_id
        if envelope.intent is Intent.SUBSCRIBE and not envelope.stream_id:
            request = EnvelopeStream.objects.filter(
                envelopes__peer=peer, envelopes__envelope_id=envelope.reply_to
            )
            if (earlier := request.first()) is not None:
                stream_id = earlier.stream_id
        stream, _ = EnvelopeStream.objects.get_or_create(
            peer=peer,
            stream_id=stream_id,
            defaults={
                "receiver": admitted.receiver,
                "window": envelope.window,
                "relayed_to": member,
            },
        )
        received, is_new = ReceivedEnvelope.objects.get_or_create(
            peer=peer,
            envelope_id=envelope.id,
            defaults={
                "sha256": envelope.sha256,
                "intent": envelope.intent,
                "size": admitted.size,
                "signed_at": envelope.ts,
                "relayed_to": member,
                "relayed_at": timezone.now(),
                "stream": stream,
            },
        )
        if stream.relayed_to_id != member.pk:
            raise _conflict("stream_id")
        if (received.sha256, received.relayed_to_id) != (envelope.sha256, member.pk):
            raise _conflict("id_conflict")
    return stream, received, not is_new


def forget_stream(received: ReceivedEnvelope) -> None:
    """Delete the record of an envelope that a member has refused, and the stream that it opened."""
    with transaction.atomic():
        ReceivedEnvelope.objects.filter(pk=received.pk).delete()
        others = ReceivedEnvelope.objects.filter(stream=received.stream_id)
        if received.stream_id is not None and not others.exists():
            EnvelopeStream.objects.filter(pk=received.stream_id).delete()


def headers_of(relays: tuple[str, ...]) -> dict[str, str]:
    """Return the headers of a request that is passed on."""
    own_did = own_names.own_identity().did
    return {RELAYED_BY: ", ".join((*relays, own_did)), "Accept-Encoding": "identity"}


def base_of(member: Peer) -> str:
    """Return the address of a member's server."""
    base = member.address or f"https://{read_identity(member.did).authority}"
    return base.rstrip("/")


def unanswered() -> EnvelopeError:
    """Return the error for a member that cannot be reached."""
    return EnvelopeError(
        EnvelopeCode.BUSY,
        "The receiver does not answer. Send the same envelope again.",
        detail="relay",
        retry_after=RETRY_SECONDS,
    )


async def refusal_in(response: aiohttp.ClientResponse) -> EnvelopeError:
    """Return the refusal in a member's response, or busy if it has none."""
    try:
        body = load(await response.content.read(DOCUMENT_BYTES), limit=DOCUMENT_BYTES)
        code = EnvelopeCode(str(body["code"])) if isinstance(body, dict) else None
    except (EnvelopeError, KeyError, ValueError, aiohttp.ClientError, OSError):
        code = None
    if code is None or not isinstance(body, dict):
        return unanswered()
    wait, expected = _number(body.get("retry_after"), _MAX_RETRY), body.get("expected")
    return EnvelopeError(
        code,
        _word(body.get("detail")) or code.value,
        detail=_word(body.get("reason")),
        retry_after=RETRY_SECONDS if wait is None and code is EnvelopeCode.BUSY else wait,
        expected=_number(expected, 2**53),
    )


def _begin(admitted: Admitted, member: Peer) -> tuple[ReceivedEnvelope, bool]:
    """Record an envelope that is to be passed on; return its row, and False for a repeat.

    Raises EnvelopeError conflict if its id or its stream was used for something else, and busy if
    it is under way.
    """
    envelope, peer = admitted.envelope, admitted.peer
    row_id = _row_id(admitted, member)
    streams = EnvelopeStream.objects.filter(peer=peer, stream_id=envelope.stream_id)
    if envelope.stream_id and not admitted.routes and streams.exclude(relayed_to=member).exists():
        raise _conflict("stream_id")
    try:
        with transaction.atomic():
            row = ReceivedEnvelope.objects.create(
                peer=peer,
                envelope_id=row_id,
                sha256=envelope.sha256,
                intent=envelope.intent,
                size=admitted.size,
                signed_at=envelope.ts,
                relayed_to=member,
            )
    except IntegrityError:
        rows = ReceivedEnvelope.objects.select_related("stream")
        prior = rows.filter(peer=peer, envelope_id=row_id).first()
    else:
        return row, True
    if prior is not None and (prior.sha256, prior.relayed_to_id) != (envelope.sha256, member.pk):
        raise _conflict("id_conflict")
    if prior is not None and prior.relayed_at is not None:
        return prior, False
    now = timezone.now()
    abandoned = ReceivedEnvelope.objects.filter(
        peer=peer, envelope_id=row_id, relayed_at=None, created_at__lt=now - ABANDONED
    )
    if prior is None or not abandoned.update(created_at=now):
        raise EnvelopeError(EnvelopeCode.BUSY, "The envelope is in transit.", detail="relay")
    return prior, True


def _end(
    received: ReceivedEnvelope, admitted: Admitted, member: Peer, receipt: _Receipt
) -> EnvelopeStream | None:
    """Record that a member accepted an envelope; return the stream that it opened or is about.

    Raises EnvelopeError conflict if the sender has another stream of that name.
    """
    stream = None
    with transaction.atomic():
        if admitted.envelope.intent not in OPENING:
            about = EnvelopeStream.objects.filter(peer=admitted.peer, relayed_to=member)
            stream = about.filter(stream_id=receipt.stream_id).first()
        elif receipt.stream_id:
            # Members may choose the same stream id, so each stream gets a new one here.
            is_one_of_several = bool(admitted.routes)
            stream, _ = EnvelopeStream.objects.get_or_create(
                peer=admitted.peer,
                stream_id=received.envelope_id if is_one_of_several else receipt.stream_id,
                defaults={
                    "remote_id": receipt.stream_id if is_one_of_several else "",
                    "receiver": admitted.receiver,
                    "window": receipt.window or admitted.envelope.window,
                    "relayed_to": member,
                },
            )
            if stream.relayed_to_id != member.pk:
                raise _conflict("stream_id")
        ReceivedEnvelope.objects.filter(pk=received.pk).update(
            relayed_at=timezone.now(), stream=stream
        )
    return stream


def _check_id(admitted: Admitted) -> None:
    """Raise EnvelopeError conflict if the id of an envelope was used for a different one."""
    envelope = admitted.envelope
    rows = ReceivedEnvelope.objects.filter(peer=admitted.peer, envelope_id=envelope.id)
    if rows.exists():
        # One with several receivers has no row of its own.
        raise _conflict("id_conflict")


def _row_id(admitted: Admitted, member: Peer) -> str:
    """Return the id under which an envelope is recorded: its own, or one for each of several."""
    if not admitted.routes:
        return admitted.envelope.id
    return str(uuid.uuid5(_DELIVERIES, f"{admitted.envelope.id} {member.did}"))


def _forget(received: ReceivedEnvelope) -> None:
    ReceivedEnvelope.objects.filter(pk=received.pk, relayed_at=None).delete()


def _conflict(detail: str) -> EnvelopeError:
    return EnvelopeError(
        EnvelopeCode.CONFLICT, "You used this id before for something else.", detail=detail
    )


async def _post(member: Peer, raw: bytes, relays: tuple[str, ...]) -> _Receipt:
    if _relaying[member.pk] >= AT_ONCE:
        raise unanswered()
    _relaying[member.pk] += 1
    headers = {"Content-Type": "application/uamp+json", **headers_of(relays)}
    try:
        async with asyncio.timeout(POST_SECONDS):
            base = base_of(member)
            response = await session_of(target_of(base, is_peer=True), tls=tls()).post(
                f"{base}/v1/messages", headers=headers, body=raw, silent=POST_SECONDS
            )
            try:
                if response.status != _ACCEPTED:
                    raise await refusal_in(response)
                return await _receipt_in(response)
            finally:
                response.release()
    except (aiohttp.ClientError, OSError, TimeoutError, Unreachable):
        raise unanswered() from None
    finally:
        _relaying[member.pk] -= 1
        if not _relaying[member.pk]:
            del _relaying[member.pk]


async def _receipt_in(response: aiohttp.ClientResponse) -> _Receipt:
    """Return the stream that a receipt names in `Location`, whose form is specified."""
    raw = await response.content.read(DOCUMENT_BYTES)
    stream_id = response.headers.get("Location", "").rpartition("/v1/stream/")[2]
    try:
        body = load(raw, limit=DOCUMENT_BYTES)
    except EnvelopeError:
        body = None
    window = _number(body.get("delta_window"), MAX_WINDOW) if isinstance(body, dict) else None
    return _Receipt(stream_id if is_stream_id(stream_id) else "", window or 0)


def _number(value: Any, limit: int) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= limit else None


def _word(value: object) -> str:
    return value[:_WORD_CHARS] if isinstance(value, str) else ""
