"""A push service on this machine, which reads messages as browsers do (RFC 8291)."""

from __future__ import annotations

import json
import os
import struct
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jwt
import pytest
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

from chat_app.push.encryption import from_base64url, to_base64url
from tests.http_server import LocalServer, QuietHandler, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message as HeaderFields

    from pytest_django.fixtures import Settings


@dataclass
class PushBrowser:
    """The keys of a browser, which its push service does not know."""

    endpoint: str
    private: EllipticCurvePrivateKey = field(
        default_factory=lambda: generate_private_key(SECP256R1())
    )
    auth: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def public(self) -> bytes:
        """Return the public half."""
        return self.private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    @property
    def subscription(self) -> dict[str, str]:
        """Return the body with which the browser subscribes."""
        keys = {"p256dh": to_base64url(self.public), "auth": to_base64url(self.auth)}
        return {"endpoint": self.endpoint, **keys}

    def decrypted(self, body: bytes) -> bytes:
        """Return the text of a message."""
        salt, (size, length) = body[:16], struct.unpack("!IB", body[16:21])
        sender, record = body[21 : 21 + length], body[21 + length :]
        assert len(record) <= size
        point = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), sender)
        info = b"WebPush: info\0" + self.public + sender
        secret = _derived(self.private.exchange(ECDH(), point), self.auth, info, 32)
        key = _derived(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _derived(secret, salt, b"Content-Encoding: nonce\0", 12)
        padded = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\0")
        assert padded[-1:] == b"\x02"
        return padded[:-1]


def _derived(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(secret)


@dataclass
class PushService:
    """A service that answers with each of `statuses` in turn, then with 201."""

    origin: str = ""
    statuses: list[int] = field(default_factory=list)
    seen: list[tuple[str, HeaderFields, bytes]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def browser(self, name: str) -> PushBrowser:
        """Return a browser of this service."""
        return PushBrowser(f"{self.origin}/push/{name}")

    def received(self, browser: PushBrowser) -> list[dict[str, Any]]:
        """Return the messages that a browser received, decrypted."""
        path = browser.endpoint.removeprefix(self.origin)
        with self.lock:
            return [json.loads(browser.decrypted(b)) for at, _, b in self.seen if at == path]

    def verified(self, headers: HeaderFields, key: str) -> dict[str, Any]:
        """Return the claims of the server, which signed them with this key (RFC 8292)."""
        scheme, _, rest = headers["Authorization"].partition(" ")
        parts = dict(part.strip().split("=", 1) for part in rest.split(","))
        assert (scheme, parts["k"]) == ("vapid", key)
        point = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), from_base64url(key))
        claims: dict[str, Any] = jwt.decode(
            parts["t"], point, algorithms=["ES256"], audience=self.origin
        )
        return claims


@pytest.fixture
def push_service(settings: Settings) -> Iterator[PushService]:
    """Yield a push service, the only address that may be contacted."""
    service = PushService()

    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 part of the interface
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with service.lock:
                service.seen.append((self.path, self.headers, body))
                status = service.statuses.pop(0) if service.statuses else 201
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with serving(LocalServer(Handler)) as server:
        service.origin = server.origin
        settings.UAMP_FETCH_ALLOW_HOSTS = [server.origin.removeprefix("http://")]
        yield service
