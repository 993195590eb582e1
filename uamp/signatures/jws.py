"""Opens the server's compact JWS (RFC 7515) with JSON Web Keys (RFC 7517, RFC 8725).

The key determines the algorithm, never the token alone. A header has `alg`, `kid` and `typ`, and
nothing else: embedded keys and critical extensions are refused.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import jwt
import msgspec

ALGORITHMS: Final = ("RS256", "EdDSA", "ES256")
MAX_CHARS: Final = 8192
_MEMBERS: Final = frozenset({"alg", "kid", "typ"})
_KID_CHARS: Final = 256
_RSA_BITS: Final = 2048
_SHAPE: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")

Claims = TypeVar("Claims", bound=msgspec.Struct)


class BadSignature(ValueError):
    """The signature is of another kind or does not match; the message is for people."""


class UnknownKey(BadSignature):
    """None of the given keys has its key id."""


def open_signature(
    signature: Any, keys: Iterable[Mapping[str, Any]], *, typ: str, claims: type[Claims]
) -> tuple[Claims, Mapping[str, Any]]:
    """Verify a signature and return its claims and the key that verified it.

    Raises UnknownKey, or BadSignature for any other fault.
    """
    if not isinstance(signature, str) or len(signature) > MAX_CHARS:
        raise BadSignature("It is not a signature, or is too long.")
    if not _SHAPE.fullmatch(signature):
        raise BadSignature("It is not a compact JWS.")
    parts = signature.split(".")
    decoded_parts = [_decode(part) for part in parts]
    header = _header(decoded_parts[0], typ)
    key = _key(keys, header)
    algorithm = jwt.get_algorithm_by_name(str(header["alg"]))
    try:
        public = algorithm.from_jwk(dict(key))
    except (jwt.PyJWTError, ValueError, TypeError, KeyError) as error:
        raise BadSignature("The key cannot be used.") from error
    if getattr(public, "key_size", _RSA_BITS) < _RSA_BITS and header["alg"] == "RS256":
        raise BadSignature("The key is too weak.")
    if hasattr(public, "private_bytes"):
        raise BadSignature("The key is a private key.")
    signed = ".".join(parts[:2]).encode()
    if not algorithm.verify(signed, public, decoded_parts[2]):
        raise BadSignature("The signature does not match this text and key.")
    try:
        return msgspec.json.decode(decoded_parts[1], type=claims), key
    except msgspec.DecodeError as error:
        raise BadSignature("Its claims cannot be read.") from error


def _decode(part: str) -> bytes:
    """Decode a part, accepting only its canonical spelling."""
    try:
        raw = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except binascii.Error as error:
        raise BadSignature("A part is not in base64url.") from error
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != part:
        raise BadSignature("A part is not in base64url.")
    return raw


def _header(raw: bytes, typ: str) -> dict[str, Any]:
    try:
        header = msgspec.json.decode(raw, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise BadSignature("Its header cannot be read.") from error
    if header.keys() != _MEMBERS or header["typ"] != typ:
        raise BadSignature("Its header belongs to another kind of token.")
    if header["alg"] not in ALGORITHMS:
        raise BadSignature("Its algorithm is not supported.")
    kid = header["kid"]
    if not isinstance(kid, str) or len(kid) > _KID_CHARS:
        raise BadSignature("Its header has no valid kid.")
    return header


def _key(keys: Iterable[Mapping[str, Any]], header: Mapping[str, Any]) -> Mapping[str, Any]:
    key = next((key for key in keys if key.get("kid") == header["kid"]), None)
    if key is None:
        raise UnknownKey(f"The key {header['kid']} is not among the given keys.")
    if key.get("alg") != header["alg"] or key.get("use", "sig") != "sig":
        raise BadSignature("The key is for another algorithm or use.")
    return key
