"""Trust in hubs, their children and new keys (envelope §8). Pure: no clock, network or rows.

The rules:

1. The first hub document of a name is signed with a key in the name's DID document; an operator has
   seen it. Each later one is signed with a key that was trusted before.
2. It has not expired, and was not issued before the one that is known.
3. A child is a name that the hub lists. Its manifest is at the name's own address, has the digest
   that the hub lists, and is signed with a key in the child's DID document.
4. A new key of a name counts if `jwks` of a hub document of its host lists it, and a key that was
   trusted before has signed that document, which has not expired: the old key vouches for it. A
   DID document alone does not, since an attacker who takes over the host can change it.

A manifest (schema A.3) has no members for times, so a child is as fresh as the list that names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from federation_app.envelope.errors import EnvelopeError, unauthenticated
from federation_app.envelope.names.identity import read_identity
from federation_app.envelope.names.manifests import read_hub
from federation_app.envelope.signatures.keys import VerificationKey, key_of_jwk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from federation_app.envelope.names.identity import WebIdentity
    from federation_app.envelope.names.manifests import AgentHub, ChildManifest


def check_hub(hub: AgentHub, *, now: datetime, known_from: datetime | None = None) -> None:
    """Raise EnvelopeError unauthenticated for a hub that has expired or is older (rule 2).

    `known_from` is when the document that is known was issued.
    """
    if hub.expires_at is not msgspec.UNSET and hub.expires_at <= now:
        raise unauthenticated("The hub's document has expired.", detail="expires_at")
    if known_from is None:
        return
    if hub.issued_at is msgspec.UNSET or hub.issued_at < known_from:
        raise unauthenticated("The hub's document is older than a known one.", detail="issued_at")


def check_child(child: ChildManifest, identity: WebIdentity, manifest_sha256: str) -> None:
    """Raise EnvelopeError unauthenticated for a manifest that is not the listed one (rule 3)."""
    if child.did != identity.did or child.url != identity.manifest_url:
        raise unauthenticated("The hub lists the manifest at another address.", detail="url")
    if child.sha256 != manifest_sha256:
        raise unauthenticated("The manifest is not the one that the hub lists.", detail="sha256")


def check_new_keys(
    identity: WebIdentity,
    known_keys: Sequence[VerificationKey],
    current: Iterable[VerificationKey],
    hub_jws: str,
    *,
    now: datetime,
) -> None:
    """Raise EnvelopeError unauthenticated unless a known key vouches for each new one (rule 4).

    `hub_jws` is the hub document of the name's host; it is not read if no key is new.
    """
    strange = new_keys(known_keys, current)
    if not strange:
        return
    host = identity.host_did
    host_keys = [key_of_jwk(key.jwk(), kid=f"{host}#{_fragment(key.kid)}") for key in known_keys]
    try:
        hub = read_hub(hub_jws, did=host, keys=host_keys)
        check_hub(hub, now=now)
    except EnvelopeError as error:
        raise unauthenticated(
            f"No known key has signed for the new ones: {error.message}", detail="new_keys"
        ) from None
    vouched = {(key.kid, _material(key)) for key in keys_of_hub(hub)}
    for key in strange:
        if (f"{host}#{_fragment(key.kid)}", _material(key)) not in vouched:
            raise unauthenticated("No known key has signed for a new one.", detail="new_keys")


def new_keys(
    known_keys: Iterable[VerificationKey], current: Iterable[VerificationKey]
) -> list[VerificationKey]:
    """Return the keys of a document that are not known; a different key under a known id is new."""
    trusted = {(key.kid, _material(key)) for key in known_keys}
    return [key for key in current if (key.kid, _material(key)) not in trusted]


def keys_of_hub(hub: AgentHub) -> list[VerificationKey]:
    """Return the keys in a hub's `jwks` that are its issuer's; others are skipped."""
    keys = []
    for jwk in hub.jwks.get("keys", ()):
        kid = jwk.get("kid")
        if not isinstance(kid, str) or not kid:
            continue
        full_kid = kid if "#" in kid else f"{hub.issuer}#{kid}"
        if full_kid.partition("#")[0] != hub.issuer:
            continue
        try:
            keys.append(key_of_jwk(jwk, kid=full_kid))
        except EnvelopeError:
            continue
    return keys


def child_of(hub: AgentHub, did: str) -> ChildManifest | None:
    """Return a hub's entry of a name; None if it does not list it."""
    return next((child for child in hub.manifests if child.did == did), None)


def is_listable(child: ChildManifest) -> bool:
    """Return whether a child's name can be read, and its manifest is at the name's own address."""
    try:
        return child.url == read_identity(child.did).manifest_url
    except EnvelopeError:
        return False


def _fragment(kid: str) -> str:
    return kid.partition("#")[2]


def _material(key: VerificationKey) -> tuple[str, str]:
    jwk = key.jwk()
    return jwk["x"], jwk.get("y", "")
