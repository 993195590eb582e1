"""The members of `ext` that this server writes and reads (envelope §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from federation_app.envelope.errors import malformed

if TYPE_CHECKING:
    from collections.abc import Mapping

HOPS: Final = "uamp-hops"
"""How many servers passed a question on; with it a loop across servers ends."""
HOPS_MOST: Final = 999


def hops_of(ext: Mapping[str, Any]) -> int:
    """Return how many servers passed an envelope on; 0 where it does not say it.

    Raises EnvelopeError malformed for what is no such number.
    """
    hops = ext.get(HOPS, 0)
    if isinstance(hops, bool) or not isinstance(hops, int) or not 0 <= hops <= HOPS_MOST:
        raise malformed(f"{HOPS} is a number of servers.", detail="ext")
    return hops
