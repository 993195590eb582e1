"""Signing questions to peers, and verifying their answers. Synchronous.

The functions that need a peer's keys are called by `reading.with_keys`.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.conf import settings
from django.utils import timezone

from federation_app import own_names
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, unauthenticated
from federation_app.envelope.limits import DEFAULT_WINDOW, ENVELOPE_BYTES, load
from federation_app.envelope.members.body import decoded, text_of
from federation_app.envelope.members.extensions import HOPS
from federation_app.envelope.members.reading import Intent, envelope_of
from federation_app.envelope.members.verifying import verify_envelope
from federation_app.envelope.members.writing import new_envelope
from federation_app.envelope.names.identity import identity_at, read_identity
from federation_app.envelope.names.tokens import signed_token
from federation_app.envelope.signatures.jws import read_compact
from federation_app.envelope.signatures.signature import SIGNATURE_TYPE
from federation_app.envelope.streams.deltas import ACK_TYPE, DIGEST_TYPE
from federation_app.peers import registry
from uamp.signatures import text_sha256

if TYPE_CHECKING:
    from agents_app.outbound.rules import Target
    from federation_app.envelope.members.reading import Envelope

JSON_TYPE: Final = "application/json"
HTTPS_PORT: Final = 443


@dataclass(frozen=True, kw_only=True, slots=True)
class SignedQuestion:
    """An `ask` as sent, which can be sent again unchanged.

    `server` is the name of the receiver's server; `id` has no `urn:uuid:` prefix.
    """

    sender: str
    receiver: str
    server: str
    id: str
    stream_id: str
    window: int
    sha256: str
    raw: bytes


def signed_question(receiver: str, text: str, *, hops: int, token: str = "") -> SignedQuestion:
    """Return a signed `ask` for an agent of a peer; `token` is a capability token of its server.

    Raises EnvelopeError unauthenticated if no trusted peer vouches for the receiver, and too_large
    if the text does not fit into an envelope.
    """
    own_identity, identity = own_names.own_identity(), read_identity(receiver)
    registry.keys_of_name(receiver, "")
    members: dict[str, Any] = {
        "stream_id": f"ask-{uuid.uuid4()}",
        "delta_window": DEFAULT_WINDOW,
        "ext": {HOPS: hops},
    }
    if token:
        members["cap_token"] = token
    value = new_envelope(
        own_names.own_signer(own_identity.did),
        to=[receiver],
        intent=Intent.ASK,
        content=text,
        now=timezone.now(),
        type_="text/markdown",
        members=members,
    )
    raw = msgspec.json.encode(value)
    if len(raw) > ENVELOPE_BYTES:
        raise EnvelopeError(EnvelopeCode.TOO_LARGE, "The conversation does not fit.", detail="body")
    envelope = envelope_of(value)
    return SignedQuestion(
        sender=own_identity.did,
        receiver=receiver,
        server=identity_at(identity.authority).did,
        id=envelope.id,
        stream_id=envelope.stream_id,
        window=envelope.window,
        sha256=envelope.sha256,
        raw=raw,
    )


def signed_about(question: SignedQuestion, intent: Intent, content: dict[str, Any]) -> bytes:
    """Return a signed envelope about a question's stream: subscribe, progress or cancel."""
    value = new_envelope(
        own_names.own_signer(question.sender),
        to=[question.receiver],
        intent=intent,
        content=msgspec.json.encode(content).decode() if content else "",
        now=timezone.now(),
        type_=ACK_TYPE if intent is Intent.PROGRESS else JSON_TYPE,
        members={"stream_id": question.stream_id, "reply_to": f"urn:uuid:{question.id}"},
    )
    return msgspec.json.encode(value)


def bearer(question: SignedQuestion, target: Target) -> str:
    """Return the bearer token for reading a question's stream at an address.

    It names the receiver's server and, if that is elsewhere, the hub at the address.
    """
    hub = "" if is_direct(question, target) else _server_at(target)
    is_relayed = hub not in {"", question.server}
    return signed_token(
        own_names.own_signer(question.sender),
        issuer=question.sender,
        subject=question.sender,
        audience=[question.server, hub] if is_relayed else question.server,
        scope=f"uamp:{Intent.SUBSCRIBE.value}",
        now=timezone.now(),
    )


def _server_at(target: Target) -> str:
    """Return the name of the server at an address; "" if it has none.

    That is the peer whose documents are read there, or else the name of the host.
    """
    peers = registry.trusted_peers().filter(documents_address=str(target.url).rstrip("/"))
    if (did := peers.values_list("did", flat=True).first()) is not None:
        return did
    is_default = target.port == HTTPS_PORT
    try:
        return identity_at(target.host if is_default else f"{target.host}:{target.port}").did
    except EnvelopeError:
        return ""


def verified_answer(question: SignedQuestion, value: object) -> str:
    """Return the text of the `inform` that answers a question; raises EnvelopeError."""
    return text_of(_verified_inform(question, value).body)


def check_digest(question: SignedQuestion, value: object, text: str) -> None:
    """Verify the signed digest of an answer; raises EnvelopeError if it is that of another text."""
    body = _verified_inform(question, value).body
    digest = load(decoded(body)) if body.type == DIGEST_TYPE else None
    if digest != {"sha256": text_sha256(text), "length": len(text)}:
        raise unauthenticated("The digest does not match the text.", detail="digest")


def is_direct(question: SignedQuestion, target: Target) -> bool:
    """Return whether TLS proves an address to be the server of the receiver, and not a hub."""
    authority = read_identity(question.server).authority
    host, _, port = authority.partition(":")
    return target.place == f"https://{host}:{port or HTTPS_PORT}"


def verified_error(question: SignedQuestion, value: object) -> Envelope | None:
    """Return a signed `error` about a question; None for an envelope about anything else.

    Raises EnvelopeError unless the receiver or its server signed it.
    """
    envelope = envelope_of(value)
    if envelope.intent is not Intent.ERROR:
        return None
    if envelope.reply_to != question.id and envelope.stream_id != question.stream_id:
        return None
    return _verified(question, value, senders=(question.receiver, question.server))


def _verified_inform(question: SignedQuestion, value: object) -> Envelope:
    envelope = _verified(question, value, senders=(question.receiver,))
    if envelope.intent is not Intent.INFORM or envelope.reply_to != question.id:
        raise unauthenticated("The envelope answers another question.", detail="reply_to")
    hashes = {
        reference.hash for reference in envelope.context if reference.id.endswith(question.id)
    }
    if hashes - {f"sha256:{question.sha256}"}:
        raise unauthenticated("The envelope answers another question.", detail="context")
    return envelope


def _verified(question: SignedQuestion, value: object, *, senders: tuple[str, ...]) -> Envelope:
    envelope = envelope_of(value)
    if envelope.sender not in senders:
        raise unauthenticated("The envelope is from another sender.", detail="from")
    kid = read_compact(envelope.sig, types={SIGNATURE_TYPE}).kid
    verify_envelope(
        envelope,
        keys=registry.keys_of_name(envelope.sender, kid),
        receivers={question.sender},
        now=timezone.now(),
        seconds=settings.UAMP_ENVELOPE_SKEW_SECONDS,
        accepts_naive=settings.UAMP_ENVELOPE_SORTED_JSON,
    )
    return envelope
