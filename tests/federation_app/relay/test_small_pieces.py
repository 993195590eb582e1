"""Events that a member sends in small pieces: their ends are found, and searched for once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from federation_app.exchange import relayed_streams
from federation_app.exchange.relayed_streams import RelayedStream
from federation_app.models import EnvelopeStream, Peer

if TYPE_CHECKING:
    import re
    from collections.abc import AsyncIterator, Iterator


class CountedSearch:
    """A pattern that counts the bytes in which it looks for matches."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self.bytes = 0
        self._pattern = pattern

    def finditer(self, data: bytearray, start: int = 0) -> Iterator[re.Match[bytes]]:
        """Count, then search."""
        self.bytes += len(data) - start
        return self._pattern.finditer(data, start)


async def relayed(pieces: list[bytes]) -> list[bytes]:
    """Return the events that a reader of a member's stream receives."""

    async def arrive() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    stream = RelayedStream(Peer(), EnvelopeStream())
    response: Any = SimpleNamespace(content=SimpleNamespace(iter_any=arrive))
    stream._response = response
    return [frame async for frame in stream.frames()]


@pytest.mark.parametrize("end", [b"\n\n", b"\r\r", b"\r\n\r\n"])
async def test_an_end_may_be_split_anywhere(end: bytes) -> None:
    body = b"data: a" + end + b"data: b" + end
    at_once = b"".join(await relayed([body]))
    assert b"".join(await relayed([bytes([byte]) for byte in body])) == at_once
    for at in range(len(body)):
        assert b"".join(await relayed([body[:at], body[at:]])) == at_once


async def test_no_byte_is_searched_again_for_each_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    search = CountedSearch(relayed_streams._ENDS)
    monkeypatch.setattr(relayed_streams, "_ENDS", search)
    pieces = [b"data: ", *[b"x" * 64] * 4096, b"\n\n"]
    assert len(await relayed(pieces)) == 1
    assert search.bytes < 2 * sum(map(len, pieces))
