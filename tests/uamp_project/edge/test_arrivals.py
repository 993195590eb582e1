"""Requests that clients do not finish are bounded in time, in bytes and in pieces."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.client import WAIT_SECONDS
from uamp_project.edge import arrivals
from uamp_project.edge.arrivals import FREE_BYTES, MIN_BYTES, Arrival, Budget

if TYPE_CHECKING:
    import pytest

SECONDS = 0.1
# A deadline that a machine with other work does not miss between two pieces.
LONG_SECONDS = 1.0
MIB = 1024 * 1024


class Connection:
    """An arrival, and why it was cut."""

    def __init__(
        self, budget: Budget | None = None, sender: str = "a", seconds: float = SECONDS
    ) -> None:
        self.cuts: list[str] = []
        self.ended = asyncio.Event()
        self.arrival = Arrival(seconds=seconds, budget=budget, sender=lambda: sender, cut=self._cut)

    def _cut(self, reason: str) -> None:
        self.cuts.append(reason)
        self.ended.set()

    async def ends(self, seconds: float = WAIT_SECONDS) -> bool:
        """Return whether it is cut."""
        try:
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        except TimeoutError:
            return False
        return True


async def test_an_unfinished_body_is_cut_off() -> None:
    client = Connection()
    client.arrival.piece(MIN_BYTES - 1)
    assert await client.ends()
    assert client.cuts == ["does not finish what it sends"]


async def test_a_finished_or_steady_body_is_not_cut_off() -> None:
    done, going_on = Connection(), Connection(seconds=LONG_SECONDS)
    done.arrival.piece(1)
    done.arrival.finished()
    for _ in range(6):
        going_on.arrival.piece(MIN_BYTES)
        await asyncio.sleep(LONG_SECONDS / 4)
    assert done.cuts == going_on.cuts == []
    going_on.arrival.close()


async def test_no_time_passes_while_the_server_does_not_read() -> None:
    client = Connection()
    client.arrival.paused()
    client.arrival.piece(1)
    assert not await client.ends(5 * SECONDS)
    client.arrival.resumed()
    assert await client.ends()


async def test_the_pieces_of_a_message_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "PIECES_BYTES_MAX", 10 * arrivals.PIECE_BYTES)
    client = Connection()
    for _ in range(3):
        for _ in range(10):
            client.arrival.piece(0)
        client.arrival.finished()
    assert client.cuts == []
    for _ in range(12):
        client.arrival.piece(0)
    assert client.cuts == ["sends a message in too many pieces"]


async def test_an_address_holds_so_much_until_it_is_taken_or_gone() -> None:
    budget = Budget(lambda: 3 * MIB)
    first, second, other = (Connection(budget, name) for name in ("a", "a", "b"))
    first.arrival.piece(2 * MIB)
    second.arrival.piece(2 * MIB)
    other.arrival.piece(2 * MIB)
    assert (first.cuts, second.cuts, other.cuts) == ([], ["holds too much for its address"], [])
    # An ordinary message has room all the same.
    third = Connection(budget, "a")
    third.arrival.piece(FREE_BYTES // 2)
    # What is whole counts until the application has it.
    first.arrival.finished()
    fourth = Connection(budget, "a")
    fourth.arrival.piece(2 * MIB)
    assert fourth.cuts == ["holds too much for its address"]
    first.arrival.taken()
    fifth = Connection(budget, "a")
    fifth.arrival.piece(2 * MIB)
    assert (third.cuts, fifth.cuts) == ([], [])
    for client in (first, second, third, fourth, fifth, other):
        client.arrival.close()
    assert budget.total == 0
