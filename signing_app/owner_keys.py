"""The keys of owners: the one that signs, its rotation, and its withdrawal.

An owner is an agent, the receipts (`uamp.signatures`) or the logs of chats (LOG). A key is made
when its owner signs for the first time, by the algorithm of UAMP_SIGNATURE_ALGORITHM; another
algorithm rotates it.
Functions are synchronous, and any thread may call them; `known_key` alone asks no database.
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
"""The owner of the keys that sign the heads of logs."""

FRESH_SECONDS: Final = 30.0
"""A process signs for so long with a key that another process has retired."""

KNOWN_MOST: Final = 1000
"""Keys that a process keeps decrypted; the one that was used least recently goes first."""

_PURPOSE: Final = "signing_app.owner_keys"
_TRIES: Final = 5

_known: Final[OrderedDict[str, tuple[SigningKey, float]]] = OrderedDict()
_lock: Final = threading.Lock()


def signing_key(owner: str, algorithm: str | None = None) -> SigningKey:
    """Return the key with which an owner signs now; it is made where there is none.

    `algorithm` is one of `keys.ALGORITHMS`; None is that of UAMP_SIGNATURE_ALGORITHM. A key whose
    private half cannot be decrypted, because SECRET_KEY is another one, is rotated.
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
    """Return the key of `signing_key` where this process has read it a moment ago."""
    wanted = algorithm or settings.UAMP_SIGNATURE_ALGORITHM
    with _lock:
        key, until = _known.get(owner, (None, 0.0))
        if key is None or key.algorithm != wanted or until < time.monotonic():
            return None
        _known.move_to_end(owner)
        return key


def forget() -> None:
    """Forget the keys that this process has read, and the documents that have some."""
    with _lock:
        _known.clear()
    kept_documents.forget_all()


def rotate(owner: str) -> SigningKey:
    """Retire the key of an owner, and return the new one; the old one is published still."""
    with transaction.atomic():
        _retire(owner)
        made = _insert(owner, settings.UAMP_SIGNATURE_ALGORITHM)
    forget()
    return made


def withdraw(kid: str) -> bool:
    """Publish a key no more: what it signed is not trusted. False where it was withdrawn already.

    Where it still signs, its owner gets another one with its next signature.
    """
    now = timezone.now()
    with transaction.atomic():
        _retire_where(kid=kid)
        changed = PublishedKey.objects.filter(pk=kid, withdrawn_at__isnull=True)
        count = changed.update(withdrawn_at=now)
    forget()
    return bool(count)


def owners() -> list[str]:
    """Return every owner who signs now."""
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
            # Another process made one at the same time.
            continue
    raise RuntimeError(f"No process could make a key for {owner}.")


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
