"""The keys with which this server signs payment tokens, and their public halves (RFC 7517).

A key has one algorithm, RS256 for RSA and EdDSA for Ed25519. The first key signs, all of
them verify: rotation is a new key in front, and the old one goes when its tokens have expired.
UAMP_SIGNING_KEYS names PEM files; without it a key is made in DATA_DIR/signing_keys on first use,
where of several the one whose name sorts last signs.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from django.conf import settings
from jwt.algorithms import OKPAlgorithm, RSAAlgorithm

PrivateKey: TypeAlias = RSAPrivateKey | Ed25519PrivateKey

RSA_BITS: Final = 2048


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key; `kid` is the beginning of its public half's hash."""

    kid: str
    algorithm: str
    private: PrivateKey

    @property
    def jwk(self) -> dict[str, Any]:
        """The public half, as a JSON Web Key."""
        key: dict[str, Any] = (
            RSAAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
            if isinstance(self.private, RSAPrivateKey)
            else OKPAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        )
        members = {name: value for name, value in key.items() if name != "key_ops"}
        return {**members, "kid": self.kid, "use": "sig", "alg": self.algorithm}


def signing_keys() -> tuple[SigningKey, ...]:
    """Return the keys, the one that signs first. Raises OSError and ValueError for a bad file."""
    paths = [Path(path) for path in settings.UAMP_SIGNING_KEYS]
    if not paths:
        folder = Path(settings.DATA_DIR) / "signing_keys"
        paths = sorted(folder.glob("*.pem"), reverse=True) or [_first_key(folder)]
    # A file that changed is read anew: a rotation needs no restart.
    return _load(tuple((str(path), path.stat().st_mtime_ns) for path in paths))


def key_of(kid: str) -> SigningKey | None:
    """Return the key of an id, or None."""
    return next((key for key in signing_keys() if key.kid == kid), None)


def jwks() -> dict[str, list[dict[str, Any]]]:
    """Return the public halves, as /.well-known/jwks.json shows them."""
    return {"keys": [key.jwk for key in signing_keys()]}


@lru_cache(maxsize=4)
def _load(files: tuple[tuple[str, int], ...]) -> tuple[SigningKey, ...]:
    return tuple(_read(Path(path)) for path, _ in files)


def _read(path: Path) -> SigningKey:
    private = load_pem_private_key(path.read_bytes(), password=None)
    match private:
        case RSAPrivateKey():
            algorithm = "RS256"
            if private.key_size < RSA_BITS:
                raise ValueError(f"{path} has fewer than {RSA_BITS} bits.")
        case Ed25519PrivateKey():
            algorithm = "EdDSA"
        case _:
            raise ValueError(f"{path} is neither an RSA nor an Ed25519 key.")
    public = private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return SigningKey(hashlib.sha256(public).hexdigest()[:16], algorithm, private)


def _first_key(folder: Path) -> Path:
    """Make the first key. Written aside and linked: two processes agree on one."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{datetime.now(UTC):%Y}-first.pem"
    draft = folder / f"draft.{os.getpid()}"
    draft.touch(mode=0o600)
    key = generate_private_key(public_exponent=65537, key_size=RSA_BITS)
    draft.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path
