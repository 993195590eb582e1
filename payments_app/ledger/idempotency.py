"""Idempotency keys: repeating an operation with its key returns the first outcome.

An operation's first statement claims its key. A key that was claimed with a different request
raises IdempotencyConflict.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from django.db import connection

from payments_app.ledger.outcomes import (
    CaptureOutcome,
    HoldOutcome,
    IdempotencyConflict,
    TransferOutcome,
)
from payments_app.ledger.sql import rows, run

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


Outcome = TypeVar("Outcome", HoldOutcome, CaptureOutcome, TransferOutcome)
KEY_LENGTH: Final = 255


@dataclass(frozen=True, slots=True)
class ClaimedKey:
    """A key and the outcome recorded for it, or None if this transaction claimed the key."""

    id: int
    stored_result: str | None


def fingerprint(request: Sequence[Any]) -> str:
    """Return the hash of a key's request."""
    return hashlib.sha256(msgspec.json.encode(request)).hexdigest()


def claim(scope: str, key: str, request: Sequence[Any]) -> ClaimedKey:
    """Claim a key, waiting for any other transaction that holds it.

    Raises ValueError for a key that is empty or longer than 255 characters, IdempotencyConflict for
    one used with a different request.
    """
    if not 0 < len(key) <= KEY_LENGTH:
        raise ValueError(f"A key must have 1 to {KEY_LENGTH} characters.")
    sha256 = fingerprint(request)
    new = rows(
        "INSERT INTO payments_app_idempotency (scope, key, sha256) VALUES (%s, %s, %s)"
        " ON CONFLICT (scope, key) DO NOTHING RETURNING id",
        [scope, key, sha256],
    )
    if new:
        return ClaimedKey(new[0][0], None)
    return _existing_key(scope, key, sha256)


def _existing_key(scope: str, key: str, sha256: str) -> ClaimedKey:
    known_id, stored_sha256, stored_result = rows(
        "SELECT id, sha256, outcome FROM payments_app_idempotency WHERE scope = %s AND key = %s",
        [scope, key],
    )[0]
    if stored_sha256 != sha256:
        raise IdempotencyConflict(f"The key {key!r} was used for another request.")
    return ClaimedKey(known_id, stored_result)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedRequest:
    """A key and its request."""

    scope: str
    key: str
    request: Sequence[Any]


def claim_many(requests: Sequence[KeyedRequest]) -> list[ClaimedKey | IdempotencyConflict]:
    """Claim keys in one sorted statement, so that two lists cannot deadlock.

    The answers are in the order of the requests; the same request twice is one claim.
    """
    if not all(0 < len(request.key) <= KEY_LENGTH for request in requests):
        raise ValueError(f"A key must have 1 to {KEY_LENGTH} characters.")
    prints = [fingerprint(request.request) for request in requests]
    digests: dict[tuple[str, str], str] = {}
    for request, sha256 in zip(requests, prints, strict=True):
        digests.setdefault((request.scope, request.key), sha256)
    new = rows(
        "INSERT INTO payments_app_idempotency (scope, key, sha256) VALUES "  # noqa: S608 placeholders only
        + ", ".join(["(%s, %s, %s)"] * len(digests))
        + " ON CONFLICT (scope, key) DO NOTHING RETURNING scope, key, id",
        [value for name in sorted(digests) for value in (*name, digests[name])],
    )
    claimed = {(scope, key): ClaimedKey(pk, None) for scope, key, pk in new}
    answers: list[ClaimedKey | IdempotencyConflict] = []
    for request, sha256 in zip(requests, prints, strict=True):
        name = (request.scope, request.key)
        if name in claimed and digests[name] == sha256:
            answers.append(claimed[name])
            continue
        try:
            answers.append(_existing_key(request.scope, request.key, sha256))
        except IdempotencyConflict as error:
            answers.append(error)
    return answers


def record(claimed: ClaimedKey, outcome: Outcome) -> Outcome:
    """Record the outcome of a claimed key and return it."""
    run(
        "UPDATE payments_app_idempotency SET outcome = %s WHERE id = %s",
        [msgspec.json.encode(outcome).decode(), claimed.id],
    )
    return outcome


def record_many(outcomes: Mapping[int, Outcome]) -> None:
    """Record the outcomes of claimed keys, given by the ids of their claims."""
    if not outcomes:
        return
    # On PostgreSQL a value of a VALUES list is untyped.
    kind = "::jsonb" if connection.vendor == "postgresql" else ""
    run(
        f"UPDATE payments_app_idempotency SET outcome = kept.column2{kind} FROM (VALUES "  # noqa: S608 placeholders only
        + ", ".join(["(%s, %s)"] * len(outcomes))
        + ") AS kept WHERE payments_app_idempotency.id = kept.column1",
        [
            value
            for pk, outcome in outcomes.items()
            for value in (pk, msgspec.json.encode(outcome).decode())
        ],
    )


def release_many(claimed: Collection[int]) -> None:
    """Delete claimed keys whose requests were refused."""
    if claimed:
        marks = ", ".join(["%s"] * len(claimed))
        run(f"DELETE FROM payments_app_idempotency WHERE id IN ({marks})", list(claimed))  # noqa: S608 placeholders only


def replay(stored_result: str, kind: type[Outcome]) -> Outcome:
    """Return a recorded outcome, marked as replayed."""
    return replace(msgspec.json.decode(stored_result, type=kind), replayed=True)
