"""Signals to the process that runs a response or holds a daemon: cancel it, or read a changed row.

A signal only saves time. Each process reads the rows of its runs every second (`Runs.read_rows`),
which makes up for lost messages.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from channels.layers import get_channel_layer

from chat_app.log import fanout
from sessions_app import database
from sessions_app.billing import requests
from sessions_app.connected import disconnecting
from sessions_app.frames import frame
from sessions_app.store import responses
from sessions_app.tools import calls

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessions_app.process.runs import Runs
    from uamp import events as ev

logger = logging.getLogger(__name__)

LISTEN_AGAIN_SECONDS: Final = 2.0


class ResponseSignals:
    """Signals runs of this process directly, and others over the channel layer.

    Any task of the event loop may send. `listen` runs as one task of the process; it and a periodic
    task call `join`.
    """

    def __init__(
        self,
        runs: Runs,
        *,
        process: str,
        take_over: Callable[[str], None],
        disconnected: Callable[[], None],
    ) -> None:
        self._runs = runs
        self._process, self._take_over, self._disconnected = process, take_over, disconnected
        self._channel: str | None = None

    # --- Sending ---

    async def cancel(self, response_id: str, user_id: int | None = None) -> None:
        """Cancel a response wherever it runs; its row records the person who asked, if any.

        A process that misses the signal reads the row.
        """
        await database.run(responses.request_cancel, response_id, user_id)
        await self._send({"type": "run.cancel", "response": response_id})

    async def call_ended(self, response_id: str, pk: int) -> None:
        """Have a run read the row of a tool call that has ended."""
        await self._send({"type": "run.settled", "response": response_id, "call": pk})

    async def call_decided(self, response_id: str, pk: int) -> None:
        """Have a run handle a tool call that a person approved or refused."""
        await self._send({"type": "run.decided", "response": response_id, "call": pk})

    async def payment_decided(self, response_id: str, pk: int) -> None:
        """Have a run read the row of a payment request that is paid or expired."""
        await self._send({"type": "run.paid", "response": response_id, "call": pk})

    async def hand_over(self, response_id: str, process: str) -> None:
        """Have a process take over a response that was handed to it."""
        message = {"type": "run.take_over", "response": response_id, "process": process}
        await fanout.send(fanout.PROCESSES_GROUP, message)

    async def watch(self, response_id: str) -> None:
        """Have a run send its frames to its chat's group, because a client reads them there."""
        await self._send({"type": "run.watch", "response": response_id})

    async def watch_chat(self, chat_id: str) -> None:
        """Have every process send a private chat's turns to its group, for a second client."""
        self._runs.watch_chat(chat_id)
        await fanout.send(
            fanout.PROCESSES_GROUP, {"type": "chat.watch", "response": "", "chat": chat_id}
        )

    async def _send(self, message: dict[str, Any]) -> None:
        if message["response"] in self._runs:
            await self._take(message)
        else:
            await fanout.send(fanout.PROCESSES_GROUP, message)

    # --- Receiving ---

    async def listen(self) -> None:
        """Handle signals from other processes until cancelled."""
        while True:
            try:
                await self._listen()
            except Exception:
                # Until the layer is back, the rows are read every second.
                logger.exception("the channel layer does not deliver signals")
            await asyncio.sleep(LISTEN_AGAIN_SECONDS)

    async def _listen(self) -> None:
        layer = get_channel_layer()
        self._channel = await layer.new_channel()
        await self.join()
        while True:
            message = await layer.receive(self._channel)
            try:
                await self._take(message)
            except Exception:
                # One bad message must not stop the others; the rows are read anyway.
                logger.exception("a signal of another process was not understood")

    async def join(self) -> None:
        """Join the group of all processes; repeated, since a layer may forget."""
        if self._channel is not None:
            async with asyncio.timeout(fanout.SEND_TIMEOUT_SECONDS):
                await get_channel_layer().group_add(fanout.PROCESSES_GROUP, self._channel)

    async def _take(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "chat.watch":
                self._runs.watch_chat(message["chat"])
            case disconnecting.SIGNAL:
                self._disconnected()
            case "run.take_over":
                if message["process"] == self._process:
                    self._take_over(message["response"])
            case _:
                await self._take_for_run(message)

    async def _take_for_run(self, message: dict[str, Any]) -> None:
        run = self._runs.get(message["response"])
        if run is None:
            return
        match message["type"]:
            case "run.cancel":
                run.cancel()
            case "run.watch":
                run.watch()
            case "run.decided":
                run.decide_calls([message["call"]])
            case "run.settled":
                run.settle_calls(await database.run(calls.ended_calls, [message["call"]]))
            case "run.paid":
                run.settle_payments(await database.run(requests.decided, [message["call"]]))


async def send_decision(chat_id: str, done: ev.ToolApprovalDone) -> None:
    """Notify a chat of a decision on a call, so that its clients withdraw the question."""
    signal = fanout.signal_message(chat_id=chat_id, frame=frame(done), response_id=done.response_id)
    await fanout.send(fanout.chat_group(chat_id), signal)
