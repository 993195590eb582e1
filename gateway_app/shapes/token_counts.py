"""Token counts for protocols that do not count cache writes on their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uamp


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenCounts:
    """Tokens of all steps of a response.

    `read` is how many of the input a model had read before, None where its vendor does not count
    them, and `written` how many it wrote to its cache.
    """

    input: int
    output: int
    total: int
    read: int | None
    written: int


def counts_of(used: uamp.UsageStats | None) -> TokenCounts:
    """Return the counts of what a response used."""
    if used is None:
        return TokenCounts(input=0, output=0, total=0, read=None, written=0)
    given, made = used.input_tokens or 0, used.output_tokens or 0
    written = used.cache_write_tokens or 0
    return TokenCounts(
        input=given,
        output=made,
        total=used.total_tokens or given + made,
        read=None if used.cached_tokens is None else max(used.cached_tokens - written, 0),
        written=written,
    )
