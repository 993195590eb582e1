"""The keys of owners: the current one, its rotation, and its withdrawal.

An owner is an agent, the receipts or shared pages (`uamp.signatures`), the logs of chats (LOG),
the tree of their heads (`uamp.transparency`), the cards of agents (CARDS) or the requests to push
services (`chat_app.push.vapid`). A key is created when its owner first signs, for the algorithm of
UAMP_SIGNATURE_ALGORITHM; choosing another algorithm rotates it.

Functions are synchronous, and any thread may call them; only `known_key` never queries the
database.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from signing_app import kept_documents
from signing_app.encryption import cipher
from signing_app.keys import new_key, read_key
from signing_app.models import PublishedKey

if TYPE_CHECKING:
    from signing_app.keys import SigningKey

logger = logging.getLogger(__name__)

LOG: Final = "log"
"""The owner of the keys that sign log heads."""

CARDS: Final = "cards"
"""The owner of the keys that sign agent cards."""

FRESH_SECONDS: Final = 30.0
"""How long a process may sign with a key that another process has retired."""

KNOWN_MOST: Final = 1000
"""How many decrypted keys a process caches; the least recently used one is dropped first."""

_PURPOSE: Final = "signing_app.owner_keys"
_TRIES: Final = 5

_known: Final[OrderedDict[str, tuple[SigningKey, float]]] = OrderedDict()
_lock: Final = threading.Lock()


def signing_key(owner: str, algorithm: str | None = None) -> SigningKey:
    """Return an owner's current key, creating one if there is none.

    `algorithm` is one of `keys.ALGORITHMS`; None means UAMP_SIGNATURE_ALGORITHM. A key whose
    private half cannot be decrypted, because SECRET_KEY has changed, is rotated.
    """
    wanted = algorithm or settings.UAMP_SIGNATURE_ALGORITHM
    found = known_key(owner, wanted)
    if found is None:
        found = _read_or_made(owner, wanted)
        with _lock:
            _known[owner] = (found, time.monotonic() + FRESH_SECONDS)
            _known.move_to_end(owner)
            while len(_known) > KNOWN_MOST:
                _known.popitem(last=False)
    return found


def known_key(owner: str, algorithm: str | None = None) -> SigningKey | None:
    """Return the key of `signing_key` if this process read it recently."""
    wanted = algorithm or settings.UAMP_SIGNATURE_ALGORITHM
    with _lock:
        key, until = _known.get(owner, (None, 0.0))
        if key is None or key.algorithm != wanted or until < time.monotonic():
            return None
        _known.move_to_end(owner)
        return key


def forget() -> None:
    """Forget the keys that this process has read, and the documents that contain any."""
    with _lock:
        _known.clear()
    kept_documents.forget_all()


def rotate(owner: str) -> SigningKey:
    """Retire the key of an owner, and return the new one; the old one stays published."""
    for _ in range(_TRIES):
        try:
            with transaction.atomic():
                _retire(owner)
                made = _insert(owner, settings.UAMP_SIGNATURE_ALGORITHM)
        except IntegrityError:
            # Another process rotated it at the same time: its key is the one to retire now.
            continue
        forget()
        return made
    raise RuntimeError(f"No process could create a key for {owner}.")


def withdraw(kid: str) -> bool:
    """Stop publishing a key, so that its signatures are not trusted; return whether it changed.

    If it still signs, its owner gets a new one with the next signature.
    """
    now = timezone.now()
    with transaction.atomic():
        _retire_where(kid=kid)
        changed = PublishedKey.objects.filter(pk=kid, withdrawn_at__isnull=True)
        count = changed.update(withdrawn_at=now)
    forget()
    return bool(count)


def owners() -> list[str]:
    """Return every owner with a current key."""
    signing = PublishedKey.objects.filter(retired_at__isnull=True)
    return list(signing.order_by("owner").values_list("owner", flat=True))


def _read_or_made(owner: str, algorithm: str) -> SigningKey:
    for _ in range(_TRIES):
        row = PublishedKey.objects.filter(owner=owner, retired_at__isnull=True).first()
        if row is not None and row.algorithm == algorithm:
            try:
                return read_key(cipher(_PURPOSE).decrypt(row.secret.encode()))
            except InvalidToken:
                logger.exception("the key %s of %s cannot be read: it is rotated", row.pk, owner)
        try:
            with transaction.atomic():
                if row is not None:
                    _retire_where(kid=row.pk)
                return _insert(owner, algorithm)
        except IntegrityError:
            # Another process created one at the same time.
            continue
    raise RuntimeError(f"No process could create a key for {owner}.")


def _retire(owner: str) -> None:
    _retire_where(owner=owner)


def _retire_where(**which: str) -> None:
    signing = PublishedKey.objects.filter(retired_at__isnull=True, **which)
    signing.update(retired_at=timezone.now(), secret="")


def _insert(owner: str, algorithm: str) -> SigningKey:
    made = new_key(algorithm)
    PublishedKey.objects.create(
        kid=made.kid,
        owner=owner,
        algorithm=algorithm,
        jwk=made.jwk,
        secret=cipher(_PURPOSE).encrypt(made.pem).decode(),
    )
    transaction.on_commit(kept_documents.forget_all)
    return made
