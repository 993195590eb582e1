"""Token counts for protocols that do not count cache writes separately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uamp


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenCounts:
    """The tokens of all steps of a response.

    `read` counts the input tokens read from the model's cache, None if its vendor does not report
    them, and `written` those written to it.
    """

    input: int
    output: int
    total: int
    read: int | None
    written: int


def counts_of(used: uamp.UsageStats | None) -> TokenCounts:
    """Return the token counts of a response's usage."""
    if used is None:
        return TokenCounts(input=0, output=0, total=0, read=None, written=0)
    input_tokens, output_tokens = used.input_tokens or 0, used.output_tokens or 0
    written = used.cache_write_tokens or 0
    return TokenCounts(
        input=input_tokens,
        output=output_tokens,
        total=used.total_tokens or input_tokens + output_tokens,
        read=None if used.cached_tokens is None else max(used.cached_tokens - written, 0),
        written=written,
    )
