"""A member of the hub, a sender whose envelopes are passed on, and a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

from federation_app.models import Peer
from tests.federation_app.peer import ForeignPeer, add_peer
from tests.federation_app.relay.member_server import MemberServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import ServerAddress


@pytest.fixture
def member(federated: ServerAddress, settings: Any) -> Iterator[MemberServer]:
    """Run the server of a member to which envelopes are passed on."""
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:*"]
    server = MemberServer()
    with server.running() as origin:
        row = add_peer("member.example").row
        Peer.objects.filter(pk=row.pk).update(address=origin, is_relayed=True)
        yield server


@pytest.fixture
def sender(member: MemberServer, peer: ForeignPeer) -> ForeignPeer:
    """Return a member whose envelopes are passed on."""
    Peer.objects.filter(pk=peer.row.pk).update(is_relayed=True)
    return peer


@pytest.fixture
def http(federated: ServerAddress) -> Iterator[httpx.Client]:
    """Give a client of the server."""
    with httpx.Client(base_url=federated.http, timeout=60, trust_env=False) as client:
        yield client
