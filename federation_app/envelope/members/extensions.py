"""The members of `ext` that this server reads and writes (envelope §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from federation_app.envelope.errors import malformed

if TYPE_CHECKING:
    from collections.abc import Mapping

HOPS: Final = "uamp-hops"
"""How many servers have forwarded a question, which bounds loops across servers."""
MAX_HOPS: Final = 999


def hops_of(ext: Mapping[str, Any]) -> int:
    """Return the number of servers that have forwarded an envelope; 0 if it does not state it.

    Raises EnvelopeError malformed if the value is not such a number.
    """
    hops = ext.get(HOPS, 0)
    if isinstance(hops, bool) or not isinstance(hops, int) or not 0 <= hops <= MAX_HOPS:
        raise malformed(f"{HOPS} must be a whole number from 0 to {MAX_HOPS}.", detail="ext")
    return hops
