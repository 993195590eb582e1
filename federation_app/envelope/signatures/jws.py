"""Compact JSON Web Signatures (RFC 7515), as used by envelopes and manifests.

A header may have `alg`, `kid` and `typ`. Any other member is refused, whether it names a key, is
critical, or changes how the payload is read (RFC 7797).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from federation_app.envelope.errors import EnvelopeError, malformed, unauthenticated
from federation_app.envelope.limits import KEYS_TRIED, load
from federation_app.envelope.signatures.keys import (
    ALGORITHMS,
    KEY_ID_CHARS,
    EnvelopeSigner,
    VerificationKey,
    decode64,
    encode64,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_MEMBERS: Final = {"alg", "kid", "typ"}
_HEADER_BYTES: Final = 2048
_PARTS: Final = 3


@dataclass(frozen=True, slots=True)
class CompactJws:
    """A signature that has not been verified, so that its header cannot be trusted."""

    header: str
    payload: str
    signature: bytes
    algorithm: str
    kid: str


def protected_header(signer: EnvelopeSigner, type_: str) -> str:
    """Return the protected header of a signature, in base64url."""
    members = {"alg": signer.algorithm, "kid": signer.kid, "typ": type_}
    return encode64(json.dumps(members, separators=(",", ":")).encode())


def sign_compact(payload: bytes, signer: EnvelopeSigner, *, type_: str, detached: bool) -> str:
    """Sign a payload as a compact JWS; a detached one omits the payload (appendix F)."""
    header, content = protected_header(signer, type_), encode64(payload)
    signature = signer.sign(f"{header}.{content}".encode())
    return f"{header}.{'' if detached else content}.{encode64(signature)}"


def read_compact(text: str, *, types: Collection[str]) -> CompactJws:
    """Parse a compact JWS of one of these types, or without a type; raises EnvelopeError.

    Types are compared in lower case and without `application/` (RFC 7515 §4.1.9).
    """
    parts = text.split(".")
    if len(parts) != _PARTS:
        raise malformed("A compact JWS must have three parts.", detail="jws")
    header, payload, _ = parts
    try:
        decoded = [decode64(part) for part in parts]
    except EnvelopeError as error:
        if error.detail != "spare_bits":
            raise
        # Valid base64url characters, but truncated: it has the form of a signature.
        raise unauthenticated("A part of the JWS was cut.", detail="jws") from None
    try:
        members = load(decoded[0], limit=_HEADER_BYTES)
    except EnvelopeError:
        raise unauthenticated("The header of the JWS cannot be read.", detail="jws") from None
    if not isinstance(members, dict) or set(members) - _MEMBERS:
        raise unauthenticated(
            "The JWS header may contain only alg, kid and typ.", detail="jws_header"
        )
    if not all(isinstance(value, str) for value in members.values()):
        raise unauthenticated("The values in a JWS header must be strings.", detail="jws_header")
    algorithm, kid = ALGORITHMS.get(members.get("alg", "")), members.get("kid", "")
    if algorithm is None:
        raise unauthenticated("The signature must be EdDSA or ES256.", detail="alg")
    kind = members.get("typ", "").lower().removeprefix("application/")
    if "typ" in members and kind not in types:
        raise unauthenticated(f"typ must be {' or '.join(sorted(types))}.", detail="typ")
    if len(kid) > KEY_ID_CHARS or ("kid" in members and not kid):
        raise unauthenticated("The key id is empty or too long.", detail="kid")
    return CompactJws(header, payload, decoded[2], algorithm, kid)


def verified_by(
    jws: CompactJws, payloads: Iterable[bytes], keys: Iterable[VerificationKey]
) -> tuple[VerificationKey, bytes]:
    """Return the key that signed, and the payload it signed.

    Raises EnvelopeError unauthenticated. A header without `kid` is tried with the first KEYS_TRIED
    keys of its algorithm.
    """
    fitting = [key for key in keys if key.algorithm == jws.algorithm and jws.kid in {"", key.kid}][
        :KEYS_TRIED
    ]
    if not fitting:
        raise unauthenticated("The sender has no such key.", detail="kid")
    for payload in payloads:
        data = f"{jws.header}.{encode64(payload)}".encode()
        for key in fitting:
            if key.verifies(jws.signature, data):
                return key, payload
    raise unauthenticated("The signature does not match the content.", detail="sig")
