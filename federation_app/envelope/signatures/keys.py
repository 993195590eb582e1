"""Signing keys (envelope §6.3): Ed25519 and P-256 only.

Each key type has exactly one algorithm, so that a header cannot choose it (RFC 8725 §3.1).
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
    EllipticCurvePublicNumbers,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.hazmat.primitives.hashes import SHA256

from federation_app.envelope.errors import malformed, unauthenticated

if TYPE_CHECKING:
    from collections.abc import Mapping

EDDSA: Final = "EdDSA"
ES256: Final = "ES256"
ALGORITHMS: Final = {"EdDSA": EDDSA, "Ed25519": EDDSA, "ES256": ES256}
"""The accepted names of each algorithm (RFC 9864 renames EdDSA)."""
KEY_ID_CHARS: Final = 600
_COORDINATE_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 64
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)

PublicPart: TypeAlias = Ed25519PublicKey | EllipticCurvePublicKey
PrivatePart: TypeAlias = Ed25519PrivateKey | EllipticCurvePrivateKey


class EnvelopeSigner(Protocol):
    """A signing key with its id, held here or by a service."""

    @property
    def kid(self) -> str:
        """The id of the key, which is a DID URL of the sender."""

    @property
    def algorithm(self) -> str:
        """EDDSA or ES256."""

    def sign(self, data: bytes) -> bytes:
        """Return the signature in JWS's format (RFC 7518 §3.4, RFC 8037 §3.1)."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A public key of a sender."""

    kid: str
    algorithm: str
    key: PublicPart

    def verifies(self, signature: bytes, data: bytes) -> bool:
        """Return whether a signature over these bytes was made with this key."""
        if len(signature) != _SIGNATURE_BYTES:
            return False
        try:
            if isinstance(self.key, Ed25519PublicKey):
                self.key.verify(signature, data)
            else:
                half = _SIGNATURE_BYTES // 2
                r, s = (int.from_bytes(part) for part in (signature[:half], signature[half:]))
                self.key.verify(encode_dss_signature(r, s), data, ECDSA(SHA256()))
        except InvalidSignature:
            return False
        return True

    def jwk(self) -> dict[str, str]:
        """Return the key as a JSON Web Key (RFC 7517)."""
        shared = {"use": "sig", "alg": self.algorithm, "kid": self.kid}
        if isinstance(self.key, Ed25519PublicKey):
            return {
                "kty": "OKP",
                "crv": "Ed25519",
                "x": encode64(self.key.public_bytes_raw()),
                **shared,
            }
        numbers = self.key.public_numbers()
        x, y = (
            encode64(coordinate.to_bytes(_COORDINATE_BYTES))
            for coordinate in (numbers.x, numbers.y)
        )
        return {"kty": "EC", "crv": "P-256", "x": x, "y": y, **shared}


@dataclass(frozen=True, slots=True, repr=False)
class EnvelopeKey:
    """A private key with its id, implementing EnvelopeSigner."""

    kid: str
    key: PrivatePart

    @property
    def algorithm(self) -> str:
        """EDDSA or ES256."""
        return EDDSA if isinstance(self.key, Ed25519PrivateKey) else ES256

    def sign(self, data: bytes) -> bytes:
        """Return the signature in JWS's format."""
        if isinstance(self.key, Ed25519PrivateKey):
            return self.key.sign(data)
        r, s = decode_dss_signature(self.key.sign(data, ECDSA(SHA256())))
        return r.to_bytes(_COORDINATE_BYTES) + s.to_bytes(_COORDINATE_BYTES)

    def public(self) -> VerificationKey:
        """Return the public key."""
        return VerificationKey(self.kid, self.algorithm, self.key.public_key())


def encode64(data: bytes) -> str:
    """Encode bytes in base64url without padding (RFC 7515 §2)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode64(text: str) -> bytes:
    """Decode base64url without padding.

    Raises EnvelopeError for invalid characters, and for any but the one valid encoding of the
    bytes.
    """
    if _BASE64URL.fullmatch(text) is None:
        raise malformed("It is not base64url without padding.", detail="base64url")
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise malformed("It is not base64url without padding.", detail="base64url") from None
    if encode64(data) != text:
        raise malformed("Its last character has bits that belong to no byte.", detail="spare_bits")
    return data


def key_of_jwk(jwk: Mapping[str, Any], *, kid: str) -> VerificationKey:
    """Parse the public key in a JWK, under the id that its document gives it.

    Raises EnvelopeError for another type or curve, a private key, or a key that is not meant for
    signatures.
    """
    if "d" in jwk or jwk.get("use", "sig") != "sig":
        raise unauthenticated("The key is not a public signing key.", detail="key")
    operations = jwk.get("key_ops")
    if operations is not None and (not isinstance(operations, list) or "verify" not in operations):
        raise unauthenticated("The key is not meant for verification.", detail="key")
    algorithm, key = _public_part(jwk)
    if ALGORITHMS.get(str(jwk.get("alg", algorithm))) != algorithm:
        raise unauthenticated("The key's alg does not match its type.", detail="key")
    if not 0 < len(kid) <= KEY_ID_CHARS:
        raise unauthenticated("The key id is missing or too long.", detail="key")
    return VerificationKey(kid, algorithm, key)


def _public_part(jwk: Mapping[str, Any]) -> tuple[str, PublicPart]:
    kind = jwk.get("kty"), jwk.get("crv")
    if kind == ("OKP", "Ed25519"):
        return EDDSA, Ed25519PublicKey.from_public_bytes(_coordinate(jwk, "x"))
    if kind == ("EC", "P-256"):
        x, y = (int.from_bytes(_coordinate(jwk, name)) for name in ("x", "y"))
        try:
            return ES256, EllipticCurvePublicNumbers(x, y, SECP256R1()).public_key()
        except ValueError:
            raise unauthenticated(
                "The public key is not a valid P-256 point.", detail="key"
            ) from None
    raise unauthenticated("The key must be Ed25519 or P-256.", detail="key")


def _coordinate(jwk: Mapping[str, Any], name: str) -> bytes:
    value = jwk.get(name)
    data = decode64(value) if isinstance(value, str) else b""
    if len(data) != _COORDINATE_BYTES:
        raise unauthenticated(f"The key's {name} must have 32 bytes.", detail="key")
    return data
