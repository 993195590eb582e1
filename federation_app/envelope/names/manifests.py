"""Manifests and hubs (envelope §8, schema A.3): signed descriptions of agents and servers."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar

import msgspec

from federation_app.envelope.errors import malformed, unauthenticated
from federation_app.envelope.limits import DOCUMENT_BYTES, HUB_BYTES, URI_CHARS, load
from federation_app.envelope.signatures.canonical import canonical
from federation_app.envelope.signatures.jws import read_compact, sign_compact, verified_by
from federation_app.envelope.signatures.keys import decode64

if TYPE_CHECKING:
    from collections.abc import Iterable

    from federation_app.envelope.signatures.keys import EnvelopeSigner, VerificationKey

MANIFEST_TYPE: Final = "manifest+jws"
MANIFEST_MEDIA_TYPE: Final = "application/manifest+jws"
HUB_TYPE: Final = "hub+jws"
HUB_MEDIA_TYPE: Final = "application/hub+jws"
MAX_CHILDREN: Final = 256
"""The limit of a hub's child manifests, and of its trust anchors."""
_Document = TypeVar("_Document")
_Word = Annotated[str, msgspec.Meta(min_length=1, max_length=127)]
_Number = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
_Url = Annotated[str, msgspec.Meta(pattern="^https://", max_length=URI_CHARS)]
_Did = Annotated[str, msgspec.Meta(pattern="^did:web:", max_length=URI_CHARS)]
_Time = Annotated[datetime, msgspec.Meta(tz=True)]


class ManifestLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of an agent: the size of a body in KiB, and envelopes per hour."""

    max_body_kb: _Number | msgspec.UnsetType = msgspec.UNSET
    rate_lph: _Number | msgspec.UnsetType = msgspec.UNSET


class AgentManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The manifest of schema A.3. `agent` is the version of the protocol, not a name."""

    agent: Annotated[str, msgspec.Meta(pattern=r"^uamp/1\.[0-9]{1,4}\Z")]
    description: Annotated[str, msgspec.Meta(max_length=4096)]
    intents: Annotated[list[_Word], msgspec.Meta(max_length=64)]
    body_types: Annotated[list[_Word], msgspec.Meta(max_length=64)]
    auth: Annotated[list[Literal["oauth2", "mtls"]], msgspec.Meta(max_length=2)]
    limits: ManifestLimits


class ChildManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A manifest that a hub lists; `sha256` is the digest of its JWS payload."""

    did: _Did
    url: _Url
    sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]


class AgentHub(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A hub (envelope §8): its manifests, its keys, and the names that it trusts.

    The specification gives the hub no schema, and so no lifetime. `issued_at` and `expires_at` are
    optional; they keep an old list from being passed off as the current one.
    """

    hub: Annotated[str, msgspec.Meta(pattern=r"^uamp/1\.[0-9]{1,4}\Z")]
    issuer: _Did
    manifests: Annotated[list[ChildManifest], msgspec.Meta(max_length=MAX_CHILDREN)]
    jwks: dict[str, list[dict[str, Any]]]
    trust_anchors: Annotated[list[_Did], msgspec.Meta(max_length=MAX_CHILDREN)]
    issued_at: _Time | msgspec.UnsetType = msgspec.UNSET
    expires_at: _Time | msgspec.UnsetType = msgspec.UNSET


def signed_document(document: msgspec.Struct, signer: EnvelopeSigner, *, type_: str) -> str:
    """Sign a manifest or hub as a compact JWS over its canonical form."""
    payload = canonical(msgspec.to_builtins(document))
    return sign_compact(payload, signer, type_=type_, detached=False)


def document_sha256(jws: str) -> str:
    """Return the digest of a JWS's payload; raises EnvelopeError malformed."""
    return hashlib.sha256(decode64(jws.partition(".")[2].partition(".")[0])).hexdigest()


def read_manifest(jws: str, *, did: str, keys: Iterable[VerificationKey]) -> AgentManifest:
    """Verify and return the manifest that a name signed; raises EnvelopeError.

    Only signatures with the name's own keys are accepted.
    """
    payload = _signed_payload(jws, did=did, keys=keys, type_=MANIFEST_TYPE)
    return _converted(payload, AgentManifest)


def read_hub(jws: str, *, did: str, keys: Iterable[VerificationKey]) -> AgentHub:
    """Verify and return the hub that a name signed; raises EnvelopeError."""
    hub = _converted(_signed_payload(jws, did=did, keys=keys, type_=HUB_TYPE), AgentHub)
    if hub.issuer != did:
        raise unauthenticated("The hub lists a different issuer.", detail="issuer")
    return hub


def signer_of_document(jws: str) -> str:
    """Return the name whose key a document claims to be signed with, not yet verified."""
    return kid_of_document(jws).partition("#")[0]


def kid_of_document(jws: str) -> str:
    """Return the key that a document claims to be signed with; raises EnvelopeError."""
    kid = read_compact(jws, types={MANIFEST_TYPE, HUB_TYPE}).kid
    if "#" not in kid:
        raise unauthenticated("The signature has no key id.", detail="kid")
    return kid


def _signed_payload(jws: str, *, did: str, keys: Iterable[VerificationKey], type_: str) -> bytes:
    limit = HUB_BYTES if type_ == HUB_TYPE else DOCUMENT_BYTES
    if len(jws) > limit:
        raise malformed(f"It has more than {limit} bytes.", detail="bytes")
    compact = read_compact(jws, types={type_})
    if compact.kid.partition("#")[0] != did:
        raise unauthenticated("It is signed by another name.", detail="kid")
    payload = decode64(compact.payload)
    verified_by(compact, [payload], keys)
    return payload


def _converted(payload: bytes, document: type[_Document]) -> _Document:
    try:
        return msgspec.convert(load(payload, limit=HUB_BYTES), document)
    except msgspec.ValidationError as error:
        raise malformed(f"{error}.", detail="schema") from None
