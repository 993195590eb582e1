"""Sends a response's frames to the chat's group in order, batching text.

The first frame is sent immediately; whatever follows within the delay is batched. Members see an
answer start as soon as the asker does, and frames carry more text than overhead.
"""

from __future__ import annotations

import asyncio
from typing import Any

from chat_app.log import fanout


class Broadcaster:
    """An ordered queue to one chat's group, which merges adjacent text into one message.

    The run's task and its tools' tasks add messages. A task of the broadcaster sends them, `delay`
    seconds apart. `drain` is called once, after the last message.
    """

    def __init__(self, chat_id: str, delay: float) -> None:
        self._chat_id = chat_id
        self._delay = delay
        self._queue: list[dict[str, Any]] = []
        self._parts: list[str] = []
        self._head: dict[str, Any] | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_sending = False
        self._is_over = False
        # The earliest time of the next send, on the loop's clock.
        self._next_at = 0.0

    def text(self, response_id: str, offset: int, text: str, origin: str) -> None:
        """Queue text, which is sent after the delay together with text that follows it."""
        if self._head is None:
            self._head = fanout.delta_message(
                chat_id=self._chat_id,
                response_id=response_id,
                offset=offset,
                text="",
                origin=origin,
            )
        self._parts.append(text)
        self._wake()

    def signal(self, message: dict[str, Any]) -> None:
        """Queue another message, after the text that precedes it."""
        self._close_text()
        self._queue.append(message)
        self._wake()

    def replace(self, response_id: str, text: str) -> None:
        """Send the whole text of the response, replacing earlier text; it is never dropped."""
        self.signal(fanout.text_message(chat_id=self._chat_id, response_id=response_id, text=text))

    def _close_text(self) -> None:
        if self._head is not None:
            self._head["text"] = "".join(self._parts)
            self._queue.append(self._head)
            self._head, self._parts = None, []

    def _wake(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._later())

    async def _later(self) -> None:
        now = asyncio.get_running_loop().time
        while not self._is_over and (self._head is not None or self._queue):
            await asyncio.sleep(max(0.0, self._next_at - now()))
            self._is_sending = True
            self._next_at = now() + self._delay
            await self._send_all()
            self._is_sending = False

    async def _send_all(self) -> None:
        self._close_text()
        queue, self._queue = self._queue, []
        await fanout.publish(self._chat_id, queue)

    async def drain(self) -> None:
        """Send what is queued, so that the end of the response comes after everything before it.

        The last text is left out: the terminal event has the whole output, from which each
        subscription fills in what is missing.
        """
        self._is_over = True
        if self._task is not None and not self._task.done():
            if not self._is_sending:
                self._task.cancel()
            await asyncio.wait([self._task])
        self._head, self._parts = None, []
        queue, self._queue = self._queue, []
        await fanout.publish(self._chat_id, queue)
