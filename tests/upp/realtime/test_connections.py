"""The Realtime provider's server address and sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp

from tests.realtime_vendor import realtime_vendor
from upp.providers.http.connections import HttpSession
from upp.providers.realtime.provider import OpenAIRealtimeProvider

if TYPE_CHECKING:
    import pytest


def test_the_environment_names_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://a.example/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    provider = OpenAIRealtimeProvider()

    assert provider.environment() == ("http://a.example/v1", "k")
    assert provider("m").capabilities.audio_input
    assert provider("m").provider == "openai_realtime"


async def test_a_session_leaves_its_sockets_with_its_connections() -> None:
    with realtime_vendor() as vendor:
        session = HttpSession(aiohttp.TCPConnector(), uses_proxies=False)
        socket = await session.dial(f"{vendor.url}/realtime?model=m", headers={}, silent=20)
        connector = session.client.connector
        session.detach()
        assert connector is not None
        await socket.close()
        await connector.close()
