"""The DID document and the manifest of a peer, fetched through the outbound guard."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec

from agents_app.outbound import guard
from agents_app.outbound.rules import current_policy
from federation_app.envelope import limits
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, unauthenticated
from federation_app.envelope.names.identity import WebIdentity, keys_of_document, read_identity
from federation_app.envelope.names.manifests import (
    MANIFEST_MEDIA_TYPE,
    AgentManifest,
    document_sha256,
    read_manifest,
    signer_of_document,
)

if TYPE_CHECKING:
    from federation_app.envelope.signatures.keys import VerificationKey

FETCH_SECONDS: Final = 5.0
_OK: Final = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerDocuments:
    """The documents of a name, which agree with each other."""

    identity: WebIdentity
    keys: tuple[VerificationKey, ...]
    manifest: AgentManifest
    manifest_sha256: str

    @property
    def sha256(self) -> str:
        """The digest of the keys and the manifest, which changes with either of them."""
        shown = [self.manifest_sha256, *(key.jwk() for key in self.keys)]
        return hashlib.sha256(msgspec.json.encode(shown)).hexdigest()

    @property
    def manifest_value(self) -> dict[str, object]:
        """The manifest as plain JSON values."""
        value: dict[str, object] = msgspec.to_builtins(self.manifest)
        return value


def read_keys(identity: WebIdentity) -> tuple[VerificationKey, ...]:
    """Fetch the keys in a name's DID document; raises EnvelopeError."""
    raw = _fetched(identity.document_url, "application/did+json, application/json")
    document = limits.load(raw, most=limits.DOCUMENT_BYTES)
    return tuple(keys_of_document(document, identity.did))


def read_documents(did: str) -> PeerDocuments:
    """Fetch the documents of a name; raises EnvelopeError if one is missing or invalid."""
    identity = read_identity(did)
    keys = read_keys(identity)
    jws = _fetched(identity.manifest_url, MANIFEST_MEDIA_TYPE).decode("ascii", "replace").strip()
    manifest = read_manifest(jws, did=did, keys=keys)
    return PeerDocuments(
        identity=identity,
        keys=keys,
        manifest=manifest,
        manifest_sha256=document_sha256(jws),
    )


def documents_at(manifest_url: str) -> PeerDocuments:
    """Fetch the documents of the name that signed the manifest at an address.

    That address must be the one of the name's own manifest. Raises EnvelopeError.
    """
    jws = _fetched(manifest_url, MANIFEST_MEDIA_TYPE).decode("ascii", "replace").strip()
    identity = read_identity(signer_of_document(jws))
    if identity.manifest_url != manifest_url:
        raise unauthenticated(
            "The manifest is signed by a name whose manifest is elsewhere.", detail="manifest"
        )
    return read_documents(identity.did)


def _fetched(url: str, accept: str) -> bytes:
    policy = replace(current_policy(), seconds=FETCH_SECONDS, max_bytes=limits.DOCUMENT_BYTES)
    try:
        answer = guard.fetch(url, policy, headers={"Accept": accept})
    except guard.TooLarge:
        raise EnvelopeError(
            EnvelopeCode.TOO_LARGE, "A document of the peer is too large.", detail="document"
        ) from None
    except guard.Unreachable:
        raise unauthenticated(
            "A document of the peer cannot be reached.", detail="document"
        ) from None
    if answer.status != _OK or answer.url != url:
        raise unauthenticated("The peer has no such document.", detail="document")
    return answer.data
