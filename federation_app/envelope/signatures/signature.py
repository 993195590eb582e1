"""The signature of an envelope (envelope §6.3): a detached JWS over its digest.

The payload is `{"sha256":"<64 lower-case hex digits>"}`, 77 bytes. It is detached, so the receiver
computes it. An attached payload is accepted if it consists of these bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from federation_app.envelope.errors import malformed, unauthenticated
from federation_app.envelope.signatures.canonical import digest, without_signature
from federation_app.envelope.signatures.jws import read_compact, sign_compact, verified_by
from federation_app.envelope.signatures.keys import decode64

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from federation_app.envelope.signatures.keys import EnvelopeSigner, VerificationKey

SIGNATURE_TYPE: Final = "uamp+jws"
SIGNATURE_CHARS: Final = 4096


def signature_payload(sha256: str) -> bytes:
    """Return the payload to sign for a digest."""
    return f'{{"sha256":"{sha256}"}}'.encode()


def signed(
    envelope: Mapping[str, Any], signer: EnvelopeSigner, *, detached: bool = True
) -> dict[str, Any]:
    """Return an envelope with a new signature, replacing any existing one."""
    content = without_signature(envelope)
    payload = signature_payload(digest(content))
    sig = sign_compact(payload, signer, type_=SIGNATURE_TYPE, detached=detached)
    return {**content, "sig": sig}


def verify_signature(
    digests: Iterable[str], sig: str, *, sender: str, keys: Iterable[VerificationKey]
) -> VerificationKey:
    """Return the sender's key that signed one of an envelope's digests; raises EnvelopeError.

    The id of the key must begin with the sender's DID. Digests are taken one by one, and none for
    a signature without a fitting key.
    """
    if len(sig) > SIGNATURE_CHARS:
        raise malformed(f"A signature may have at most {SIGNATURE_CHARS} characters.", detail="sig")
    jws = read_compact(sig, types={SIGNATURE_TYPE})
    if jws.kid and jws.kid.partition("#")[0] != sender:
        raise unauthenticated("The key belongs to another sender.", detail="kid")
    payloads: Iterable[bytes] = map(signature_payload, digests)
    if jws.payload:
        attached = decode64(jws.payload)
        payloads = filter(lambda payload: payload == attached, payloads)
    key, _ = verified_by(jws, payloads, keys)
    return key
