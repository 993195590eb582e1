"""Messages that threads send to groups: in order, on one loop for the whole process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from channels.layers import BaseChannelLayer, channel_layers

from chat_app.log import fanout
from tests.threads import thread_pool

if TYPE_CHECKING:
    from collections.abc import Iterator


class RecordingLayer(BaseChannelLayer):
    """A layer that keeps what it was given, and on which loop."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # Channels has no types
        self.loops: set[int] = set()
        self.sent: dict[str, list[int]] = {}
        # Kept, so that no two loops have one id.
        self._kept: list[asyncio.AbstractEventLoop] = []

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        """Take a message."""
        await asyncio.sleep(0)
        self._kept.append(asyncio.get_running_loop())
        self.loops.add(id(self._kept[-1]))
        self.sent.setdefault(group, []).append(message["seq"])


@pytest.fixture
def layer() -> Iterator[RecordingLayer]:
    """Put a recording layer in the place of the process's own."""
    recording = RecordingLayer()
    before = channel_layers.set("default", recording)
    yield recording
    channel_layers.set("default", before)


def test_threads_send_in_order_on_one_loop(layer: RecordingLayer) -> None:
    def publish(number: int) -> None:
        fanout.publish_from_thread(str(number), [{"seq": 1}, {"seq": 2}])
        fanout.send_from_thread(fanout.chat_group(str(number)), {"seq": 3})

    with thread_pool(6) as threads:
        list(threads.map(publish, range(24)))
    assert layer.sent == {f"chat.{number}": [1, 2, 3] for number in range(24)}
    assert len(layer.loops) == 1


async def test_code_on_a_loop_does_not_wait_for_another_one(layer: RecordingLayer) -> None:
    with pytest.raises(RuntimeError, match=r"awaits fanout\.publish"):
        fanout.publish_from_thread("chat", [{"seq": 1}])
    assert layer.sent == {}
