"""Turns that a POST began, held for the GET that reads their stream.

Over HTTP, an `ask` and the reader of its answer are two requests. If the second reaches the same
process in time, it continues the turn, as a socket does. Any other reader joins the answer, which
takes several queries.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from sessions_app.process import registry as processes

if TYPE_CHECKING:
    from federation_app.exchange.turns import PeerTurn
    from federation_app.models import ReceivedEnvelope

HOLD_SECONDS: Final = 2.0
"""How long a turn is held. A reader comes at once, or later to any process."""
AT_ONCE: Final = 64
"""How many turns a process holds at a time."""
_by_loop: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, HeldTurns]] = WeakKeyDictionary()


class HeldTurn(NamedTuple):
    """A turn that has begun an answer here, and the envelope that asked for it."""

    turn: PeerTurn
    request: ReceivedEnvelope | None


class HeldTurns:
    """The held turns of one event loop, by the primary key of their stream."""

    def __init__(self) -> None:
        self._turns: dict[int, tuple[HeldTurn, asyncio.TimerHandle]] = {}

    def hold(self, stream_pk: int, held: HeldTurn) -> bool:
        """Hold a turn for a reader, and leave it later; return False if there are too many."""
        if len(self._turns) >= AT_ONCE or stream_pk in self._turns:
            return False
        held.turn.rest()
        timer = asyncio.get_running_loop().call_later(HOLD_SECONDS, self._leave, stream_pk)
        self._turns[stream_pk] = held, timer
        return True

    def take(self, stream_pk: int) -> HeldTurn | None:
        """Return the turn of a stream for its only reader, who closes it; None if none is held."""
        held, timer = self._turns.pop(stream_pk, (None, None))
        if timer is not None:
            timer.cancel()
        return held

    def _leave(self, stream_pk: int) -> None:
        held, _ = self._turns.pop(stream_pk)
        if (process := processes.current_or_none()) is not None:
            process.spawn(held.turn.close(), name="leave a turn")


def held_turns() -> HeldTurns:
    """Return the held turns of the running event loop."""
    return _by_loop.setdefault(asyncio.get_running_loop(), HeldTurns())
