"""The documents that this server publishes: DID documents, manifests, the hub (envelope §8).

The children of its hub are its public agents, and the peers between which it passes on envelopes.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.conf import settings
from django.utils import timezone

from agents_app import selectors as agents
from federation_app import own_names
from federation_app.edges.http import envelope_view
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.limits import ENVELOPE_BYTES
from federation_app.envelope.names.identity import document_of, read_identity
from federation_app.envelope.names.manifests import (
    HUB_MEDIA_TYPE,
    HUB_TYPE,
    MANIFEST_MEDIA_TYPE,
    MANIFEST_TYPE,
    MAX_CHILDREN,
    AgentHub,
    AgentManifest,
    ChildManifest,
    ManifestLimits,
    document_sha256,
    signed_document,
)
from federation_app.exchange.admission import GUEST_INTENTS, INTENTS
from federation_app.peers import registry
from sessions_app import database
from signing_app.cached_documents import CachedDocument, public_answer

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase

    from federation_app.envelope.names.identity import WebIdentity

VERSION: Final = "uamp/1.0"
CACHE_SECONDS: Final = 300
HUB_SECONDS: Final = 10.0
"""How long a process reuses the hub document, for which it signs a manifest per agent."""
HUB_LIFETIME: Final = timedelta(hours=25)
_PROSE: Final = ["text/plain", "text/markdown"]


@envelope_view("GET")
async def did_document(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """Return the DID document of the server or of an agent."""
    body = await database.run(_did_document, name)
    return _answer(request, msgspec.json.encode(body), "application/did+json")


@envelope_view("GET")
async def manifest(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """Return the manifest as a JWS, or as plain JSON for a client that accepts only JSON."""
    document, jws = await database.run(_manifest, name)
    return _signed(request, document, jws, MANIFEST_MEDIA_TYPE)


@envelope_view("GET")
async def hub(request: HttpRequest) -> HttpResponseBase:
    """Return the hub: its child manifests, the keys and the trusted peers."""
    # Refuse before anything is cached if the server has no name.
    own_names.own_identity()
    stored = cached_hub.fresh()
    document, jws = await database.run(cached_hub.read) if stored is None else stored
    return _signed(request, document, jws, HUB_MEDIA_TYPE)


def _did_document(agent: str) -> dict[str, Any]:
    identity = _identity(agent)
    return document_of(identity.did, own_names.own_keys(identity.did))


def _identity(agent: str) -> WebIdentity:
    identity = own_names.own_identity(agent)
    if agent and agents.get_agent(agent, viewer=None) is None:
        raise EnvelopeError(EnvelopeCode.NOT_FOUND, "There is no such agent.", detail="agent")
    return identity


def _manifest(agent: str) -> tuple[AgentManifest, str]:
    identity = _identity(agent)
    spec = agents.get_agent(agent or settings.UAMP_DEFAULT_AGENT, viewer=None)
    # Shared chats are between servers.
    intents = INTENTS if agent else (*INTENTS, *GUEST_INTENTS)
    document = AgentManifest(
        agent=VERSION,
        description="" if spec is None else spec.description[:4096],
        intents=[intent.value for intent in intents],
        body_types=_PROSE,
        auth=["oauth2", "mtls"] if settings.UAMP_CLIENT_CERTIFICATE_HEADER else ["oauth2"],
        limits=ManifestLimits(
            max_body_kb=ENVELOPE_BYTES // 1024,
            rate_lph=max(1, 60 * settings.UAMP_ENVELOPES_PER_MINUTE),
        ),
    )
    signer = own_names.document_signer(identity.did)
    return document, signed_document(document, signer, type_=MANIFEST_TYPE)


def _hub() -> tuple[AgentHub, str]:
    identity = own_names.own_identity()
    children = []
    for spec in agents.list_agents(None)[:MAX_CHILDREN]:
        try:
            child = own_names.own_identity(spec.name)
            _, jws = _manifest(spec.name)
        except EnvelopeError:
            # The agent's name cannot be part of a did:web name.
            continue
        children.append(
            ChildManifest(did=child.did, url=child.manifest_url, sha256=document_sha256(jws))
        )
    peers = registry.trusted_peers().order_by("id")
    members = peers.filter(is_relayed=True).exclude(manifest_sha256="")
    for did, sha256 in members.values_list("did", "manifest_sha256"):
        url = read_identity(did).manifest_url
        children.append(ChildManifest(did=did, url=url, sha256=sha256))
    # By the hour, so that all processes publish the same document.
    issued_at = timezone.now().replace(minute=0, second=0, microsecond=0)
    document = AgentHub(
        hub=VERSION,
        issuer=identity.did,
        manifests=children[:MAX_CHILDREN],
        jwks={"keys": [key.jwk() for key in own_names.own_keys(identity.did)]},
        trust_anchors=[identity.did, *peers.values_list("did", flat=True)[: MAX_CHILDREN - 1]],
        issued_at=issued_at,
        expires_at=issued_at + HUB_LIFETIME,
    )
    signer = own_names.document_signer(identity.did)
    return document, signed_document(document, signer, type_=HUB_TYPE)


cached_hub: Final = CachedDocument(_hub, seconds=HUB_SECONDS)


def _signed(
    request: HttpRequest, document: msgspec.Struct, jws: str, media_type: str
) -> HttpResponseBase:
    if request.get_preferred_type([media_type, "application/json"]) == "application/json":
        return _answer(request, msgspec.json.encode(document), "application/json")
    return _answer(request, jws.encode(), media_type)


def _answer(request: HttpRequest, body: bytes, media_type: str) -> HttpResponseBase:
    answer = public_answer(request, body, media_type=media_type, max_age=CACHE_SECONDS)
    answer["Vary"] = "Accept"
    return answer
