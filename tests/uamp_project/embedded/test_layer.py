"""EmbeddedChannelLayer: between threads, bounded, without leaks."""

import asyncio
import threading
import time
from typing import TYPE_CHECKING

import pytest
from asgiref.sync import async_to_sync
from channels.exceptions import ChannelFull
from channels.utils import await_many_dispatch

from tests.threads import join_threads
from uamp_project.embedded.layer import EmbeddedChannelLayer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def test_a_group_message_reaches_every_member_once() -> None:
    layer = EmbeddedChannelLayer()
    first, second, outsider = [await layer.new_channel() for _ in range(3)]
    await layer.group_add("chat.1", first)
    await layer.group_add("chat.1", first)
    await layer.group_add("chat.1", second)
    await layer.group_send("chat.1", {"type": "ev", "n": 1})
    await layer.send(outsider, {"type": "own"})

    messages = [await layer.receive(channel) for channel in (first, second, outsider)]

    assert messages == [{"type": "ev", "n": 1}, {"type": "ev", "n": 1}, {"type": "own"}]
    assert messages[0] is not messages[1]


async def test_a_discarded_member_receives_nothing_more() -> None:
    layer = EmbeddedChannelLayer()
    channel = await layer.new_channel()
    await layer.group_add("chat.1", channel)
    await layer.group_discard("chat.1", channel)
    await layer.group_send("chat.1", {"type": "ev"})
    await layer.send(channel, {"type": "own"})

    assert await layer.receive(channel) == {"type": "own"}
    assert layer.group_count == 0


async def test_messages_keep_their_order() -> None:
    layer = EmbeddedChannelLayer()
    channel = await layer.new_channel()
    await layer.group_add("chat.1", channel)
    for n in range(100):
        await layer.group_send("chat.1", {"n": n})

    assert [(await layer.receive(channel))["n"] for _ in range(100)] == list(range(100))


async def test_a_sender_on_another_thread_wakes_an_idle_receiver() -> None:
    layer = EmbeddedChannelLayer()
    channel = await layer.new_channel()
    await layer.group_add("chat.1", channel)
    delays = []

    def send() -> None:
        async_to_sync(layer.group_send)("chat.1", {"sent": time.perf_counter()})

    # Nothing else wakes this loop: with no wake-up from the sender, receive waits for ever.
    async with asyncio.timeout(10):
        for _ in range(20):
            receiving = asyncio.create_task(layer.receive(channel))
            await asyncio.sleep(0)
            thread = threading.Thread(target=send)
            thread.start()
            delays.append(time.perf_counter() - (await receiving)["sent"])
            join_threads([thread])

    assert sorted(delays)[10] < 0.05


async def test_two_loops_each_get_their_share_of_a_group() -> None:
    layer = EmbeddedChannelLayer()
    joined = threading.Event()
    elsewhere: list[object] = []

    async def listen() -> None:
        channel = await layer.new_channel()
        await layer.group_add("chat.1", channel)
        receiving = asyncio.create_task(layer.receive(channel))
        await asyncio.sleep(0)
        joined.set()
        elsewhere.append(await receiving)

    thread = threading.Thread(target=lambda: asyncio.run(listen()))
    thread.start()
    await asyncio.to_thread(joined.wait, 10)
    channel = await layer.new_channel()
    await layer.group_add("chat.1", channel)
    await layer.group_send("chat.1", {"n": 1})

    assert await layer.receive(channel) == {"n": 1}
    await asyncio.to_thread(thread.join, 10)
    assert elsewhere == [{"n": 1}]


async def test_a_full_channel_refuses_and_counts() -> None:
    layer = EmbeddedChannelLayer(capacity=3)
    channel = await layer.new_channel()
    await layer.group_add("chat.1", channel)
    for n in range(5):
        await layer.group_send("chat.1", {"n": n})
    with pytest.raises(ChannelFull):
        await layer.send(channel, {"n": 5})

    assert layer.dropped == 3
    assert [(await layer.receive(channel))["n"] for _ in range(3)] == [0, 1, 2]
    await layer.send(channel, {"n": 6})
    assert await layer.receive(channel) == {"n": 6}


async def test_a_message_without_a_receiver_is_counted() -> None:
    layer = EmbeddedChannelLayer()
    await layer.send("specific.embedded!gone", {"n": 1})

    assert (layer.dropped, layer.channel_count) == (1, 0)


async def test_a_cancelled_receive_ends_the_channel_and_its_memberships() -> None:
    layer = EmbeddedChannelLayer()
    channel = await layer.new_channel()
    await layer.group_add("chat.1", channel)
    receiving = asyncio.create_task(layer.receive(channel))
    await asyncio.sleep(0)
    receiving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await receiving

    assert (layer.channel_count, layer.group_count) == (0, 0)


async def test_a_consumer_that_ends_leaves_nothing_behind() -> None:
    layer = EmbeddedChannelLayer()

    class ClosedError(Exception):
        pass

    async def consume() -> None:
        channel = await layer.new_channel()
        await layer.group_add("chat.1", channel)
        sources: list[Callable[[], Awaitable[dict[str, object]]]] = [lambda: layer.receive(channel)]

        async def dispatch(message: dict[str, object]) -> None:
            if message["type"] == "close":
                raise ClosedError

        with pytest.raises(ClosedError):
            await await_many_dispatch(sources, dispatch)

    consumers = [asyncio.create_task(consume()) for _ in range(50)]
    await asyncio.sleep(0)
    await layer.group_send("chat.1", {"type": "ev"})
    await layer.group_send("chat.1", {"type": "close"})
    await asyncio.gather(*consumers)
    await layer.group_send("chat.1", {"type": "ev"})

    # The last receive of each was done, not cancelled; the next sweep finds those.
    layer.expiry = 0.01
    await asyncio.sleep(0.02)
    await layer.new_channel()
    assert (layer.channel_count, layer.group_count) == (1, 0)


async def test_the_sweep_spares_a_channel_with_a_receiver() -> None:
    layer = EmbeddedChannelLayer(expiry=0.01)
    channel = await layer.new_channel()
    receiving = asyncio.create_task(layer.receive(channel))
    await asyncio.sleep(0.02)
    await layer.new_channel()
    await layer.send(channel, {"n": 1})

    assert await receiving == {"n": 1}


async def test_channels_of_a_loop_that_ended_are_forgotten() -> None:
    layer = EmbeddedChannelLayer()

    async def join() -> None:
        await layer.group_add("chat.1", await layer.new_channel())

    await asyncio.to_thread(asyncio.run, join())
    assert layer.group_count == 1
    await layer.group_send("chat.1", {"n": 1})

    assert (layer.dropped, layer.channel_count, layer.group_count) == (1, 0, 0)


async def test_flush_forgets_everything_and_leaves_readers_usable() -> None:
    layer = EmbeddedChannelLayer()
    channel = await layer.new_channel()
    await layer.group_add("chat.1", channel)
    receiving = asyncio.create_task(layer.receive(channel))
    await asyncio.sleep(0)
    await layer.flush()
    await asyncio.sleep(0)
    await layer.group_send("chat.1", {"n": 1})
    await layer.send(channel, {"n": 2})

    assert await receiving == {"n": 2}


async def test_a_channel_has_one_reader_on_one_loop() -> None:
    layer = EmbeddedChannelLayer()
    channel = await layer.new_channel()
    receiving = asyncio.create_task(layer.receive(channel))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="already has a reader"):
        await layer.receive(channel)
    with pytest.raises(RuntimeError, match="another event loop"):
        await asyncio.to_thread(asyncio.run, layer.receive(channel))
    await layer.send(channel, {"n": 1})

    assert await receiving == {"n": 1}


@pytest.mark.parametrize("name", ["", "a b", "a" * 100, "chat/1"])
async def test_a_name_that_channels_forbids_is_refused(name: str) -> None:
    layer = EmbeddedChannelLayer()
    with pytest.raises(TypeError):
        await layer.group_send(name, {})
