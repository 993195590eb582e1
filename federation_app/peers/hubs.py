"""Hubs (envelope §8): the peers that they vouch for, and the reading of their lists again.

A hub is a peer with its hub document. An operator who trusts its children makes them peers, whose
`anchor` is the hub. Every process looks for hubs whose document is older than FRESH; one of them
reads it. Children that it lists no longer, and all of them once it has expired, are not trusted.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import msgspec
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from federation_app.envelope.errors import EnvelopeError, malformed
from federation_app.envelope.names.identity import read_identity
from federation_app.envelope.names.manifests import AgentHub, kid_of_document, read_hub
from federation_app.envelope.names.trust import check_child, check_hub
from federation_app.models import Peer, PeerTrust
from federation_app.peers import documents, registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from django.contrib.auth.models import User

    from federation_app.envelope.names.manifests import ChildManifest
    from federation_app.peers.documents import PeerDocuments

logger = logging.getLogger(__name__)

FRESH: Final = timedelta(minutes=10)
"""After this time a hub's document is read again."""
LIFETIME: Final = timedelta(days=1)
"""How long a hub's document counts at most."""
CHILDREN_SECONDS: Final = 60.0
"""How long the manifests of children are read at a time."""


def add_hub(
    hub_documents: PeerDocuments, *, trust: PeerTrust, user: User | None, name: str = ""
) -> Peer:
    """Add the peer of these documents as a hub; raises EnvelopeError malformed for another trust.

    With any other, an attacker who takes over a hub's host could publish a key, and list peers.
    """
    if hub_documents.hub is None:
        raise malformed("The documents have no hub.", detail="hub")
    if trust not in {PeerTrust.SIGNED, PeerTrust.PINNED}:
        raise malformed("Trust in a hub must be signed or pinned.", detail="trust")
    with transaction.atomic():
        hub = registry.add_peer(hub_documents, trust=trust, user=user, name=name)
        _keep(hub, hub_documents.hub, timezone.now())
    return hub


def hub_of(peer: Peer) -> AgentHub | None:
    """Return the hub document of a peer; None if it was not added as a hub."""
    return msgspec.convert(peer.hub, AgentHub) if peer.hub else None


def read_again(hub: Peer) -> AgentHub:
    """Fetch the document of a hub and apply it to its children; raises EnvelopeError."""
    current = hub_of(hub)
    if current is None:
        raise malformed("The peer is not a hub.", detail="hub")
    now = timezone.now()
    known_from = None if current.issued_at is msgspec.UNSET else current.issued_at
    jws = documents.fetch_hub(read_identity(hub.did), base=hub.documents_address)
    keys = registry.keys_of(hub, kid_of_document(jws))
    document = read_hub(jws, did=hub.did, keys=keys)
    check_hub(document, now=now, known_from=known_from)
    with transaction.atomic():
        _keep(hub, document, now)
    return document


def trust_children(hub: Peer) -> tuple[list[str], list[str]]:
    """Make peers of the children that a hub lists; return their names, and the others' problems.

    A child that is already a peer is left alone: an operator decided about it. Raises EnvelopeError
    if the hub's document cannot be read.
    """
    document = read_again(hub)
    known_dids = set(Peer.objects.values_list("did", flat=True))
    added, problems = [], []
    ends_at = time.monotonic() + CHILDREN_SECONDS
    for child in document.manifests:
        if child.did in known_dids or child.did == hub.did:
            continue
        if time.monotonic() > ends_at:
            problems.append("There was no time for the others. Do it again.")
            break
        try:
            child_documents = _documents_of(child)
        except EnvelopeError as error:
            problems.append(f"{child.did}: {error.code.value}: {error.message}")
            continue
        registry.add_peer(child_documents, trust=PeerTrust.SIGNED, user=None, anchor=hub)
        added.append(child.did)
    return added, problems


def read_due() -> int:
    """Read the documents that are due, and return of how many peers. One process reads each.

    Those are of hubs; of members of this server's hub, which lists their manifests; and of peers
    with signed trust: a new key is published with the old one's word before it signs, so it is read
    while they send nothing, too.
    """
    count = 0
    for peer in _due():
        count += 1
        try:
            if peer.hub:
                _refresh_children(peer, read_again(peer))
            elif peer.is_relayed:
                _refresh_manifest(peer)
            else:
                registry.keys_of(peer, "")
        except EnvelopeError as error:
            logger.warning("the documents of %s were not read: %s", peer.did, error)
            Peer.objects.filter(pk=peer.pk).update(problem=error.message[:200])
    return count


def _due() -> Iterator[Peer]:
    now = timezone.now()
    due = Q(documents_read_at__isnull=True) | Q(documents_read_at__lt=now - FRESH)
    concerned = ~Q(hub={}) | Q(is_relayed=True) | Q(trust=PeerTrust.SIGNED)
    # Nothing is fetched of a peer whose keys an operator entered.
    peers = registry.trusted_peers().exclude(trust=PeerTrust.OPERATOR)
    for peer in peers.filter(due, concerned):
        if Peer.objects.filter(due, pk=peer.pk).update(documents_read_at=now):
            yield peer


def _documents_of(child: ChildManifest) -> PeerDocuments:
    """Fetch the documents of a child; raises EnvelopeError if they are not what its hub lists."""
    peer_documents = documents.read_documents(child.did)
    check_child(child, peer_documents.identity, peer_documents.manifest_sha256)
    return peer_documents


def _refresh_children(hub: Peer, document: AgentHub) -> None:
    """Read the manifests again that have changed according to the hub."""
    listed = {child.did: child for child in document.manifests}
    ends_at = time.monotonic() + CHILDREN_SECONDS
    for peer in hub.children.filter(unlisted_at__isnull=True, did__in=listed):
        child = listed[peer.did]
        if peer.manifest_sha256 == child.sha256 or time.monotonic() > ends_at:
            continue
        try:
            _refresh_manifest(peer, child)
        except EnvelopeError as error:
            Peer.objects.filter(pk=peer.pk).update(problem=error.message[:200])


def _refresh_manifest(peer: Peer, child: ChildManifest | None = None) -> None:
    """Read a manifest again, signed with a known key; raises EnvelopeError.

    That of a child has to be the one that its hub lists.
    """
    identity, keys = read_identity(peer.did), registry.keys_of(peer, "")
    manifest, sha256 = documents.read_manifest_of(identity, keys, base=peer.documents_address)
    if child is not None:
        check_child(child, identity, sha256)
    values = {"manifest": msgspec.to_builtins(manifest), "manifest_sha256": sha256}
    Peer.objects.filter(pk=peer.pk).update(**values)
    registry.clear_document_problem(peer.pk)


def _keep(hub: Peer, document: AgentHub, now: datetime) -> None:
    """Store a hub's document; mark the children that it no longer lists, and those that it does."""
    expires = now + LIFETIME
    if document.expires_at is not msgspec.UNSET:
        expires = min(expires, document.expires_at)
    hub.hub, hub.documents_read_at, hub.hub_expires_at = msgspec.to_builtins(document), now, expires
    hub.save(update_fields=["hub", "documents_read_at", "hub_expires_at"])
    listed = [child.did for child in document.manifests]
    children = Peer.objects.filter(anchor=hub)
    children.filter(unlisted_at__isnull=True).exclude(did__in=listed).update(unlisted_at=now)
    children.filter(unlisted_at__isnull=False, did__in=listed).update(unlisted_at=None)
