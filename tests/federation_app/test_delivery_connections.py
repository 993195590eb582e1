"""The connections over which a peer receives what is due to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from federation_app.models import ErasureNotice, Peer
from tests.client import wait_until
from tests.federation_app.peer import add_peer
from tests.http_server import KeepAliveServer, serving

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_is_due_to_a_peer_is_posted_over_one_connection(
    federated: object, web: httpx.Client, alice: Person, bob: Person, settings: Any
) -> None:
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:*"]
    assert web.get("/healthz").status_code == 200  # the process has begun
    with serving(KeepAliveServer()) as server:
        peer = add_peer().row
        Peer.objects.filter(pk=peer.pk).update(address=server.origin)
        people = (alice, bob)
        ErasureNotice.objects.bulk_create(
            ErasureNotice(peer=peer, user=person.user) for person in people
        )
        wait_until(lambda: not ErasureNotice.objects.exists())
        # The run is over, and so is its connection.
        assert server.ended.acquire(timeout=60)
    (bodies,) = server.connections
    acts = [json.loads(json.loads(body)["body"]["content"]) for body in bodies]
    assert [act["act"] for act in acts] == ["erase"] * len(people)
