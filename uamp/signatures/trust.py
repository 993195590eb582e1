"""Whether a published key is one that could have signed: of this owner, at this time.

A key has `uamp_owner`, `iat` and, once it was retired, `exp`; those of older exports have no owner.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeGuard

LATE_SECONDS: Final = 120
"""So long after its retirement a key may still have signed, in another process.

So long before it was made, too: an answer ends before its agent gets its first key.
"""


class SignatureState(StrEnum):
    """The standing of an answer or a receipt by its signature."""

    VALID = "valid"
    ROTATED = "rotated"
    CHANGED = "changed"
    UNSIGNED = "unsigned"
    UNKNOWN_KEY = "unknown_key"
    ERASED = "erased"


def distrust(key: Mapping[str, Any], *, owner: str, at: int) -> str | None:
    """Return why a key did not sign for an owner at a time, in seconds; None where it could."""
    if key.get("uamp_owner", owner) != owner:
        return "It was signed with a key of another owner."
    made, retired = key.get("iat"), key.get("exp")
    if _is_time(retired) and at > retired + LATE_SECONDS:
        return "It was signed after its key was retired."
    if _is_time(made) and at < made - LATE_SECONDS:
        return "It was signed before its key was made."
    return None


def is_retired(key: Mapping[str, Any]) -> bool:
    """Return whether a key signs no more."""
    return _is_time(key.get("exp"))


def _is_time(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
