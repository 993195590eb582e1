"""The public keys of issuers (RFC 7517), fetched through the outbound request guard and cached.

Tokens with unknown key ids trigger at most one fetch a minute. Cached keys stay valid for
KEPT_SECONDS while an issuer is unreachable. Thread-safe.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

import uamp
from agents_app.outbound import guard
from agents_app.outbound.rules import current_policy

if TYPE_CHECKING:
    from sessions_app.bearer_tokens.issuers import Issuer

logger = logging.getLogger(__name__)

FRESH_SECONDS: Final = 3600.0
KEPT_SECONDS: Final = 86_400.0
AGAIN_SECONDS: Final = 60.0
"""The minimum interval between requests to an issuer, whatever it replied."""
FETCH_SECONDS: Final = 5.0
SET_BYTES: Final = 64 * 1024
MAX_KEYS: Final = 100
RSA_BITS: Final = 2048


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicKey:
    """A key with the only algorithm that its type allows."""

    algorithm: str
    key: Any


@dataclass(kw_only=True)
class _KeySet:
    """The keys of one issuer; the thread that fetches them holds `lock`."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    keys: dict[str, PublicKey] = field(default_factory=dict)
    read_at: float = -KEPT_SECONDS
    asked_at: float = -AGAIN_SECONDS


_sets: Final[dict[str, _KeySet]] = {}
_sets_lock: Final = threading.Lock()


def key_of(issuer: Issuer, kid: str) -> PublicKey | None:
    """Return an issuer's key by id; None if it has no such key or cannot be reached."""
    with _sets_lock:
        key_set = _sets.setdefault(issuer.jwks_url, _KeySet())
    now = time.monotonic()
    if kid not in key_set.keys or now - key_set.read_at > FRESH_SECONDS:
        _refresh(issuer, key_set)
    if time.monotonic() - key_set.read_at > KEPT_SECONDS:
        return None
    return key_set.keys.get(kid)


def forget() -> None:
    """Forget all keys (between tests)."""
    with _sets_lock:
        _sets.clear()


def _refresh(issuer: Issuer, key_set: _KeySet) -> None:
    # With cached keys, one thread fetches while the others use the cache. Without any, they wait
    # for the first fetch.
    if not key_set.lock.acquire(
        blocking=not key_set.keys, timeout=-1 if key_set.keys else FETCH_SECONDS
    ):
        return
    try:
        now = time.monotonic()
        if now - key_set.asked_at < AGAIN_SECONDS:
            return
        key_set.asked_at = now
        keys = _read(issuer)
        if keys is not None:
            key_set.keys, key_set.read_at = keys, time.monotonic()
    finally:
        key_set.lock.release()


def _read(issuer: Issuer) -> dict[str, PublicKey] | None:
    policy = replace(current_policy(), seconds=FETCH_SECONDS, max_bytes=SET_BYTES)
    try:
        answer = guard.fetch(issuer.jwks_url, policy, headers={"Accept": "application/json"})
        body = uamp.load_json(answer.data, exact=True)
    except (guard.Unreachable, guard.TooLarge, uamp.RemoteProtocolError) as error:
        logger.warning("the keys of %s were not read: %s", issuer.issuer, error)
        return None
    listed = body.get("keys") if isinstance(body, dict) else None
    if answer.status != 200 or not isinstance(listed, list):  # noqa: PLR2004 an HTTP status is clearer as a number
        logger.warning("%s returned status %s instead of a key set", issuer.jwks_url, answer.status)
        return None
    keys: dict[str, PublicKey] = {}
    for jwk in listed[:MAX_KEYS]:
        kid = jwk.get("kid") if isinstance(jwk, dict) else None
        key = _public_key(jwk) if isinstance(kid, str) and kid else None
        if isinstance(kid, str) and key is not None:
            keys[kid] = key
    return keys


def _public_key(jwk: dict[str, Any]) -> PublicKey | None:
    """Return a sufficiently strong signature key, or None."""
    if jwk.get("use", "sig") != "sig" or "d" in jwk or jwk.get("kty") == "oct":
        return None
    try:
        key = jwt.PyJWK(jwk, algorithm=_algorithm_of(jwk)).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    match key:
        case RSAPublicKey() if key.key_size >= RSA_BITS:
            algorithm = "RS256"
        case EllipticCurvePublicKey() if isinstance(key.curve, SECP256R1):
            algorithm = "ES256"
        case Ed25519PublicKey():
            algorithm = "EdDSA"
        case _:
            return None
    if jwk.get("alg", algorithm) != algorithm:
        return None
    return PublicKey(algorithm=algorithm, key=key)


def _algorithm_of(jwk: dict[str, Any]) -> str:
    return {"RSA": "RS256", "EC": "ES256", "OKP": "EdDSA"}[str(jwk.get("kty"))]
