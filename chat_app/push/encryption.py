"""Encryption of messages for a browser: RFC 8291, with the content coding of RFC 8188. Pure."""

from __future__ import annotations

import os
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDH,
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

PUBLIC_KEY_BYTES: Final = 65
AUTH_BYTES: Final = 16
_RECORD_BYTES: Final = 4096
_LAST_RECORD: Final = b"\x02"


def from_base64url(text: str) -> bytes:
    """Decode base64url with or without padding; raises ValueError."""
    return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))


def to_base64url(data: bytes) -> str:
    """Encode as base64url without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def public_bytes(key: EllipticCurvePublicKey) -> bytes:
    """Return a key as an uncompressed point."""
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def public_key(data: bytes) -> EllipticCurvePublicKey:
    """Return the key of an uncompressed point on P-256; raises ValueError."""
    if len(data) != PUBLIC_KEY_BYTES:
        raise ValueError("A public key must have 65 bytes.")
    return EllipticCurvePublicKey.from_encoded_point(SECP256R1(), data)


def encrypt(
    text: bytes,
    *,
    p256dh: bytes,
    auth: bytes,
    sender: EllipticCurvePrivateKey | None = None,
    salt: bytes | None = None,
) -> bytes:
    """Encrypt a text of one record for a browser's keys.

    `sender` and `salt` are random unless given, and must never be used twice.
    """
    receiver = public_key(p256dh)
    sender = sender or generate_private_key(SECP256R1())
    salt = salt or os.urandom(16)
    own_key = public_bytes(sender.public_key())
    info = b"WebPush: info\0" + p256dh + own_key
    secret = _derived(sender.exchange(ECDH(), receiver), salt=auth, info=info, length=32)
    key = _derived(secret, salt=salt, info=b"Content-Encoding: aes128gcm\0", length=16)
    nonce = _derived(secret, salt=salt, info=b"Content-Encoding: nonce\0", length=12)
    head = salt + struct.pack("!IB", _RECORD_BYTES, len(own_key)) + own_key
    return head + AESGCM(key).encrypt(nonce, text + _LAST_RECORD, None)


def _derived(secret: bytes, *, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(secret)
