"""Claims on calls, and what the chat receives about them."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from channels.layers import get_channel_layer
from django.utils import timezone

from chat_app.log import fanout
from sessions_app.models import ToolCall
from sessions_app.tools.worker import CallClaim, claim_call
from tests.threads import join_threads


def expire_lease(call: ToolCall) -> None:
    """Let a call look as if its worker had fallen silent."""
    ToolCall.objects.filter(pk=call.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def claimed(call: ToolCall) -> CallClaim:
    """Take a call as a worker does."""
    claim = claim_call(call.pk)
    assert claim is not None
    return claim


@contextmanager
def receiving(call: ToolCall) -> Iterator[list[dict[str, Any]]]:
    """Collect what is sent to the chat of a call and to the processes."""
    received: list[dict[str, Any]] = []
    ready = threading.Event()
    stop = asyncio.Event()

    async def listen() -> None:
        layer = get_channel_layer()
        channel = await layer.new_channel()
        for group in (fanout.chat_group(call.response.chat_id), fanout.PROCESSES_GROUP):
            await layer.group_add(group, channel)
        ready.set()
        while True:
            received.append(await layer.receive(channel))

    async def main() -> None:
        task = asyncio.create_task(listen())
        await asyncio.wait_for(stop.wait(), 600)
        task.cancel()
        await asyncio.wait([task], timeout=60)

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    try:
        assert ready.wait(5)
        yield received
    finally:
        loop.call_soon_threadsafe(stop.set)
        join_threads([thread])
        loop.close()


def progress_of(received: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the progress events among the layer messages."""
    return [json.loads(m["frame"]) for m in received if m["type"] == "chat.signal"]
