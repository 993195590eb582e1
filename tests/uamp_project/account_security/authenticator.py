"""A software authenticator that answers the challenges of pages as a browser would."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from fido2.cose import ES256
from fido2.utils import sha256, websafe_decode, websafe_encode
from fido2.webauthn import (
    Aaguid,
    AttestationObject,
    AttestedCredentialData,
    AuthenticatorData,
    CollectedClientData,
)

ORIGIN = "http://localhost:8000"
HOST = "localhost"


def options_of(page: str) -> dict[str, Any]:
    """Return the options that a page has for its script."""
    match = re.search(r'<script type="application/json">(.*?)</script>', page)
    assert match is not None, page
    options: dict[str, Any] = json.loads(match[1])["publicKey"]
    return options


@dataclass
class Authenticator:
    """One passkey, with what a forger may change."""

    origin: str = ORIGIN
    host: str = HOST
    verifies: bool = True
    counter: int = 0
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    user_handle: str = ""

    def make(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to the options of `navigator.credentials.create`."""
        self.user_handle = options["user"]["id"]
        public = ES256.from_cryptography_key(self.key.public_key())  # type: ignore[no-untyped-call]
        credential = AttestedCredentialData.create(Aaguid.NONE, self.credential_id, public)
        data = self._data(AuthenticatorData.FLAG.AT, credential)
        attestation = AttestationObject.create("none", data, {})
        client = self._client(CollectedClientData.TYPE.CREATE, options["challenge"])
        return self._answer(
            {
                "clientDataJSON": websafe_encode(bytes(client)),
                "attestationObject": websafe_encode(bytes(attestation)),
            }
        )

    def use(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to the options of `navigator.credentials.get`."""
        data = self._data(AuthenticatorData.FLAG(0))
        client = self._client(CollectedClientData.TYPE.GET, options["challenge"])
        signature = self.key.sign(bytes(data) + sha256(bytes(client)), ec.ECDSA(SHA256()))
        return self._answer(
            {
                "clientDataJSON": websafe_encode(bytes(client)),
                "authenticatorData": websafe_encode(bytes(data)),
                "signature": websafe_encode(signature),
                "userHandle": self.user_handle,
            }
        )

    def _data(
        self, flags: AuthenticatorData.FLAG, credential: AttestedCredentialData | None = None
    ) -> AuthenticatorData:
        flags |= AuthenticatorData.FLAG.UP
        if self.verifies:
            flags |= AuthenticatorData.FLAG.UV
        host = sha256(self.host.encode())
        data: AuthenticatorData = AuthenticatorData.create(
            host, flags, self.counter, credential or b""
        )
        return data

    def _client(self, kind: CollectedClientData.TYPE, challenge: str) -> CollectedClientData:
        return CollectedClientData.create(kind, websafe_decode(challenge), self.origin)

    def _answer(self, response: dict[str, Any]) -> dict[str, Any]:
        name = websafe_encode(self.credential_id)
        return {
            "id": name,
            "rawId": name,
            "type": "public-key",
            "response": response,
            "clientExtensionResults": {},
        }
