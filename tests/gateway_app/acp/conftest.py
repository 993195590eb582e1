"""Sockets for these tests."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from websockets.sync.client import connect

from tests.conftest import ServerAddress
from tests.gateway_app.acp.socket_client import Acp, AcpClient
from tests.live_server import Person


@pytest.fixture
def acp(demo: ServerAddress) -> Iterator[Acp]:
    """Give a function that opens a socket of an agent."""
    with ExitStack() as sockets:

        def dial(agent: str, who: Person | None = None, path: str = "acp") -> AcpClient:
            headers = {} if who is None else who.headers
            url = f"{demo.ws}/agents/{agent}/{path}"
            # A test may leave many messages unread: closing must not wait until they are.
            socket = connect(
                url, additional_headers=headers, proxy=None, max_queue=None, close_timeout=2
            )
            return AcpClient(sockets.enter_context(socket))

        yield dial
