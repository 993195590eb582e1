"""A hub and its children on a server over plain HTTP, whose documents a test can change."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agents_app.outbound import guard
from agents_app.outbound.rules import Cleartext
from federation_app.envelope.names.identity import document_of, read_identity
from federation_app.envelope.names.manifests import (
    HUB_TYPE,
    MANIFEST_TYPE,
    AgentHub,
    AgentManifest,
    ChildManifest,
    ManifestLimits,
    document_sha256,
    signed_document,
)
from federation_app.envelope.signatures.canonical import canonical
from federation_app.envelope.signatures.jws import sign_compact
from federation_app.envelope.signatures.keys import EnvelopeKey
from tests.http_server import LocalServer, QuietHandler, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

HUB = "did:web:hub.example"
HUB_URL = "https://hub.example/.well-known/agent-hub.json"
MANIFEST = "/.well-known/agent-manifest.json"


@dataclass
class Name:
    """A name with its keys; the first of `keys` signs, unless `signer` is another."""

    did: str
    keys: list[EnvelopeKey] = field(default_factory=list)
    signer: EnvelopeKey | None = None
    description: str = "A worker"

    def __post_init__(self) -> None:
        self.keys = self.keys or [self.new_key(1)]

    def new_key(self, number: int) -> EnvelopeKey:
        """Return another key of the name."""
        return EnvelopeKey(f"{self.did}#{number}", Ed25519PrivateKey.generate())

    @property
    def signing(self) -> EnvelopeKey:
        """The key that signs now."""
        return self.signer or self.keys[0]

    def document(self) -> bytes:
        """Return the DID document."""
        return json.dumps(document_of(self.did, [key.public() for key in self.keys])).encode()

    def manifest(self) -> str:
        """Return the signed manifest."""
        manifest = AgentManifest(
            agent="uamp/1.0",
            description=self.description,
            intents=["ask", "inform"],
            body_types=["text/plain"],
            auth=["oauth2"],
            limits=ManifestLimits(max_body_kb=64, rate_lph=100),
        )
        return signed_document(manifest, self.signing, type_=MANIFEST_TYPE)


@dataclass
class PublishedHub:
    """A hub that lists its children; `changes` are made to its document before it is signed."""

    hub: Name = field(default_factory=lambda: Name(HUB))
    children: list[Name] = field(
        default_factory=lambda: [Name("did:web:one.example"), Name("did:web:two.example")]
    )
    issued_at: datetime | None = None
    changes: dict[str, Any] = field(default_factory=dict)
    vouched: list[EnvelopeKey] = field(default_factory=list)
    replaced: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def listed(self, child: Name) -> ChildManifest:
        """Return the entry of a child."""
        url = read_identity(child.did).manifest_url
        return ChildManifest(did=child.did, url=url, sha256=document_sha256(child.manifest()))

    def value(self, issuer: Name) -> dict[str, Any]:
        """Return the hub document of a name; only that of the hub has children."""
        is_hub = issuer is self.hub
        now = self.issued_at or datetime.now(UTC)
        document = AgentHub(
            hub="uamp/1.0",
            issuer=issuer.did,
            manifests=[self.listed(child) for child in self.children] if is_hub else [],
            jwks={"keys": [key.public().jwk() for key in (*issuer.keys, *self.vouched)]},
            trust_anchors=[issuer.did],
            issued_at=now,
            expires_at=now + timedelta(hours=2),
        )
        value: dict[str, Any] = msgspec.to_builtins(document)
        return {k: v for k, v in {**value, **self.changes}.items() if v is not None}

    def document(self, issuer: Name) -> str:
        """Return the signed hub document of a name."""
        payload = canonical(self.value(issuer))
        return sign_compact(payload, issuer.signing, type_=HUB_TYPE, detached=False)

    def answer(self, host: str, path: str) -> bytes | None:
        """Return the document of a path; None if there is none."""
        self.requests.append(f"{host}{path}")
        if f"{host}{path}" in self.replaced:
            return self.replaced[f"{host}{path}"]
        name = next((n for n in (self.hub, *self.children) if n.did == f"did:web:{host}"), None)
        if name is None:
            return None
        match path:
            case "/.well-known/did.json":
                return name.document()
            case "/.well-known/agent-manifest.json":
                return name.manifest().encode()
            case "/.well-known/agent-hub.json":
                return self.document(name).encode()
        return None


@contextmanager
def published(hub: PublishedHub, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve the documents; https://HOST/… leads to this server."""

    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 the handler's name
            _, host, path = self.path.split("/", 2)
            body = hub.answer(host, f"/{path}")
            self.send_response(200 if body is not None else 404)
            self.end_headers()
            self.wfile.write(body or b"")

    with serving(LocalServer(Handler)) as server:
        fetch = guard.fetch

        def plain(url: str, policy: Any, **kwargs: Any) -> Any:
            place = server.origin.removeprefix("http://")
            policy = replace(policy, allowed=frozenset({place}), cleartext=Cleartext.ALLOWED)
            answer = fetch(url.replace("https:/", server.origin, 1), policy, **kwargs)
            return replace(answer, url=answer.url.replace(server.origin, "https:/"))

        monkeypatch.setattr(guard, "fetch", plain)
        yield
