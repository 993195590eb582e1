"""An issuer of tokens on this machine: its keys, its set of public keys over HTTP, its tokens."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from tests.http_server import LocalServer, QuietHandler

if TYPE_CHECKING:
    from collections.abc import Mapping

ISSUER = "https://id.example.org"
AUDIENCE = "https://chat.example.org"

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
WEAK = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505 it is refused
OTHER_CURVE = ec.generate_private_key(ec.SECP384R1())
KEYS: dict[str, tuple[str, Any]] = {
    "rsa": ("RS256", RSA),
    "ec": ("ES256", EC),
    "ed": ("EdDSA", ED),
}


def public_jwk(kid: str, key: Any, **members: str) -> dict[str, Any]:
    """Return the public half of a key as a set has it."""
    public = key.public_key()
    if isinstance(key, rsa.RSAPrivateKey):
        jwk = RSAAlgorithm.to_jwk(public, as_dict=True)
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        jwk = ECAlgorithm.to_jwk(public, as_dict=True)
    else:
        jwk = OKPAlgorithm.to_jwk(public, as_dict=True)
    return {**jwk, "kid": kid, **members}


class IssuerServer(LocalServer):
    """Serves a set of keys, and counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__(_KeysHandler)
        self.asked = 0
        self.is_broken = False
        self.keys: list[dict[str, Any]] = [
            *(public_jwk(kid, key) for kid, (_, key) in KEYS.items()),
            public_jwk("weak", WEAK),
            public_jwk("curve", OTHER_CURVE),
            public_jwk("encryption", RSA, use="enc"),
            {"kty": "oct", "kid": "shared", "k": "c2VjcmV0"},
        ]

    def settings(self, **members: Any) -> list[dict[str, Any]]:
        """Return UAMP_JWT_ISSUERS with this issuer."""
        issuer = {
            "issuer": ISSUER,
            "audience": [AUDIENCE],
            "jwks_url": f"{self.origin}/jwks",
            "creates_people": True,
        }
        return [{**issuer, **members}]


class _KeysHandler(QuietHandler):
    server: IssuerServer

    def do_GET(self) -> None:  # noqa: N802 the interface's
        """Send the set."""
        self.server.asked += 1
        if self.server.is_broken:
            self.send_error(503)
            return
        body = json.dumps({"keys": self.server.keys}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def now(offset: int) -> int:
    """Return the time so many seconds from now, as tokens have it."""
    return int(time.time()) + offset


def claims(**changes: Any) -> dict[str, Any]:
    """Return good claims with changes; one that is None is left out."""
    good = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "8f3c",
        "iat": now(0),
        "nbf": now(0),
        "exp": now(300),
        "scope": "chats:read messages:write openid",
        "preferred_username": "grace",
    }
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def signed(
    body: Mapping[str, Any] | None = None,
    *,
    kid: str = "rsa",
    key: Any = None,
    algorithm: str = "",
    **header: Any,
) -> str:
    """Return a token with these claims, signed by a key of the issuer or another one."""
    key_algorithm, private = KEYS.get(kid, ("", None))
    headers = {"kid": kid, "typ": "at+jwt", **header}
    return jwt.encode(
        dict(claims() if body is None else body),
        private if key is None else key,
        algorithm=algorithm or key_algorithm,
        headers=headers,
    )
