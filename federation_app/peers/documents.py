"""The documents that a name publishes, fetched through the outbound guard.

`base` is the address of a server that is not at https:// and its host, as an operator has entered
it; the documents still have to be those of the name.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec
from django.utils import timezone

from agents_app.outbound import guard
from agents_app.outbound.rules import Cleartext, current_policy
from agents_app.remote.addresses import policy as remote_policy
from federation_app.envelope import limits
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, unauthenticated
from federation_app.envelope.names.identity import WebIdentity, keys_of_document, read_identity
from federation_app.envelope.names.manifests import (
    HUB_MEDIA_TYPE,
    MANIFEST_MEDIA_TYPE,
    AgentHub,
    AgentManifest,
    document_sha256,
    read_hub,
    read_manifest,
    signer_of_document,
)
from federation_app.envelope.names.trust import check_hub, check_new_keys, new_keys
from federation_app.peers.connections import document_tls

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from federation_app.envelope.signatures.keys import VerificationKey

FETCH_SECONDS: Final = 5.0
_HUB_PATH: Final = "/.well-known/agent-hub.json"
_OK: Final = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerDocuments:
    """The documents of a name, which agree with each other; `hub` if it was added as a hub."""

    identity: WebIdentity
    keys: tuple[VerificationKey, ...]
    manifest: AgentManifest
    manifest_sha256: str
    hub: AgentHub | None = None
    base: str = ""

    @property
    def sha256(self) -> str:
        """The digest of all that an operator is shown, which changes with any of it."""
        # A hub may state the current time.
        hub = {k: v for k, v in self.hub_value.items() if k not in {"issued_at", "expires_at"}}
        parts = [self.manifest_sha256, hub, self.base, *(key.jwk() for key in self.keys)]
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()

    @property
    def manifest_value(self) -> dict[str, object]:
        """The manifest as plain JSON values."""
        value: dict[str, object] = msgspec.to_builtins(self.manifest)
        return value

    @property
    def manifest_limits(self) -> dict[str, object]:
        """The limits in the manifest, by their names."""
        limits: dict[str, object] = msgspec.to_builtins(self.manifest.limits)
        return limits

    @property
    def hub_value(self) -> dict[str, object]:
        """The hub as plain JSON values; empty for a peer that is not a hub."""
        value: dict[str, object] = {} if self.hub is None else msgspec.to_builtins(self.hub)
        return value


def read_keys(identity: WebIdentity, *, base: str = "") -> tuple[VerificationKey, ...]:
    """Fetch the keys in a name's DID document; raises EnvelopeError."""
    accept = "application/did+json, application/json"
    raw = _fetched(identity.document_url, accept, base=base)
    document = limits.load(raw, limit=limits.DOCUMENT_BYTES)
    return tuple(keys_of_document(document, identity.did))


def read_signed_keys(
    identity: WebIdentity, known_keys: Sequence[VerificationKey], *, base: str = ""
) -> tuple[VerificationKey, ...]:
    """Fetch the keys in a name's DID document; raises EnvelopeError.

    A known key must vouch for each new one (`names.trust`).
    """
    keys = read_keys(identity, base=base)
    if new_keys(known_keys, keys):
        word = fetch_hub(identity, base=base)
        check_new_keys(identity, known_keys, keys, word, now=timezone.now())
    return keys


def read_documents(did: str, *, base: str = "") -> PeerDocuments:
    """Fetch the documents of a name; raises EnvelopeError if one is missing or invalid."""
    identity = read_identity(did)
    keys = read_keys(identity, base=base)
    manifest, sha256 = read_manifest_of(identity, keys, base=base)
    return PeerDocuments(
        identity=identity, keys=keys, manifest=manifest, manifest_sha256=sha256, base=base
    )


def read_manifest_of(
    identity: WebIdentity, keys: Iterable[VerificationKey], *, base: str = ""
) -> tuple[AgentManifest, str]:
    """Fetch the manifest of a name, signed with one of these keys, and return it with its digest.

    Raises EnvelopeError.
    """
    jws = _jws(identity.manifest_url, MANIFEST_MEDIA_TYPE, base=base)
    return read_manifest(jws, did=identity.did, keys=keys), document_sha256(jws)


def fetch_hub(identity: WebIdentity, *, base: str = "") -> str:
    """Fetch the hub document of a name's host, not yet verified; raises EnvelopeError."""
    return _jws(identity.hub_url, HUB_MEDIA_TYPE, base=base)


def documents_at(url: str, *, base: str = "") -> PeerDocuments:
    """Fetch the documents of the name that signed the manifest or the hub at an address.

    That address must be the one of the name's own document. Raises EnvelopeError.
    """
    jws = _text(_fetched(url, f"{MANIFEST_MEDIA_TYPE}, {HUB_MEDIA_TYPE}", base=base))
    identity = read_identity(signer_of_document(jws))
    is_hub = identity.hub_url == url and not identity.path
    if not is_hub and identity.manifest_url != url:
        raise unauthenticated(
            "The signer of the manifest publishes its documents at another address.",
            detail="manifest",
        )
    documents = read_documents(identity.did, base=base)
    if not is_hub:
        return documents
    hub = read_hub(fetch_hub(identity, base=base), did=identity.did, keys=documents.keys)
    check_hub(hub, now=timezone.now())
    return replace(documents, hub=hub)


def _jws(url: str, media_type: str, *, base: str) -> str:
    return _text(_fetched(url, media_type, base=base))


def _text(raw: bytes) -> str:
    return raw.decode("ascii", "replace").strip()


def _fetched(url: str, accept: str, *, base: str) -> bytes:
    policy = (
        remote_policy(is_peer=True) if base else replace(current_policy(), cleartext=Cleartext.NONE)
    )
    limit = limits.HUB_BYTES if url.endswith(_HUB_PATH) else limits.DOCUMENT_BYTES
    place = url
    if base:
        host = "/".join(url.split("/", 3)[:3])
        place = f"{base.rstrip('/')}{url.removeprefix(host)}"
    try:
        answer = guard.fetch(
            place,
            replace(policy, seconds=FETCH_SECONDS, max_bytes=limit),
            headers={"Accept": accept},
            tls=document_tls(),
        )
    except guard.TooLarge:
        raise EnvelopeError(
            EnvelopeCode.TOO_LARGE, "One of the peer's documents is too large.", detail="document"
        ) from None
    except guard.Unreachable:
        raise unauthenticated(
            "One of the peer's documents could not be fetched.", detail="document"
        ) from None
    if answer.status != _OK or answer.url != place:
        raise unauthenticated("The peer has no such document.", detail="document")
    return answer.data
