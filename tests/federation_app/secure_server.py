"""Another process of a product, which serves HTTP/2 with TLS 1.3, and a client that trusts it."""

from __future__ import annotations

import ssl
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from federation_app.peers.connections import negotiating_tls
from federation_app.remote_agents.transports import web
from federation_app.remote_agents.transports.web import HttpPeerConnection
from tests import services
from tests.federation_app.local_certificate import certificate
from tests.programs import Program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.journeys.product import Product


@contextmanager
def secure_server(product: Product, folder: Path) -> Iterator[int]:
    """Serve a product with `peers`, too, with a certificate in a folder; give its port."""
    chain, key = certificate(folder)
    port = services.free_port()
    environment = {**product.all_environment(), "UAMP_GRPC_ADDRESS": ""}
    command = [sys.executable, "manage.py", "peers", "--host", "127.0.0.1", "--port", str(port)]
    paths = ["--certificate", str(chain), "--key", str(key)]
    context = ssl.create_default_context(cafile=str(chain))
    with (
        Program(*command, *paths, cwd=product.folder, env=environment) as program,
        httpx.Client(verify=context, trust_env=False) as client,
    ):

        def is_ready() -> bool:
            try:
                return client.get(f"https://localhost:{port}/readyz").status_code == httpx.codes.OK
            except httpx.TransportError:
                return False

        program.wait_until(is_ready)
        yield port


def trust_certificate(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have questions to peers trust the certificate in a folder alone."""
    context = ssl.create_default_context(cafile=str(folder / "certificate.pem"))
    context.minimum_version = negotiating_tls().minimum_version
    monkeypatch.setattr(web, "negotiating_tls", lambda: context)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes]]:
    """Return the methods and HTTP versions of the requests to peers from now on."""
    made: list[tuple[str, bytes]] = []
    send = HttpPeerConnection._request

    async def note(connection: HttpPeerConnection, method: str, *args: Any) -> Any:
        response = await send(connection, method, *args)
        made.append((method, response.extensions["http_version"]))
        return response

    monkeypatch.setattr(HttpPeerConnection, "_request", note)
    return made
