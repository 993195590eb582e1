"""Repeated requests: the first one with a key has an effect, and the others get its answer.

A key is claimed before the request is answered. Refused requests release it. If a process dies in
between, its claim ends after CLAIM_SECONDS, and the request may then have its effect twice.
Synchronous.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.utils import timezone

from chat_app.models import RepeatedRequest
from signing_app.encryption import cipher

if TYPE_CHECKING:
    from datetime import datetime

CLAIM_SECONDS: Final = 300
"""The longest time that a request may take to be answered."""
_PURPOSE: Final = "chat_app.repeats"


class KeyConflict(Exception):
    """The key was used for another request."""


class KeyInUse(Exception):
    """The first request with the key has not been answered yet."""


def claim(user_id: int, key: str, request_sha256: str) -> RepeatedRequest:
    """Claim a key for a request, or return the row of its first request, which has a status.

    Raises KeyConflict and KeyInUse.
    """
    row, is_new = RepeatedRequest.objects.get_or_create(
        user_id=user_id, key=key, defaults={"request_sha256": request_sha256}
    )
    if is_new:
        return row
    if row.request_sha256 != request_sha256:
        raise KeyConflict
    if row.status is None:
        lost = row.created_at < timezone.now() - timedelta(seconds=CLAIM_SECONDS)
        if not lost or not _claim_again(row):
            raise KeyInUse
    return row


def _claim_again(row: RepeatedRequest) -> bool:
    """Take over the claim of a process that died; one of several requests succeeds."""
    same = RepeatedRequest.objects.filter(pk=row.pk, status=None, created_at=row.created_at)
    return same.update(created_at=timezone.now()) == 1


def release(row: RepeatedRequest) -> None:
    """Free the key of a request that was refused."""
    RepeatedRequest.objects.filter(pk=row.pk, status=None).delete()


def answer(row: RepeatedRequest, *, status: int, location: str, body: bytes) -> None:
    """Store the answer of a request; an empty body must not be stored."""
    ciphertext = cipher(_PURPOSE).encrypt(body).decode() if body else ""
    RepeatedRequest.objects.filter(pk=row.pk).update(
        status=status, location=location, answer=ciphertext
    )


def stored_body(row: RepeatedRequest) -> bytes:
    """Return the stored answer of a request; raises InvalidToken if its secret is gone."""
    return cipher(_PURPOSE).decrypt(row.answer.encode())


def forget(before: datetime, *, limit: int) -> int:
    """Delete a batch of requests older than a time; return how many."""
    oldest = RepeatedRequest.objects.order_by("pk").values_list("pk", "created_at")[:limit]
    old = [pk for pk, created_at in oldest if created_at < before]
    return RepeatedRequest.objects.filter(pk__in=old).delete()[0] if old else 0


def forget_person(user_id: int) -> None:
    """Delete a person's requests."""
    RepeatedRequest.objects.filter(user_id=user_id).delete()
