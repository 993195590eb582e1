"""The admission of envelopes: their signer, receiver, time and replays.

The checks are in the order of their cost: an envelope is parsed, its sender looked up, the attempt
counted (`on_claim`), and only then is it hashed and its signature verified. Nothing is written for
an invalid envelope. Everything here is synchronous and runs on the database threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from federation_app import own_names
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, unauthenticated
from federation_app.envelope.limits import TIME_WINDOW_SECONDS
from federation_app.envelope.members.reading import Intent, plain_id, read_envelope
from federation_app.envelope.members.verifying import verify_envelope
from federation_app.envelope.names.identity import identity_at
from federation_app.envelope.names.tokens import issuer_of, verify_token
from federation_app.envelope.signatures.jws import read_compact
from federation_app.envelope.signatures.signature import SIGNATURE_TYPE
from federation_app.guests.contents import GUESTS_TYPE
from federation_app.models import EnvelopeStream, ReceivedEnvelope
from federation_app.peers import quotas, registry
from federation_app.terms import capabilities
from sessions_app.access.principal import Principal, PrincipalKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from federation_app.envelope.members.reading import Envelope
    from federation_app.models import Peer

INTENTS: Final = (
    Intent.ASK,
    Intent.CONFIRM,
    Intent.DENY,
    Intent.PROGRESS,
    Intent.CANCEL,
    Intent.SUBSCRIBE,
    Intent.ERROR,
)
"""The intents that this server supports of any peer."""
GUEST_INTENTS: Final = (Intent.INFORM, Intent.PROPOSE, Intent.NOTIFY)
"""Those that it supports only about shared chats (ADR 66)."""
CANCELLING: Final = frozenset({Intent.CANCEL, Intent.DENY})
_OWN_ID: Final = "str-"


@dataclass(frozen=True, kw_only=True, slots=True)
class Admitted:
    """A valid envelope, sent by a peer to one of our names, or to be passed on (`relay`)."""

    envelope: Envelope
    peer: Peer
    receiver: str
    agent: str
    size: int
    relayed_to: Peer | None = None
    # The members of the hub, and their receivers, if there are several; None is for the others.
    routes: tuple[tuple[Peer | None, tuple[str, ...]], ...] = ()

    @property
    def is_about_guests(self) -> bool:
        """Whether the envelope is about a shared chat."""
        return self.envelope.body.type == GUESTS_TYPE

    @property
    def is_ours_alone(self) -> bool:
        """Whether every receiver of the envelope is one of our names."""
        return all(own_names.receiver_among((name,)) is not None for name in self.envelope.to)

    @property
    def stream_id(self) -> str:
        """The stream that an `ask` opens: chosen by the peer, or derived from the envelope's id."""
        return self.envelope.stream_id or f"{_OWN_ID}{self.envelope.id}"


class PeerRefused(Exception):
    """A peer's envelope has a valid signature, receiver and time, but is refused with `error`."""

    def __init__(self, peer: Peer, error: EnvelopeError) -> None:
        super().__init__(error.message)
        self.peer, self.error = peer, error


def principal_of(peer: Peer, *, address: str = "", servers: int = 0) -> Principal:
    """Return the principal of a peer, which acts for its account.

    `servers` is the number of servers that have forwarded its request.
    """
    key = PrincipalKind.PEER.key(peer.pk)
    return Principal(
        key=key,
        credential=key,
        user_id=peer.user_id,
        username="" if peer.user is None else peer.user.get_username(),
        address=address,
        servers=servers,
    )


def admit(raw: bytes, *, on_claim: Callable[[Peer, int], None] | None = None) -> Admitted:
    """Read and verify an envelope; raises EnvelopeError, and PeerRefused once it is verified.

    `on_claim` is called before the signature is verified, with the peer that the envelope names and
    the number of members that it is for; what it raises is passed on. A server without a name
    accepts no envelopes. Raises `registry.KeysDue` if the peer's keys have to be fetched first.
    """
    own_names.own_identity()
    envelope = read_envelope(raw)
    peer = registry.find_peer(envelope.sender)
    named_receiver = own_names.receiver_among(envelope.to)
    member = registry.route_of(peer, envelope.to) if named_receiver is None else None
    routes = registry.routes_of(peer, envelope.to) if named_receiver is None else []
    if on_claim is not None:
        on_claim(peer, max(1, len(routes)))
    kid = read_compact(envelope.sig, types={SIGNATURE_TYPE}).kid
    if member is not None or routes:
        named_receiver = envelope.to[0], ""
    verify_envelope(
        envelope,
        keys=registry.stored_keys(peer, kid),
        receivers=() if named_receiver is None else {named_receiver[0]},
        now=timezone.now(),
        seconds=settings.UAMP_ENVELOPE_SKEW_SECONDS,
        accepts_naive=settings.UAMP_ENVELOPE_SORTED_JSON,
    )
    receiver, agent = named_receiver or ("", "")
    admitted = Admitted(
        envelope=envelope,
        peer=peer,
        receiver=receiver,
        agent=agent,
        size=len(raw),
        relayed_to=member,
        routes=tuple(routes),
    )
    try:
        _check_rights(admitted)
    except EnvelopeError as error:
        raise PeerRefused(peer, error) from error
    return admitted


def _check_rights(admitted: Admitted) -> None:
    """Raise EnvelopeError if the peer may not send this verified envelope."""
    envelope, peer = admitted.envelope, admitted.peer
    body_bytes = len(envelope.body.content.encode())
    if admitted.relayed_to is not None or admitted.routes:
        # Its content and its token are for the receivers to judge.
        total = admitted.size * max(1, len(admitted.routes))
        quotas.check_envelope(peer, body_bytes=body_bytes, size=total)
        return
    if envelope.intent not in (*INTENTS, *(GUEST_INTENTS if admitted.is_about_guests else ())):
        raise EnvelopeError(
            EnvelopeCode.UNSUPPORTED,
            f"This server does not support the intent {envelope.intent}. See its manifest.",
            detail="intent",
        )
    if admitted.is_about_guests and admitted.agent:
        raise EnvelopeError(EnvelopeCode.UNAUTHORIZED, "Only servers can share chats.", detail="to")
    quotas.check_envelope(peer, body_bytes=body_bytes, size=admitted.size)
    capabilities.check(envelope, receiver=admitted.receiver, peer=peer)
    _check_context(envelope, peer)


def bearer_of(token: str) -> Peer:
    """Return the peer that signed a bearer token to read its streams.

    Raises EnvelopeError, and `registry.KeysDue` if the peer's keys have to be fetched first.
    """
    issuer = issuer_of(token)
    peer = registry.find_peer(issuer)
    claims = verify_token(
        token,
        audiences={own_names.own_identity().did},
        now=timezone.now(),
        keys=registry.stored_keys(peer, ""),
    )
    if claims.subject != issuer:
        raise unauthenticated("The token was issued for another name.", detail="sub")
    claims.check_scope(Intent.SUBSCRIBE)
    return peer


def certified_peer(name: str) -> Peer:
    """Return the peer whose host a client's certificate names; raises EnvelopeError."""
    return registry.find_peer(identity_at(name).did)


def remember(
    admitted: Admitted,
    *,
    chat_id: str = "",
    cancelled: EnvelopeStream | None = None,
    is_done: bool = True,
) -> tuple[ReceivedEnvelope, bool]:
    """Record an envelope's id and the stream that it opens; return its row and whether it repeats.

    `cancelled` is the subscription that it ends. `is_done` is False for one whose effect comes
    later: see `outcomes`. Raises EnvelopeError conflict if the id or the stream was used for
    something else, and not_found if the subscription was forgotten meanwhile.
    """
    envelope, peer = admitted.envelope, admitted.peer
    try:
        with transaction.atomic():
            stream = cancelled
            if envelope.intent is Intent.ASK or chat_id:
                stream = EnvelopeStream.objects.create(
                    peer=peer,
                    stream_id=admitted.stream_id,
                    receiver=admitted.receiver,
                    window=envelope.window,
                    chat_id=chat_id,
                    session_id=_session_of(admitted, chat_id),
                )
            received = ReceivedEnvelope.objects.create(
                peer=peer,
                envelope_id=envelope.id,
                sha256=envelope.sha256,
                intent=envelope.intent,
                size=admitted.size,
                signed_at=envelope.ts,
                is_done=is_done,
                stream=stream,
            )
            return received, False
    except IntegrityError:
        existing = (
            ReceivedEnvelope.objects.select_related("stream")
            .filter(peer=peer, envelope_id=envelope.id)
            .first()
        )
    if existing is None and cancelled is not None:
        raise EnvelopeError(EnvelopeCode.NOT_FOUND, "There is no such stream.", detail="stream_id")
    if existing is None or existing.sha256 != envelope.sha256:
        detail = "stream_id" if existing is None else "id_conflict"
        raise EnvelopeError(
            EnvelopeCode.CONFLICT, "You used this id before for something else.", detail=detail
        )
    return existing, True


def forget(received: ReceivedEnvelope) -> None:
    """Delete the record of an envelope whose request was refused, unless another has begun it."""
    with transaction.atomic():
        if received.intent == Intent.ASK and received.stream_id is not None:
            # Its envelopes are deleted with it.
            EnvelopeStream.objects.filter(pk=received.stream_id, response_id="").delete()
        else:
            ReceivedEnvelope.objects.filter(pk=received.pk).delete()


def stream_row(stream_pk: int) -> EnvelopeStream | None:
    """Return a stream as it is now; None if its `ask` was refused."""
    return EnvelopeStream.objects.filter(pk=stream_pk).first()


def record_response(stream: EnvelopeStream, response_id: str) -> None:
    """Record which response answers a stream."""
    stream.response_id = response_id
    EnvelopeStream.objects.filter(pk=stream.pk).update(response_id=response_id)


def find_stream(peer: Peer, *, stream_id: str = "", reply_to: str = "") -> EnvelopeStream:
    """Return a stream of a peer, by its id or by the `ask` that opened it.

    It may be one that another peer answers (`relayed_to`). Raises EnvelopeError not_found, also for
    a stream of another peer.
    """
    rows = EnvelopeStream.objects.filter(peer=peer)
    if stream_id:
        stream = rows.filter(stream_id=stream_id).first()
    else:
        request = (
            ReceivedEnvelope.objects.select_related("stream")
            .filter(peer=peer, envelope_id=reply_to)
            .first()
        )
        stream = None if request is None else request.stream
    if stream is None:
        raise EnvelopeError(EnvelopeCode.NOT_FOUND, "There is no such stream.", detail="stream_id")
    return stream


def find_own_stream(peer: Peer, *, stream_id: str = "", reply_to: str = "") -> EnvelopeStream:
    """Return a stream of a peer that this server answers; raises EnvelopeError not_found."""
    stream = find_stream(peer, stream_id=stream_id, reply_to=reply_to)
    if stream.relayed_to_id is not None:
        raise EnvelopeError(
            EnvelopeCode.NOT_FOUND, "The stream has another receiver.", detail="stream_id"
        )
    return stream


def acknowledge(stream: EnvelopeStream, delta_seq: int) -> None:
    """Record the last delta that a peer acknowledged, unless a later one is recorded."""
    EnvelopeStream.objects.filter(pk=stream.pk, acknowledged__lt=delta_seq).update(
        acknowledged=delta_seq
    )


def acknowledged(stream_pks: Collection[int]) -> dict[int, int]:
    """Return the last acknowledged delta of each of these streams, -1 for none."""
    rows = EnvelopeStream.objects.filter(pk__in=stream_pks)
    return dict(rows.values_list("pk", "acknowledged"))


def cancelled(stream_pks: Collection[int]) -> set[int]:
    """Return the subscriptions to chats that their peers have cancelled, or that were forgotten.

    A forgotten one could not be cancelled any more, and its cancellation is forgotten with it.
    """
    streams = EnvelopeStream.objects.filter(pk__in=stream_pks)
    kept = streams.exclude(envelopes__intent__in=CANCELLING).values_list("pk", flat=True)
    return set(stream_pks) - set(kept)


def forget_old(limit: int) -> int:
    """Delete envelopes and streams too old to be replayed; return how many rows were deleted.

    An envelope can be accepted until twice the clock skew after it was received, so its row must be
    kept at least that long.
    """
    skew = timedelta(seconds=2 * max(settings.UAMP_ENVELOPE_SKEW_SECONDS, TIME_WINDOW_SECONDS))
    before = timezone.now() - max(timedelta(hours=settings.UAMP_ENVELOPE_HOURS), skew)
    deleted = 0
    for model in (ReceivedEnvelope, EnvelopeStream):
        rows = model.objects.order_by("pk").values_list("pk", "created_at")[:limit]
        old = [pk for pk, created_at in rows if created_at < before]
        deleted += model.objects.filter(pk__in=old).delete()[0] if old else 0
    return deleted


def _session_of(admitted: Admitted, chat_id: str) -> str:
    """Return the session of an `ask`: that of the envelope it replies to, or a new one.

    Raises EnvelopeError conflict if that envelope was sent to another of our names: its agent would
    answer, and the answer would be signed in this one's name. Nor may it be a `subscribe`: who
    follows a chat only reads it.
    """
    envelope = admitted.envelope
    if chat_id or not envelope.reply_to:
        return f"env-{envelope.id}"
    earlier = find_stream(admitted.peer, reply_to=envelope.reply_to)
    if earlier.chat_id:
        raise EnvelopeError(
            EnvelopeCode.CONFLICT,
            "The envelope that you reply to is not an ask.",
            detail="reply_to",
        )
    if earlier.receiver != admitted.receiver:
        raise EnvelopeError(
            EnvelopeCode.CONFLICT,
            "The envelope that you reply to was sent to another name.",
            detail="reply_to",
        )
    return earlier.session_id


def _check_context(envelope: Envelope, peer: Peer) -> None:
    """Raise EnvelopeError conflict if a reference differs from the envelope that was received."""
    hashes = {
        plain_id(reference.id): reference.hash.removeprefix("sha256:")
        for reference in envelope.context
    }
    received = ReceivedEnvelope.objects.filter(peer=peer, envelope_id__in=hashes)
    for envelope_id, sha256 in received.values_list("envelope_id", "sha256"):
        if hashes[envelope_id] != sha256:
            raise EnvelopeError(
                EnvelopeCode.CONFLICT,
                "The hash of a context reference does not match the envelope with its id.",
                detail="context",
            )
