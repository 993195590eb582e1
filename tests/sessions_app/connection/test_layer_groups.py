"""A process joins the group of a chat once, and each of its connections takes what comes."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from channels.layers import channel_layers

from chat_app.log import fanout
from sessions_app.connection.layer_groups import LayerGroups
from uamp_project.embedded.layer import EmbeddedChannelLayer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

GROUP = fanout.chat_group("chat_1")
pytestmark = pytest.mark.usefixtures("layer")


class HeldLayer(EmbeddedChannelLayer):
    """A layer that can be away, and in which leaving a group takes as long as a test wants."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away = False
        self.may_leave = asyncio.Event()
        self.may_leave.set()
        self.joins = 0

    async def group_add(self, group: str, channel: str) -> None:
        """Add a channel, unless the layer is away."""
        if self.is_away:
            raise ConnectionError("the layer is away")
        self.joins += 1
        await super().group_add(group, channel)

    async def group_discard(self, group: str, channel: str) -> None:
        """Remove a channel when the test allows it."""
        await asyncio.wait_for(self.may_leave.wait(), 60)
        await super().group_discard(group, channel)


class Member:
    """A connection that keeps what it takes."""

    def __init__(self, groups: LayerGroups) -> None:
        self.taken: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.groups = groups.member(self.take)

    def take(self, message: dict[str, Any]) -> None:
        """Keep a message."""
        self.taken.put_nowait(message)

    async def received(self) -> dict[str, Any]:
        """Return the next message."""
        return await asyncio.wait_for(self.taken.get(), 5)


@pytest.fixture
def layer() -> Iterator[HeldLayer]:
    """Put a layer of the test's own in the place of the process's."""
    held_layer = HeldLayer()
    before = channel_layers.set("default", held_layer)
    yield held_layer
    channel_layers.set("default", before)


@pytest.fixture
async def groups() -> AsyncIterator[LayerGroups]:
    """Return the groups of a process, whose task ends with the test."""
    tasks: list[asyncio.Task[Any]] = []

    def spawn(coroutine: Any, *, name: str) -> asyncio.Task[Any]:
        tasks.append(asyncio.create_task(coroutine, name=name))
        return tasks[-1]

    yield LayerGroups(spawn)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def send(seq: int = 1) -> None:
    """Send a message of the chat."""
    await fanout.send(
        GROUP,
        fanout.event_message(
            chat_id="chat_1", seq=seq, event_type="message.created", response_id="", frame="{}"
        ),
    )


async def test_members_of_a_group_share_one_channel_and_one_frame(
    layer: HeldLayer, groups: LayerGroups
) -> None:
    members = [Member(groups) for _ in range(300)]
    for member in members:
        await member.groups.join(GROUP)
    assert (layer.joins, layer.group_count, layer.channel_count) == (1, 1, 1)
    await fanout.send(
        GROUP,
        fanout.delta_message(
            chat_id="chat_1", response_id="resp_1", offset=3, text="four", origin=""
        ),
    )
    frames = {(await member.received())["frame"] for member in members}
    (delta,) = [json.loads("".join(parts)) for parts in frames]
    assert (delta["delta"]["text"], delta["offset"]) == ("four", 3)


async def test_the_process_leaves_with_its_last_member(
    layer: HeldLayer, groups: LayerGroups
) -> None:
    first, second = Member(groups), Member(groups)
    await first.groups.join(GROUP)
    await second.groups.join(GROUP)
    await first.groups.leave_all()
    await send()
    await second.received()
    assert (first.taken.empty(), layer.group_count) == (True, 1)
    await second.groups.leave_all()
    assert layer.group_count == 0


async def test_joining_while_the_process_leaves_ends_in_the_group(
    layer: HeldLayer, groups: LayerGroups
) -> None:
    first, second = Member(groups), Member(groups)
    await first.groups.join(GROUP)
    layer.may_leave.clear()
    leaving = asyncio.create_task(first.groups.leave_all())
    await asyncio.sleep(0)
    joining = asyncio.create_task(second.groups.join(GROUP))
    await asyncio.sleep(0)
    layer.may_leave.set()
    await asyncio.gather(leaving, joining)
    await send()
    await second.received()


async def test_a_layer_that_is_away_is_asked_again(layer: HeldLayer, groups: LayerGroups) -> None:
    member = Member(groups)
    layer.is_away = True
    with pytest.raises(ConnectionError):
        await member.groups.join(GROUP)
    layer.is_away = False
    await member.groups.join(GROUP)
    await send()
    await member.received()


async def test_a_group_that_the_layer_lost_is_joined_again(
    layer: HeldLayer, groups: LayerGroups
) -> None:
    member = Member(groups)
    await member.groups.join(GROUP)
    await layer.flush()
    await member.groups.join(GROUP)
    await send()
    await member.received()


async def test_a_connection_that_fails_costs_the_others_nothing(groups: LayerGroups) -> None:
    def fail(message: dict[str, Any]) -> None:
        raise ValueError(message)

    broken, member = groups.member(fail), Member(groups)
    await broken.join(GROUP)
    await member.groups.join(GROUP)
    await send(1)
    await send(2)
    assert [(await member.received())["seq"] for _ in range(2)] == [1, 2]
