"""Private keys: creating, reading, publishing (RFC 7517) and signing with them (RFC 7515).

A key has the one algorithm of its type: RS256 for RSA, EdDSA for Ed25519, ES256 for P-256. `kid` is
the beginning of the SHA-256 of its public half.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
)
from cryptography.hazmat.primitives.asymmetric.ec import (
    generate_private_key as generate_on_curve,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.utils import base64url_encode

if TYPE_CHECKING:
    from collections.abc import Mapping

PrivateKey: TypeAlias = RSAPrivateKey | Ed25519PrivateKey | EllipticCurvePrivateKey

RSA_BITS: Final = 2048
ALGORITHMS: Final = ("RS256", "EdDSA", "ES256")


class UnusableKey(ValueError):
    """A key that this server does not sign with: of an unsupported type, or too weak."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key; `kid` is the beginning of its public half's hash."""

    kid: str
    algorithm: str
    private: PrivateKey

    @property
    def jwk(self) -> dict[str, Any]:
        """The public half, as a JSON Web Key."""
        key: dict[str, Any]
        match self.private:
            case RSAPrivateKey() as private:
                key = RSAAlgorithm.to_jwk(private.public_key(), as_dict=True)
            case EllipticCurvePrivateKey() as private:
                key = ECAlgorithm.to_jwk(private.public_key(), as_dict=True)
            case private:
                key = OKPAlgorithm.to_jwk(private.public_key(), as_dict=True)
        members = {name: value for name, value in key.items() if name != "key_ops"}
        return {**members, "kid": self.kid, "use": "sig", "alg": self.algorithm}

    @property
    def pem(self) -> bytes:
        """The private half, as unencrypted PKCS #8."""
        return self.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def sign(self, claims: Mapping[str, Any], *, typ: str = "JWT") -> str:
        """Return a compact JWS of claims; `typ` is the `typ` of its header (RFC 8725 §3.11)."""
        return self.sign_bytes(msgspec.json.encode(claims), typ=typ)

    def sign_bytes(self, payload: bytes, *, typ: str, **header: str) -> str:
        """Return a compact JWS of any payload; `header` are further members of its header."""
        head = _header(alg=self.algorithm, kid=self.kid, typ=typ, **header)
        signed = head + b"." + base64url_encode(payload)
        signature = jwt.get_algorithm_by_name(self.algorithm).sign(signed, self.private)
        return (signed + b"." + base64url_encode(signature)).decode()


def new_key(algorithm: str) -> SigningKey:
    """Return a new key for one of ALGORITHMS. An RSA key takes about 60 ms, without the GIL."""
    private: PrivateKey
    match algorithm:
        case "RS256":
            private = generate_private_key(public_exponent=65537, key_size=RSA_BITS)
        case "ES256":
            private = generate_on_curve(SECP256R1())
        case "EdDSA":
            private = Ed25519PrivateKey.generate()
        case _:
            raise UnusableKey(f"{algorithm} is not one of {', '.join(ALGORITHMS)}.")
    return _named(private, algorithm)


def read_key(pem: bytes) -> SigningKey:
    """Return the key in a PEM text. Raises ValueError for a bad text, UnusableKey for its key."""
    private = load_pem_private_key(pem, password=None)
    match private:
        case RSAPrivateKey():
            if private.key_size < RSA_BITS:
                raise UnusableKey(f"The key has fewer than {RSA_BITS} bits.")
            return _named(private, "RS256")
        case Ed25519PrivateKey():
            return _named(private, "EdDSA")
        case EllipticCurvePrivateKey() if isinstance(private.curve, SECP256R1):
            return _named(private, "ES256")
        case _:
            raise UnusableKey("The key must be RSA, Ed25519 or P-256.")


@lru_cache(maxsize=256)
def _header(**members: str) -> bytes:
    """Return the first part of a compact JWS."""
    return base64url_encode(msgspec.json.encode(members))


def _named(private: PrivateKey, algorithm: str) -> SigningKey:
    public = private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return SigningKey(hashlib.sha256(public).hexdigest()[:16], algorithm, private)
