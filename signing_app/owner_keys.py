"""The keys of owners: the current one, its rotation, and its withdrawal.

An owner is an agent, the receipts or shared pages (`uamp.signatures`), the logs of chats (LOG),
the tree of their heads (`uamp.transparency`), the cards of agents (CARDS), the requests to push
services (`chat_app.push.vapid`), the envelopes to other servers (`federation_app.own_names`) or the
tokens for peers (`federation_app.terms.capabilities`). A key is created when its owner first
signs, for the algorithm of UAMP_SIGNATURE_ALGORITHM, and keeps its algorithm until it is rotated.

The next key of an owner with an Overlap is published some time before it signs. The key before it
signs until then, and signs the documents that list the keys for longer (`vouching_key`).

Functions are synchronous, and any thread may call them; only `known_key` never queries the
database.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.utils import timezone

from signing_app import cached_documents
from signing_app.encryption import cipher
from signing_app.keys import new_key, read_key
from signing_app.models import PublishedKey
from uamp.signatures.trust import LATE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

    from cryptography.fernet import MultiFernet
    from django.db.models import QuerySet

    from signing_app.keys import SigningKey

logger = logging.getLogger(__name__)

LOG: Final = "log"
"""The owner of the keys that sign log heads."""

CARDS: Final = "cards"
"""The owner of the keys that sign agent cards."""

FRESH_SECONDS: Final = 30.0
"""How long a process may sign with a key that another process has retired."""

MAX_CACHED_KEYS: Final = 1000
"""How many decrypted keys a process caches; the least recently used one is dropped first."""

MAX_VOUCHING_KEYS: Final = 8
"""How many earlier keys of an owner vouch at a time; `rotate` refuses beyond."""

_PURPOSE: Final = "signing_app.owner_keys"
_TRIES: Final = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlap:
    """The way in which an owner's keys follow each other, and their algorithm."""

    algorithm: str
    announced_for: timedelta
    """How long the next key is published before it signs."""
    vouches_for: timedelta
    """How long the key before it then still signs the documents that list the keys."""


class TooManyRotations(Exception):
    """The last MAX_VOUCHING_KEYS keys of an owner still vouch."""


class UnreadableKey(Exception):
    """The private half of a key cannot be decrypted with this SECRET_KEY.

    Only `rotate` replaces it: the SECRET_KEY of this process may be the wrong one.
    """


_overlaps: Final[dict[str, Overlap]] = {}
_algorithms: Final[dict[str, str]] = {}
_uncommitted: Final[set[str]] = set()
"""Ids of new keys whose transaction may still be rolled back."""
_known: Final[OrderedDict[str, tuple[SigningKey, float]]] = OrderedDict()
_lock: Final = threading.Lock()


def overlapping(owner: str, overlap: Overlap) -> None:
    """Rotate the keys of an owner with an overlap. Called when Django starts."""
    _overlaps[owner] = overlap


def signing_with(owner: str, algorithm: str) -> None:
    """Rotate the keys of an owner to keys of this algorithm. Called when Django starts."""
    _algorithms[owner] = algorithm


def signing_key(owner: str, algorithm: str | None = None) -> SigningKey:
    """Return an owner's current key, creating one if there is none.

    `algorithm` is one of `keys.ALGORITHMS`: a key of another one is rotated. With None, any key
    will do, and a new one is for UAMP_SIGNATURE_ALGORITHM. Raises UnreadableKey.
    """
    key = known_key(owner, algorithm)
    if key is None:
        key = _read_or_made(owner, algorithm)
        _keep(owner, key)
    return key


def known_key(owner: str, algorithm: str | None = None) -> SigningKey | None:
    """Return the key of `signing_key` if this process read it recently."""
    key = _cached(owner)
    return key if key is not None and algorithm in {None, key.algorithm} else None


def vouching_key(owner: str, algorithm: str) -> SigningKey:
    """Return the key that signs the documents which list an owner's keys.

    It is the oldest one that vouches for those after it, or else the current one. Raises
    UnreadableKey.
    """
    place = f"{owner} documents"
    key = _cached(place)
    if key is None:
        key = _vouching(owner) or signing_key(owner, algorithm)
        _keep(place, key)
    return key


def signs_from(owner: str) -> datetime | None:
    """Return the time at which an owner's newest key begins to sign; None if it does already."""
    coming = PublishedKey.objects.filter(
        owner=owner, retired_at__gt=timezone.now(), withdrawn_at=None
    )
    last = coming.exclude(vouches_until=None).order_by("-retired_at").first()
    return None if last is None else last.retired_at


def forget() -> None:
    """Forget the keys that this process has read, and the documents that contain any."""
    with _lock:
        _known.clear()
    cached_documents.forget_all()


def rotate(owner: str) -> SigningKey:
    """Retire the key of an owner, and return the new one; the old one stays published.

    With an Overlap, the new key is only announced and the old one keeps signing. While a key is
    announced, that one is returned, and nothing changes. Unreadable keys of the owner lose their
    private halves, and no longer vouch. Raises TooManyRotations.
    """
    overlap = _overlaps.get(owner)
    for _ in range(_TRIES):
        try:
            with transaction.atomic():
                for kid in unreadable_keys(owner):
                    _retire_where(kid=kid)
                made = _replaced(owner) if overlap is None else _announced(owner, overlap)
        except IntegrityError:
            # Another process rotated it at the same time: its key is the one to retire now.
            continue
        _forget_in_time()
        return made
    raise RuntimeError(f"No process could create a key for {owner}.")


def withdraw(kid: str) -> bool:
    """Stop publishing a key, so that its signatures are not trusted; return whether it changed.

    It no longer vouches for other keys. If it still signs, its owner gets the announced one or a
    new one with the next signature.
    """
    now = timezone.now()
    with transaction.atomic():
        _retire_where(kid=kid)
        changed = PublishedKey.objects.filter(pk=kid, withdrawn_at__isnull=True)
        count = changed.update(withdrawn_at=now)
    _forget_in_time()
    return bool(count)


def _forget_in_time() -> None:
    """Forget now, and after the transaction: until then, others read and cache the old state."""
    forget()
    transaction.on_commit(forget)


def forget_private_halves(limit: int) -> int:
    """Delete the private halves of keys that no longer vouch; return of how many."""
    over = PublishedKey.objects.filter(vouches_until__lte=timezone.now()).exclude(secret="")
    kids = list(over.values_list("pk", flat=True)[:limit])
    return PublishedKey.objects.filter(pk__in=kids).update(secret="")


def unreadable_keys(owner: str | None = None) -> list[str]:
    """Return the ids of keys, of one owner or of all, that this SECRET_KEY cannot decrypt."""
    return [kid for kid, of in _unreadable() if owner is None or of == owner]


def owners_of_unreadable() -> list[str]:
    """Return the owners of the keys that this SECRET_KEY cannot decrypt."""
    return sorted({owner for _, owner in _unreadable()})


def _unreadable() -> Iterator[tuple[str, str]]:
    """Yield id and owner of each key that may still sign and cannot be decrypted."""
    signing = PublishedKey.objects.exclude(secret="").exclude(vouches_until__lte=timezone.now())
    decrypting = cipher(_PURPOSE)
    rows = signing.order_by("kid").values_list("kid", "owner", "secret")
    for kid, owner, secret in rows.iterator():
        if not _is_readable(decrypting, secret):
            yield kid, owner


def _is_readable(decrypting: MultiFernet, secret: str) -> bool:
    try:
        decrypting.decrypt(secret.encode())
    except InvalidToken:
        return False
    return True


def owners() -> list[str]:
    """Return every owner with a current key."""
    signing = PublishedKey.objects.filter(retired_at__isnull=True)
    return list(signing.order_by("owner").values_list("owner", flat=True))


def _cached(place: str) -> SigningKey | None:
    with _lock:
        key, until = _known.get(place, (None, 0.0))
        if key is None or until < time.monotonic():
            return None
        _known.move_to_end(place)
        return key


def _keep(place: str, key: SigningKey) -> None:
    """Cache a key, unless a rollback may still undo it."""
    with _lock:
        if key.kid in _uncommitted:
            return
        _known[place] = (key, time.monotonic() + FRESH_SECONDS)
        _known.move_to_end(place)
        while len(_known) > MAX_CACHED_KEYS:
            _known.popitem(last=False)


def _current(owner: str) -> PublishedKey | None:
    """Return the row that signs now: the one without an end, or one that ends later."""
    ends_later = Q(retired_at__gt=timezone.now(), vouches_until__isnull=False)
    rows = PublishedKey.objects.filter(Q(retired_at__isnull=True) | ends_later, owner=owner)
    return rows.order_by(F("retired_at").asc(nulls_last=True)).first()


def _vouching(owner: str) -> SigningKey | None:
    row = _vouching_rows(owner).order_by("created_at", "kid").first()
    return None if row is None else _decrypted(row)


def _vouching_rows(owner: str) -> QuerySet[PublishedKey]:
    rows = PublishedKey.objects.filter(owner=owner, vouches_until__gt=timezone.now())
    return rows.exclude(secret="")


def _decrypted(row: PublishedKey) -> SigningKey:
    try:
        return read_key(cipher(_PURPOSE).decrypt(row.secret.encode()))
    except InvalidToken as error:
        raise UnreadableKey(f"The key {row.pk} of {row.owner} cannot be decrypted.") from error


def _read_or_made(owner: str, algorithm: str | None) -> SigningKey:
    for _ in range(_TRIES):
        row = _current(owner)
        if row is not None and algorithm in {None, row.algorithm}:
            _warn_of_clock(row)
            return _decrypted(row)
        try:
            with transaction.atomic():
                if row is not None:
                    _retire_where(kid=row.pk)
                if row is None or row.retired_at is None:
                    return _insert(owner, algorithm or settings.UAMP_SIGNATURE_ALGORITHM)
        except IntegrityError:
            # Another process created one at the same time.
            continue
    raise RuntimeError(f"No process could create a key for {owner}.")


def _warn_of_clock(row: PublishedKey) -> None:
    """Log a warning if a key was created in the future, because readers refuse what it signs."""
    ahead = (row.created_at - timezone.now()).total_seconds()
    if ahead > LATE_SECONDS:
        logger.warning(
            "the key %s of %s was created %.0f s in the future: the clocks of the servers differ,"
            " and what it signs until then is not trusted",
            row.pk, row.owner, ahead,
        )  # fmt: skip


def _replaced(owner: str) -> SigningKey:
    _retire_where(owner=owner)
    return _insert(owner, _algorithms.get(owner, settings.UAMP_SIGNATURE_ALGORITHM))


def _announced(owner: str, overlap: Overlap) -> SigningKey:
    """Announce the next key of an owner, or return the one that is announced."""
    rows = PublishedKey.objects.select_for_update(no_key=True)
    newest = rows.filter(owner=owner, retired_at__isnull=True).first()
    if newest is None:
        return _insert(owner, overlap.algorithm)
    if signs_from(owner) is not None:
        return _decrypted(newest)
    if _vouching_rows(owner).count() >= MAX_VOUCHING_KEYS:
        raise TooManyRotations
    ends = timezone.now() + overlap.announced_for
    PublishedKey.objects.filter(pk=newest.pk).update(
        retired_at=ends, vouches_until=ends + overlap.vouches_for
    )
    return _insert(owner, overlap.algorithm)


def _retire_where(**which: str) -> None:
    """Delete private halves, and end the time of the keys that sign."""
    now = timezone.now()
    signing = PublishedKey.objects.filter(**which).filter(
        Q(retired_at__isnull=True) | Q(retired_at__gt=now)
    )
    signing.update(retired_at=now, secret="", vouches_until=None)
    PublishedKey.objects.filter(**which).exclude(secret="").update(secret="", vouches_until=None)


def _insert(owner: str, algorithm: str) -> SigningKey:
    made = new_key(algorithm)
    with _lock:
        _uncommitted.add(made.kid)
    transaction.on_commit(lambda: _committed(made.kid))
    PublishedKey.objects.create(
        kid=made.kid,
        owner=owner,
        algorithm=algorithm,
        jwk=made.jwk,
        secret=cipher(_PURPOSE).encrypt(made.pem).decode(),
    )
    transaction.on_commit(cached_documents.forget_all)
    return made


def _committed(kid: str) -> None:
    with _lock:
        _uncommitted.discard(kid)
