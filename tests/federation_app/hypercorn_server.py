"""The real ASGI application in Hypercorn, over HTTP/2 and HTTP/3 with TLS 1.3."""

from __future__ import annotations

import asyncio
import ssl
import threading
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from channels.layers import channel_layers

from agents_app.demo import prepare_agents
from tests import services
from tests.client import wait_until
from tests.federation_app.local_certificate import certificate
from tests.federation_app.peer import HOST
from tests.threads import join_threads
from uamp_project.servers.peer_ports import hypercorn_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def hypercorn(
    database_threads: None, _empty_at_first: None, impatience: None, settings: Any, tmp_path: Path
) -> Iterator[httpx.Client]:
    """Run the real ASGI application in Hypercorn, and give a client that speaks HTTP/2 alone."""
    from sessions_app.process import registry  # noqa: PLC0415 only these tests need it
    from uamp_project.asgi import application  # noqa: PLC0415 as above

    settings.UAMP_FEDERATION_HOST = HOST
    prepare_agents()
    channel_layers.set("default", None)
    channel_layers.backends.clear()
    certfile, keyfile = certificate(tmp_path)
    address = f"127.0.0.1:{services.free_port()}"
    config = hypercorn_server.configured(address, certificate=str(certfile), key=str(keyfile))
    config.graceful_timeout = 2
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def run() -> None:
        ends = asyncio.Event()
        loops.append((asyncio.get_running_loop(), ends))
        app: Any = application
        try:
            await hypercorn_server.serve_until(app, config, ends.wait)
        finally:
            if (process := registry.current_or_none()) is not None:
                await process.stop()
                registry.forget()

    thread = threading.Thread(target=lambda: asyncio.run(run()), name="hypercorn")
    thread.start()
    context = ssl.create_default_context(cafile=str(certfile))
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    port = config.bind[0].rpartition(":")[2]
    client = httpx.Client(
        base_url=f"https://localhost:{port}",
        http1=False,
        http2=True,
        verify=context,
        timeout=60,
        trust_env=False,
    )
    try:
        wait_until(lambda: answers(client))
        yield client
    finally:
        client.close()
        loop, ends = loops[0]
        loop.call_soon_threadsafe(ends.set)
        join_threads([thread])


def answers(client: httpx.Client) -> bool:
    """Return whether the server listens."""
    try:
        return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False
