"""Decides whether a published key could have signed for an owner at a given time.

A key has `uamp_owner`, `iat` and, once retired, `exp`; keys in older exports have no owner.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeGuard

LATE_SECONDS: Final = 120
"""How long after its retirement a key may still have signed, in another process, in seconds.

The same applies before its creation: an answer ends before its agent gets its first key.
"""


class SignatureState(StrEnum):
    """The state of an answer or a receipt according to its signature."""

    VALID = "valid"
    ROTATED = "rotated"
    CHANGED = "changed"
    UNSIGNED = "unsigned"
    UNKNOWN_KEY = "unknown_key"
    ERASED = "erased"


def distrust(key: Mapping[str, Any], *, owner: str, at: int) -> str | None:
    """Return why a key cannot have signed for an owner at `at`, in seconds; None if it can."""
    if key.get("uamp_owner", owner) != owner:
        return "It was signed with another owner's key."
    created, retired = key.get("iat"), key.get("exp")
    if _is_time(retired) and at > retired + LATE_SECONDS:
        return "It was signed after its key was retired."
    if _is_time(created) and at < created - LATE_SECONDS:
        return "It was signed before its key was created."
    return None


def is_retired(key: Mapping[str, Any]) -> bool:
    """Return whether a key has been retired from signing."""
    return _is_time(key.get("exp"))


def _is_time(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
