"""The recipe for two servers with certificates of their own (docs/envelopes.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from federation_app.peers import own_certificate
from tests import services
from tests.client import UampClient
from tests.federation_app.importing import THERE
from tests.federation_app.test_remote_agents import PROTOCOLS
from tests.journeys.product import Product
from tests.sessions_app.turn.delegation import answer_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.any_database, pytest.mark.long, pytest.mark.timeout(900)]
HOSTS = ("north.example", "south.example")
FAR_AGENT = """
from agents_app.models import Agent
Agent.objects.create(name={name!r}, kind="remote", is_public=True, protocol={protocol!r},
    url={url!r}, model="did:web:{host}:agents:echo")
"""


def server(folder: Path, host: str) -> Product:
    """Return a server that listens for peers, and makes its certificate when it starts."""
    variables: dict[str, Any] = {
        "UAMP_FEDERATION_HOST": host,
        "UAMP_PEERS_ADDRESS": f"127.0.0.1:{services.free_port()}",
        "UAMP_GRPC_ADDRESS": f"0.0.0.0:{services.free_port()}",
        "UAMP_REMOTE_ALLOW_HOSTS": "127.0.0.1:*",
    }
    product = Product(folder, services.free_port(), variables, has_workers=False)
    product.prepare()
    return product


def url_of(product: Product, protocol: str = "") -> str:
    """Return the address at which a server serves peers."""
    name = "UAMP_GRPC_ADDRESS" if protocol == "envelope_grpc" else "UAMP_PEERS_ADDRESS"
    return f"https://127.0.0.1:{product.environment[name].rpartition(':')[2]}"


@pytest.fixture
def servers(settings: Any, tmp_path: Path) -> Iterator[tuple[Product, Product]]:
    """Run two servers, each of which trusts a copy of the other's certificate."""
    first, second = (server(tmp_path / host, host) for host in HOSTS)
    pair = first, second
    for product in pair:
        # As its first start would: that costs half a minute.
        settings.DATA_DIR = product.data_dir
        settings.UAMP_FEDERATION_HOST = product.environment["UAMP_FEDERATION_HOST"]
        own_certificate.prepare()
    try:
        for here, there in (pair, pair[::-1]):
            copy = here.data_dir / "other.pem"
            copy.write_bytes((there.data_dir / "peers" / "certificate.pem").read_bytes())
            here.environment["UAMP_PEER_CA_FILE"] = str(copy)
        for product in pair:
            product.start()
        yield pair
    finally:
        for product in pair:
            product.close()
            product.stop()


def test_two_servers_with_their_own_certificates_ask_each_other(
    servers: tuple[Product, Product],
) -> None:
    directions = [(*servers, HOSTS[1]), (*servers[::-1], HOSTS[0])]
    for here, there, host in directions:
        here.run(THERE.format(host=host, address=url_of(there)))
    for here, there, host in directions:
        key = here.people["alice"]["api_key"]
        for protocol in PROTOCOLS:
            url, name = url_of(there, protocol), f"far-{protocol.replace('_', '-')}"
            here.run(FAR_AGENT.format(name=name, protocol=protocol, url=url, host=host))
            socket = UampClient(
                f"{here.url.replace('http', 'ws', 1)}/uamp",
                headers={"Authorization": f"Bearer {key}"},
            )
            socket.create_session(agent=name)
            assert "hello there" in answer_text(socket.answer("hello there")), (host, protocol)
            socket.close()
