"""A turn that a program asks for: pieces of its answers as they arrive, or the whole (UAMP §3)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from uamp.client.errors import NoAnswerError, TimedOutError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Generator

    from uamp.client.connection import ServerConnection
    from uamp.client.state.answers import AgentAnswer, Piece
    from uamp.client.state.session import ClientSession
    from uamp.client.state.turns import TurnState
    from uamp.events import ChatMessage


class AskedTurn:
    """A turn that is sent when it is first iterated or awaited.

    ``async for piece in turn`` yields the new pieces of all its answers; ``await turn`` returns the
    first answer when it has ended. Both raise the error of an answer that failed or was cancelled,
    TimedOutError if nothing arrives for ``seconds``, and ConnectionLostError. Stopping the
    iteration stops nothing on the server: use ``cancel``.
    """

    def __init__(
        self,
        connection: ServerConnection,
        session: ClientSession,
        start: Callable[[], Awaitable[TurnState]],
        *,
        seconds: float,
    ) -> None:
        self._connection = connection
        self._session = session
        self._start = start
        self._seconds = seconds
        self._state: TurnState | None = None
        self._starting = asyncio.Lock()

    @property
    def message(self) -> ChatMessage | None:
        """The message as stored in the chat; None until then, and in a private session."""
        return self._state.message if self._state else None

    @property
    def answers(self) -> list[AgentAnswer]:
        """The answers so far, in their current state."""
        return [answer.result() for answer in self._state.answers] if self._state else []

    async def __aiter__(self) -> AsyncIterator[Piece]:
        state = await self._ensure_started()
        until = self._deadline()
        while True:
            while (piece := state.next_piece()) is not None:
                yield piece
                until = self._deadline()
            if state.is_complete:
                break
            await self._change(until)
        self._raise_failure(state)

    def __await__(self) -> Generator[object, None, AgentAnswer]:
        return self.answer().__await__()

    async def answer(self) -> AgentAnswer:
        """Wait for all answers to end and return the first; NoAnswerError if there are none."""
        async for _ in self:
            pass
        if not self.answers:
            raise NoAnswerError
        return self.answers[0]

    async def stored(self) -> ChatMessage | None:
        """Wait until the message is stored, not for its answers; return the stored message."""
        state = await self._ensure_started()
        until = self._deadline()
        while not state.is_stored and state.error is None:
            await self._change(until)
        if state.error is not None:
            raise state.error
        return state.message

    async def cancel(self, seconds: float = 10.0) -> None:
        """Cancel the running answers and wait, at most ``seconds``, until they have ended."""
        state = self._state
        if state is None:
            return
        for answer in state.answers:
            if not answer.has_ended:
                self._session.cancel(answer.response_id)
        self._connection.changed()
        end = asyncio.get_running_loop().time() + seconds
        while not all(answer.has_ended for answer in state.answers) and state.error is None:
            remaining = end - asyncio.get_running_loop().time()
            if remaining <= 0 or not await self._connection.wait(remaining):
                return

    async def _ensure_started(self) -> TurnState:
        async with self._starting:
            if self._state is None:
                self._state = await self._start()
        return self._state

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._seconds

    async def _change(self, until: float) -> None:
        remaining = until - asyncio.get_running_loop().time()
        if remaining <= 0 or not await self._connection.wait(remaining):
            raise TimedOutError(
                f"Nothing arrived from the server for {self._seconds:g} seconds.",
                what_to_do="The answer may still be running: read the history of the chat.",
            )

    @staticmethod
    def _raise_failure(state: TurnState) -> None:
        if state.error is not None:
            raise state.error
        for answer in state.answers:
            if answer.error is not None:
                raise answer.error
