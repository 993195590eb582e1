"""The state of a running response's row, as the one process that runs it writes it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from agents_app.runtime.agent_run import AgentError
from sessions_app import database
from sessions_app.store import responses
from sessions_app.transitions import TransitionRefused
from uamp import RESPONSE_TRANSITIONS, ErrorCode, ResponseState, ResponseTrigger, advance

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from sessions_app.response.context import RunContext


class RowState:
    """Whether the row says that the answer waits: for one thing or for several at once."""

    def __init__(self, context: RunContext) -> None:
        self._response_id, self._fence = context.response_id, context.fence
        self._state = context.state
        # A wait that begins and one that ends are not written at the same time.
        self._writing = asyncio.Lock()

    @asynccontextmanager
    async def waits(self) -> AsyncIterator[None]:
        """Write in here that the answer waits, and remember for what.

        The state counts from before the write: one that is cut off may be committed all the same.
        """
        async with self._writing:
            self._state = advance(RESPONSE_TRANSITIONS, self._state, ResponseTrigger.WAIT)
            yield

    async def goes_on(self, still_waits: Callable[[], bool] = lambda: False) -> None:
        """Write that the answer goes on, unless it still waits for something else.

        Raises AgentError interrupted where another process goes on with it.
        """
        async with self._writing:
            if self._state is not ResponseState.WAITING or still_waits():
                return
            try:
                await database.run(
                    responses.continue_response, self._response_id, fence=self._fence
                )
            except TransitionRefused:
                raise taken_over() from None
            self._state = advance(RESPONSE_TRANSITIONS, self._state, ResponseTrigger.CONTINUE)


def taken_over() -> AgentError:
    """Return what ends a run whose response another process holds: its own end is fenced off."""
    return AgentError("Another process goes on with it.", code=ErrorCode.INTERRUPTED)
