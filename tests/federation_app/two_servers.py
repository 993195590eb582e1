"""Another server in processes and on a database of its own, which is a peer of the running one."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.client import UampClient, wait_until
from tests.faults.cut_line import CutLine
from tests.federation_app.importing import THERE, import_peer
from tests.federation_app.peer import HOST
from tests.journeys.product import Product, running_product

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from federation_app.models import Peer
    from tests.conftest import ServerAddress

OTHER = "did:web:other.example"
BOB = "bob@other.example"


@dataclass
class OtherServer:
    """The other server, and the peer that it is here."""

    product: Product
    peer: Peer

    def get(self, path: str, username: str = "bob") -> Any:
        """Return the JSON of a REST path for a person there."""
        with self.product.api(username) as client:
            return client.get(f"/api/v1{path}").raise_for_status().json()

    def post(self, path: str, body: Any, username: str = "bob") -> Any:
        """Post to a REST path as a person there, and return the JSON."""
        with self.product.api(username) as client:
            return client.post(f"/api/v1{path}", json=body).raise_for_status().json()

    def patch(self, path: str, body: Any) -> None:
        """Patch a REST path as bob there."""
        with self.product.api("bob") as client:
            client.patch(f"/api/v1{path}", json=body).raise_for_status()

    def delete(self, path: str) -> None:
        """Delete a REST path as bob there."""
        with self.product.api("bob") as client:
            client.delete(f"/api/v1{path}").raise_for_status()

    def socket(self) -> UampClient:
        """Return a socket of bob there."""
        key = self.product.people["bob"]["api_key"]
        url = f"{self.product.url.replace('http', 'ws', 1)}/uamp"
        return UampClient(url, headers={"Authorization": f"Bearer {key}"})

    def invitations(self) -> list[Any]:
        """Return the open invitations that bob has received there."""
        invitations: list[Any] = self.get("/invitations")["data"]
        return [invitation for invitation in invitations if invitation["direction"] == "received"]

    def chat(self, title: str) -> str:
        """Return the id of bob's chat of a title, once he is in it."""
        ids: list[str] = []

        def is_there() -> bool:
            chats = self.get("/chats")["data"]
            ids[:] = [chat["id"] for chat in chats if chat["title"] == title]
            return bool(ids)

        wait_until(is_there)
        return ids[0]

    def texts(self, chat_id: str) -> list[tuple[str, str]]:
        """Return the authors and texts of the messages in a chat there that have a text."""
        rows = self.get(f"/chats/{chat_id}/messages?order=asc&limit=200")["data"]
        return [(row["name"], row["content"]) for row in rows if row["content"]]


@contextmanager
def other_server(here: ServerAddress, folder: Path, **variables: str) -> Iterator[OtherServer]:
    """Run another server; an operator of each imports the other's manifest by its URL.

    Both are at loopback addresses, where they read documents and post envelopes.
    """
    names: dict[str, Any] = {
        "UAMP_FEDERATION_HOST": "other.example",
        "UAMP_ENVELOPES_PER_MINUTE": "100000",
        "UAMP_REMOTE_ALLOW_HOSTS": "127.0.0.1:*",
        "UAMP_PEER_LOOPBACK_HTTP": "1",
        **variables,
    }
    with running_product(folder, **names) as product:
        product.run(THERE.format(host=HOST, address=here.http))
        peer = import_peer("other.example", product.url)
        yield OtherServer(product, peer)


@pytest.fixture
def other(federated: ServerAddress, settings: Any, tmp_path: Path) -> Iterator[OtherServer]:
    """Run the other server."""
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:*"]
    settings.UAMP_ENVELOPES_PER_MINUTE = 100_000
    with other_server(federated, tmp_path / "other") as server:
        yield server


__all__ = ["BOB", "OTHER", "CutLine", "OtherServer", "other", "other_server"]
