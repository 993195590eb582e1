"""Runs and sessions while the channel layer is slow or down."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from channels.layers import channel_layers, get_channel_layer
from channels.testing import WebsocketCommunicator

from chat_app.log import fanout
from chat_app.models import Chat
from sessions_app import database, lifespan
from sessions_app.process import periodic, signals
from sessions_app.response.output.broadcast import Broadcaster
from tests import services as services_of_tests
from tests.sessions_app.response.running import WAIT_SECONDS, Hearer, ask, open_session
from uamp_project.asgi import application
from uamp_project.embedded.layer import EmbeddedChannelLayer

if TYPE_CHECKING:
    from pytest_django import Settings


class SlowLayer(EmbeddedChannelLayer):
    """A layer that takes its time with groups of chats, and may be away for new members."""

    is_away = False

    async def group_add(self, group: str, channel: str) -> None:
        """Enter a group, unless the layer is away."""
        if self.is_away and group.startswith("chat."):
            raise ConnectionError("the layer is away")
        await super().group_add(group, channel)

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        """Send to a group, a moment later."""
        if group.startswith("chat."):
            await asyncio.sleep(0.02)
        await super().group_send(group, message)


@pytest.fixture
def slow_layer(settings: Settings) -> None:
    """Let the layer be slow."""
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": f"{__name__}.SlowLayer", "CONFIG": {}}}
    channel_layers.set("default", None)
    channel_layers.backends.clear()


async def test_the_end_of_a_run_loses_nothing_that_waits_for_the_layer(
    database_threads: None, slow_layer: None
) -> None:
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(fanout.chat_group("chat_1"), channel)
    broadcaster = Broadcaster("chat_1", 0.001)
    for number in range(4):
        broadcaster.signal(fanout.signal_message(chat_id="chat_1", frame=str(number)))
    await asyncio.sleep(0.03)  # the second one is on its way
    await broadcaster.drain()
    frames = [(await layer.receive(channel))["frame"] for _ in range(4)]
    assert frames == ["0", "1", "2", "3"]


async def test_a_session_opens_while_the_layer_is_away_and_is_received_when_it_is_back(
    database_threads: None,
    slow_layer: None,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(periodic, "POLL_LOGS_SECONDS", 0.1)
    settings.UAMP_GRACE_SECONDS = 0
    layer = get_channel_layer()
    layer.is_away = True
    session = await database.run(open_session, "echo")
    chat = await database.run(Chat.objects.get, pk=session.chat_id)
    socket = WebsocketCommunicator(application, "/uamp")
    await socket.connect()
    resume = {"session_id": session.id}
    create = {"type": "session.create", "session": {}, "resume": resume}
    await socket.send_to(text_data=json.dumps(create))
    created = json.loads(await socket.receive_from())
    assert (created["type"], created["chat"]) == ("session.created", chat.pk)
    layer.is_away = False
    hearer = Hearer()
    await ask(session, "one", hearer)
    group = fanout.chat_group(chat.pk)
    async with asyncio.timeout(WAIT_SECONDS):
        while group not in layer._groups:
            assert json.loads(await socket.receive_from())["type"] != "session.error"
    await socket.disconnect()
    await lifespan.shutdown()


async def test_a_process_that_begins_without_its_layer_receives_the_others_later(
    database_threads: None, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "LISTEN_AGAIN_SECONDS", 0.05)
    settings.UAMP_GRACE_SECONDS = 0
    port = services_of_tests.free_port()
    layer = {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [f"redis://127.0.0.1:{port}"]},
    }
    settings.CHANNEL_LAYERS = {"default": layer}
    channel_layers.backends.clear()
    process = lifespan.start()
    await asyncio.sleep(0.2)
    names = {task.get_name() for task in asyncio.all_tasks()}
    assert "listen" in names
    assert process.runs == {}
    await lifespan.shutdown()
    channel_layers.backends.clear()
