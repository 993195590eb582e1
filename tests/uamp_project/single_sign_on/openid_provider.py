"""An OpenID Connect provider on this machine, which signs in whom the test says, over real HTTP."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from tests.http_server import LocalServer, QuietHandler

CLIENT_ID, CLIENT_SECRET = "chat-server", "a secret of the client"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


class OpenIdProvider(LocalServer):
    """`claims` are added to the next ID token, `key` signs it; codes work once."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.claims: dict[str, Any] = {"sub": "17", "preferred_username": "grace"}
        self.key = KEY
        self.codes: dict[str, dict[str, str]] = {}
        self.asked: list[dict[str, str]] = []

    def authorize(self, query: dict[str, str]) -> str:
        """Return the address to which the browser goes with a code."""
        self.asked.append(query)
        code = secrets.token_urlsafe(16)
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def exchange(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """Return the tokens for a code, which PKCE and the client's secret prove."""
        authorization_request = self.codes.pop(form.get("code", ""), None)
        expected = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if authorization_request is None or authorization != f"Basic {expected}":
            return None
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (
            authorization_request["code_challenge_method"] != "S256"
            or authorization_request["code_challenge"] != challenge
        ):
            return None
        now = int(time.time())
        claims = {
            "iss": self.origin,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": authorization_request["nonce"],
            **self.claims,
        }
        token = jwt.encode(claims, self.key, algorithm="RS256", headers={"kid": "one"})
        return {"access_token": "at", "token_type": "Bearer", "id_token": token}


class _Handler(QuietHandler):
    server: OpenIdProvider

    def do_GET(self) -> None:  # noqa: N802 the interface's
        """Send the metadata, the keys, or the browser back."""
        parts = urlsplit(self.path)
        origin = self.server.origin
        if parts.path == "/authorize":
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            self.send_response(302)
            self.send_header("Location", self.server.authorize(query))
            self.end_headers()
            return
        jwk = RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
        documents: dict[str, Any] = {
            "/jwks": {"keys": [{**jwk, "kid": "one", "use": "sig"}]},
            "/.well-known/openid-configuration": {
                "issuer": origin,
                "authorization_endpoint": f"{origin}/authorize",
                "token_endpoint": f"{origin}/token",
                "jwks_uri": f"{origin}/jwks",
                "id_token_signing_alg_values_supported": ["RS256"],
            },
        }
        self._send(documents[parts.path])

    def do_POST(self) -> None:  # noqa: N802 the interface's
        """Exchange a code."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        answer = self.server.exchange(form, self.headers.get("Authorization", ""))
        self._send(answer or {"error": "invalid_grant"}, 200 if answer else 400)

    def _send(self, document: Any, status: int = 200) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
