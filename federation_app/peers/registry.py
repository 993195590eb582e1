"""Peers as rows: found by name, added by their manifest, refreshed and revoked.

A peer trusted by its manifest has the keys of its DID document. The document is fetched again when
a signature names an unknown key, or when it is older than FRESH, but never sooner than AGAIN after
the last attempt, so unknown keys cause at most one request per minute. New keys of a peer with
signed trust also need the word of a known one.

A peer that a hub vouches for is trusted as long as the hub is, and lists it (`hubs`).
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from federation_app.envelope.errors import EnvelopeError, malformed, unauthenticated
from federation_app.envelope.limits import MAX_KEYS
from federation_app.envelope.names.identity import identity_at, read_identity
from federation_app.envelope.signatures.keys import VerificationKey, key_of_jwk
from federation_app.models import ChatFollower, Peer, PeerKey, PeerTrust
from federation_app.peers import documents
from sessions_app.access.principal import PrincipalKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.db.models import QuerySet

    from federation_app.peers.documents import PeerDocuments

logger = logging.getLogger(__name__)

FRESH: Final = timedelta(minutes=10)
STALE: Final = timedelta(hours=1)
"""How long keys stay valid while a peer's document cannot be fetched."""
AGAIN: Final = timedelta(minutes=1)
_REFUSED: Final = "An entry of a shared chat was refused with "
_BY_DOCUMENT: Final = frozenset({PeerTrust.MANIFEST, PeerTrust.SIGNED})


def find_peer(did: str) -> Peer:
    """Return a peer whose envelopes are accepted; raises EnvelopeError unauthenticated.

    Unknown, suspended and revoked names, and those of deactivated accounts, are refused alike.
    """
    peer = _accepted_peers().select_related("user").filter(did=did).first()
    if peer is None:
        raise unauthenticated("The sender is not a peer of this server.", detail="peer")
    return peer


def keys_of_name(did: str, kid: str) -> list[VerificationKey]:
    """Return the keys of a name that a peer vouches for, as `stored_keys` does.

    Raises EnvelopeError unauthenticated if no peer does, and KeysDue. The name is a peer itself, or
    lies below its host's name, which is a peer: the owner of a host controls the documents of all
    names below it. In that case the keys of the host are returned under the name.
    """
    if Peer.objects.filter(did=did).exists():
        return stored_keys(find_peer(did), kid)
    host = find_peer(identity_at(read_identity(did).authority).did)
    fragment = kid.partition("#")[2]
    keys = stored_keys(host, f"{host.did}#{fragment}" if fragment else "")
    return [key_of_jwk(key.jwk(), kid=f"{did}#{key.kid.partition('#')[2]}") for key in keys]


def accepted(peer_ids: Collection[int]) -> set[int]:
    """Return the peers that are still accepted: trusted, and their account, if any, is active."""
    return set(_accepted_peers().filter(pk__in=peer_ids).values_list("pk", flat=True))


def ended_credentials(credentials: set[str]) -> set[str]:
    """Return the given credentials of peers (`PrincipalKind.PEER`) that are no longer accepted."""
    by_id = {
        int(credential.removeprefix(PrincipalKind.PEER.prefix)): credential
        for credential in credentials
    }
    kept = accepted(by_id)
    return {credential for pk, credential in by_id.items() if pk not in kept}


def trusted_peers() -> QuerySet[Peer]:
    """Return the peers that are neither suspended nor revoked, and whose hub, if any, is neither.

    That hub must list them in a document that has not expired.
    """
    anchored = Q(
        unlisted_at__isnull=True,
        anchor__revoked_at__isnull=True,
        anchor__suspended_at__isnull=True,
        anchor__hub_expires_at__gt=timezone.now(),
    )
    return Peer.objects.filter(
        Q(anchor__isnull=True) | anchored, revoked_at__isnull=True, suspended_at__isnull=True
    )


def _accepted_peers() -> QuerySet[Peer]:
    """Return the trusted peers that act for no account, or for an active one."""
    return trusted_peers().filter(Q(user=None) | Q(user__is_active=True))


def is_member(peer: Peer) -> bool:
    """Return whether envelopes of a peer are passed on to other members of this server's hub."""
    return _members().filter(pk=peer.pk).exists()


def member_of(did: str) -> Peer | None:
    """Return the member with this name, or the one that hosts it; None if there is neither.

    A name that is a peer of its own is no longer its host's.
    """
    peer = Peer.objects.filter(did=did).first()
    if peer is None:
        try:
            did = read_identity(did).host_did
        except EnvelopeError:
            return None
    return _members().filter(did=did).first()


def route_of(peer: Peer, to: Sequence[str]) -> Peer | None:
    """Return the member to which an envelope of a peer is passed on; None if it is not.

    It has one receiver, which is not on the sender's own server.
    """
    if len(to) != 1 or not is_member(peer):
        return None
    member = member_of(to[0])
    return None if member is None or member.pk == peer.pk else member


def routes_of(peer: Peer, to: Sequence[str]) -> list[tuple[Peer | None, tuple[str, ...]]]:
    """Return the members to which an envelope of a peer with several receivers is passed on.

    Each is there once, with those of the receivers that are its own; None is for those that are at
    no other member. Empty if none is at one, or if the envelope has one receiver.
    """
    if len(to) < 2 or not is_member(peer):  # noqa: PLR2004 several
        return []
    routes: dict[int, tuple[Peer | None, tuple[str, ...]]] = {}
    for did in dict.fromkeys(to):
        member = member_of(did)
        if member is not None and member.pk == peer.pk:
            member = None
        key = 0 if member is None else member.pk
        routes[key] = member, (*routes.get(key, (None, ()))[1], did)
    return list(routes.values()) if any(key for key in routes) else []


def _members() -> QuerySet[Peer]:
    return trusted_peers().filter(Q(is_relayed=True) | Q(anchor__is_relayed=True))


class KeysDue(Exception):
    """The keys of a peer have to be fetched first: see `reading.with_keys`.

    The caller whose `claim` succeeds fetches them for all. `known_keys` are the stored ones.
    """

    def __init__(self, peer: Peer, known_keys: list[VerificationKey]) -> None:
        super().__init__(peer.did)
        self.peer, self.known_keys = peer, known_keys


def stored_keys(peer: Peer, kid: str) -> list[VerificationKey]:
    """Return the keys of a peer that may verify a signature with this `kid`, or with none.

    Fetches nothing. Raises KeysDue if the peer's document should be read first, and EnvelopeError
    if it has been unavailable for too long.
    """
    known_keys = _known_keys(peer)
    if peer.trust not in _BY_DOCUMENT:
        return known_keys
    now = timezone.now()
    checked_at = peer.checked_at
    is_old = checked_at is None or now - checked_at > FRESH
    is_unknown = bool(kid) and kid not in {key.kid for key in known_keys}
    may_fetch = checked_at is None or now - checked_at > AGAIN
    if (is_old or is_unknown) and may_fetch:
        raise KeysDue(peer, known_keys)
    if peer.failing_since is not None and peer.failing_since < now - STALE:
        raise unauthenticated("The peer's DID document could not be read.", detail="did_document")
    return known_keys


def keys_of(peer: Peer, kid: str) -> list[VerificationKey]:
    """Return the same as `stored_keys`, after fetching the peer's documents if they are due.

    Only for threads that may wait for other servers. Raises EnvelopeError.
    """
    try:
        return stored_keys(peer, kid)
    except KeysDue as due:
        if claim(due):
            store_keys(due, fetch_keys(due))
    return stored_keys(peer, kid)


def claim(due: KeysDue) -> bool:
    """Return whether the caller should fetch the keys that are due: one of all processes does.

    It has to, whatever happens to the request that needs them: they count as fresh from now on.
    """
    peer, now = due.peer, timezone.now()
    rows = Peer.objects.filter(pk=peer.pk)
    unclaimed = rows.filter(Q(checked_at__isnull=True) | Q(checked_at__lt=now - AGAIN))
    peer.checked_at = now
    return bool(unclaimed.update(checked_at=now))


def fetch_keys(due: KeysDue) -> tuple[VerificationKey, ...] | EnvelopeError:
    """Fetch the keys that are due, or return the error; without the database."""
    try:
        return _current_keys(due.peer, due.known_keys)
    except EnvelopeError as error:
        return error


def store_keys(due: KeysDue, fetched: tuple[VerificationKey, ...] | EnvelopeError) -> None:
    """Store the keys that were fetched for a peer, or that this failed."""
    if isinstance(fetched, EnvelopeError):
        logger.warning("the keys of %s were not read: %s", due.peer.did, fetched)
        _note_failure(due.peer, fetched, timezone.now())
    else:
        _keep_keys(due.peer, fetched, timezone.now())


def _current_keys(peer: Peer, known_keys: list[VerificationKey]) -> tuple[VerificationKey, ...]:
    """Fetch the keys of a peer now; raises EnvelopeError."""
    identity, base = read_identity(peer.did), peer.documents_address
    if peer.trust == PeerTrust.SIGNED:
        return documents.read_signed_keys(identity, known_keys, base=base)
    return documents.read_keys(identity, base=base)


def add_peer(
    peer_documents: PeerDocuments,
    *,
    trust: PeerTrust,
    user: User | None,
    name: str = "",
    anchor: Peer | None = None,
) -> Peer:
    """Add the peer of these documents with its keys, or refresh a known one.

    `anchor` is the hub that vouches for it; without one, an operator does.
    """
    values = {
        "trust": trust,
        "user": user,
        "name": name or peer_documents.identity.authority,
        "revoked_at": None,
        "anchor": anchor,
        "unlisted_at": None,
        "documents_address": peer_documents.base,
    }
    if peer_documents.base:
        values["address"] = peer_documents.base
    with transaction.atomic():
        peer, _ = Peer.objects.update_or_create(did=peer_documents.identity.did, defaults=values)
        _keep(peer, peer_documents)
    return peer


def enter_peer(did: str, jwks: object, *, user: User | None, name: str = "") -> Peer:
    """Add a peer whose keys an operator supplies; nothing is fetched, now or later.

    A key without `kid` is numbered by its position. Raises EnvelopeError for an invalid name or
    key.
    """
    identity = read_identity(did)
    listed = jwks.get("keys") if isinstance(jwks, dict) else None
    if not isinstance(listed, list) or not 0 < len(listed) <= MAX_KEYS:
        raise malformed(f'Send {{"keys": […]}} with 1 to {MAX_KEYS} keys.', detail="jwks")
    keys = []
    for place, jwk in enumerate(listed, 1):
        if not isinstance(jwk, dict):
            raise malformed("Each key must be a JSON object.", detail="jwks")
        kid = str(jwk.get("kid") or place)
        keys.append(key_of_jwk(jwk, kid=kid if kid.startswith(f"{did}#") else f"{did}#{kid}"))
    with transaction.atomic():
        peer, _ = Peer.objects.update_or_create(
            did=did,
            defaults={
                "trust": PeerTrust.OPERATOR,
                "user": user,
                "name": name or identity.authority,
                "revoked_at": None,
                "anchor": None,
                "unlisted_at": None,
            },
        )
        _keep_keys(peer, keys, timezone.now())
    return peer


def refresh(peer: Peer) -> int:
    """Fetch the documents of a peer again, and return how many keys it has.

    A pinned peer also gets the new keys, because an operator requested it. Raises EnvelopeError.
    """
    peer_documents = documents.read_documents(peer.did, base=peer.documents_address)
    with transaction.atomic():
        _keep(peer, peer_documents)
    return len(_known_keys(peer))


def suspend(peer: Peer) -> bool:
    """Stop accepting a peer's signatures until it is resumed; return False if it was suspended."""
    changed = Peer.objects.filter(pk=peer.pk, suspended_at__isnull=True)
    return bool(changed.update(suspended_at=timezone.now()))


def resume(peer: Peer) -> bool:
    """Accept the signatures of a suspended peer again; return False if it was not suspended."""
    return bool(
        Peer.objects.filter(pk=peer.pk, suspended_at__isnull=False).update(suspended_at=None)
    )


def revoke(peer: Peer) -> bool:
    """Stop accepting a peer's signatures; return False if it was already revoked."""
    changed = Peer.objects.filter(pk=peer.pk, revoked_at__isnull=True)
    return bool(changed.update(revoked_at=timezone.now()))


def revoke_key(key: PeerKey) -> bool:
    """Stop accepting a key's signatures, even if the peer publishes it again."""
    changed = PeerKey.objects.filter(pk=key.pk, revoked_at__isnull=True)
    return bool(changed.update(revoked_at=timezone.now()))


def _known_keys(peer: Peer) -> list[VerificationKey]:
    rows = PeerKey.objects.filter(
        peer=peer, revoked_at__isnull=True, retired_at__isnull=True
    ).order_by("-created_at", "-id")
    return [key_of_jwk(row.jwk, kid=row.kid) for row in rows]


def _keep(peer: Peer, peer_documents: PeerDocuments) -> None:
    peer.manifest, peer.manifest_sha256 = (
        peer_documents.manifest_value,
        peer_documents.manifest_sha256,
    )
    peer.documents_read_at = timezone.now()
    peer.save(update_fields=["manifest", "manifest_sha256", "documents_read_at"])
    _keep_keys(peer, peer_documents.keys, timezone.now())


def _keep_keys(peer: Peer, keys: Iterable[VerificationKey], now: datetime) -> None:
    """Store the keys of a document: add new ones, and retire those that it no longer lists."""
    current = {key.kid: key for key in keys}
    with transaction.atomic():
        Peer.objects.select_for_update(no_key=True).get(pk=peer.pk)
        for kid, key in current.items():
            row, created = PeerKey.objects.get_or_create(
                peer=peer, kid=kid, defaults={"algorithm": key.algorithm, "jwk": key.jwk()}
            )
            if not created and row.jwk != key.jwk():
                # Reusing a known id for another key is not a rotation, so the id loses its trust.
                PeerKey.objects.filter(pk=row.pk).update(revoked_at=now)
            elif not created and row.retired_at is not None:
                PeerKey.objects.filter(pk=row.pk).update(retired_at=None)
        gone = PeerKey.objects.filter(peer=peer, retired_at__isnull=True).exclude(kid__in=current)
        gone.update(retired_at=now)
        peer.checked_at, peer.failing_since = now, None
        peer.save(update_fields=["checked_at", "failing_since"])
        clear_document_problem(peer.pk)


def note_refused_entry(peer_id: int, status: int) -> None:
    """Show an operator that a peer refused an entry of a chat, unless it has another problem."""
    peers = Peer.objects.filter(Q(problem="") | Q(problem__startswith=_REFUSED), pk=peer_id)
    peers.update(problem=f"{_REFUSED}{status}.")


def clear_document_problem(peer_id: int) -> None:
    """Show a problem with a peer's documents no longer."""
    Peer.objects.filter(pk=peer_id).exclude(problem__startswith=_REFUSED).update(problem="")


def clear_refused_entry(peer_id: int) -> None:
    """Show the refusal of an entry no longer, if no chat is held for the peer."""
    held_chats = ChatFollower.objects.filter(peer=peer_id, held_until__gt=timezone.now())
    if not held_chats.exists():
        Peer.objects.filter(pk=peer_id, problem__startswith=_REFUSED).update(problem="")


def _note_failure(peer: Peer, error: EnvelopeError, now: datetime) -> None:
    peer.checked_at, peer.problem = now, error.message[:200]
    peer.failing_since = peer.failing_since or now
    peer.save(update_fields=["checked_at", "problem", "failing_since"])
