"""Identities: `did:web` names and their documents (W3C did:web, DID Core 1.0).

The document of `did:web:host` is at `https://host/.well-known/did.json`, that of
`did:web:host:agents:echo` at `https://host/agents/echo/did.json`. A port is written as `%3A8443`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from federation_app.envelope.errors import EnvelopeError, malformed, unauthenticated
from federation_app.envelope.limits import MAX_KEYS, URI_CHARS
from federation_app.envelope.signatures.keys import VerificationKey, key_of_jwk

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DID: Final = re.compile(
    rf"did:web:(?P<host>{_LABEL}(?:\.{_LABEL})*)(?:%3A(?P<port>[1-9][0-9]{{0,4}}))?"
    r"(?P<path>(?::[A-Za-z0-9._~-]+)*)",
    re.ASCII,
)
_MAX_PORT: Final = 65535


@dataclass(frozen=True, slots=True)
class WebIdentity:
    """A parsed `did:web` name."""

    did: str
    authority: str
    path: tuple[str, ...]

    @property
    def document_url(self) -> str:
        """The address of its DID document."""
        return f"https://{self.authority}/{'/'.join(self.path or ('.well-known',))}/did.json"

    @property
    def manifest_url(self) -> str:
        """The address of its manifest (envelope §8)."""
        below = "".join(f"{part}/" for part in self.path)
        return f"https://{self.authority}/{below}.well-known/agent-manifest.json"

    @property
    def hub_url(self) -> str:
        """The address of the hub document of its host (envelope §8)."""
        return f"https://{self.authority}/.well-known/agent-hub.json"

    @property
    def host_did(self) -> str:
        """The name of its host."""
        return ":".join(self.did.split(":")[:3])


def read_identity(did: str) -> WebIdentity:
    """Parse a `did:web` name; raises EnvelopeError for another method or spelling."""
    match = _DID.fullmatch(did) if len(did) <= URI_CHARS else None
    if match is None or int(match["port"] or 1) > _MAX_PORT:
        raise unauthenticated("Senders are did:web names.", detail="did")
    path = tuple(match["path"].split(":")[1:])
    if any(set(part) == {"."} for part in path):
        raise unauthenticated("The path of the name leads elsewhere.", detail="did")
    port = f":{match['port']}" if match["port"] else ""
    return WebIdentity(did, f"{match['host']}{port}", path)


def identity_at(authority: str, *path: str) -> WebIdentity:
    """Return the name of a host and port, or of a path below it; raises EnvelopeError."""
    host, _, port = authority.partition(":")
    after = f"%3A{port}" if port else ""
    return read_identity(":".join((f"did:web:{host}{after}", *path)))


def document_of(did: str, keys: Iterable[VerificationKey]) -> dict[str, Any]:
    """Return the DID document of a name, with its signing keys."""
    listed = [
        {"id": key.kid, "type": "JsonWebKey", "controller": did, "publicKeyJwk": key.jwk()}
        for key in keys
    ]
    ids = [method["id"] for method in listed]
    return {
        "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/jwk/v1"],
        "id": did,
        "verificationMethod": listed,
        "assertionMethod": ids,
        "authentication": ids,
    }


def keys_of_document(document: object, did: str) -> list[VerificationKey]:
    """Return the keys in a name's `assertionMethod`, in document order.

    Keys of unsupported types are skipped. Raises EnvelopeError for a document of another name, or
    one without a usable key.
    """
    if not isinstance(document, dict) or document.get("id") != did:
        raise unauthenticated("The document belongs to another name.", detail="did_document")
    methods = _listed(document, "verificationMethod")
    by_id = {_absolute(entry, did): entry for entry in methods if isinstance(entry, dict)}
    keys: list[VerificationKey] = []
    for entry in _listed(document, "assertionMethod"):
        method = entry if isinstance(entry, dict) else by_id.get(_reference(entry, did))
        if method is None or method.get("controller") != did:
            continue
        kid, jwk = _absolute(method, did), method.get("publicKeyJwk")
        if kid.startswith(f"{did}#") and isinstance(jwk, dict):
            try:
                keys.append(key_of_jwk(jwk, kid=kid))
            except EnvelopeError:
                continue
    if not keys:
        raise unauthenticated("The document has no usable key.", detail="did_document")
    return keys


def _listed(document: Mapping[str, Any], name: str) -> list[Any]:
    value = document.get(name, [])
    if not isinstance(value, list) or len(value) > MAX_KEYS:
        raise malformed(f"{name} must be a list of at most {MAX_KEYS} keys.")
    return value


def _absolute(method: Mapping[str, Any], did: str) -> str:
    return _reference(method.get("id"), did)


def _reference(value: object, did: str) -> str:
    if not isinstance(value, str):
        return ""
    return f"{did}{value}" if value.startswith("#") else value
