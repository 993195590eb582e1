"""The check of stored peer addresses after an upgrade or a settings change."""

from __future__ import annotations

from typing import Any

import pytest

from federation_app.models import Peer
from tests.agents_app.remote.remote_agents import remote_agent
from uamp_project import checks

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture(autouse=True)
def private(settings: Any) -> None:
    """Allow places in a private network, and no cleartext."""
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["10.0.0.5:*", "127.0.0.1:*", "north.example:*"]
    settings.UAMP_PEER_LOOPBACK_HTTP = False


def messages() -> list[Any]:
    """Return the messages of the check with a database."""
    return checks.check_peer_addresses(databases=["default"])


def test_peers_and_their_agents_at_places_that_are_not_called_are_listed() -> None:
    Peer.objects.create(did="did:web:good.example", address="https://10.0.0.5:8443")
    Peer.objects.create(did="did:web:plain.example")
    remote_agent("http://10.0.0.5:8000", protocol="completions")
    assert messages() == []

    Peer.objects.create(
        did="did:web:old.example",
        address="http://10.0.0.5:8000",
        documents_address="https://10.0.0.6",
    )
    remote_agent("http://north.example:8000", protocol="envelope_http", name="north")
    (message,) = messages()
    assert message.id == "uamp.W027"
    assert "peer did:web:old.example at http://10.0.0.5:8000: 'http' is not https" in message.msg
    assert "peer did:web:old.example at https://10.0.0.6: 10.0.0.6 leads to" in message.msg
    assert "agent north at http://north.example:8000" in message.msg
    assert "good" not in message.msg
    assert checks.check_peer_addresses() == []


def test_a_private_address_without_tls_is_listed_even_for_trying_out(settings: Any) -> None:
    settings.UAMP_PEER_LOOPBACK_HTTP = True
    for host in ("127.0.0.1", "north.example"):
        Peer.objects.create(did=f"did:web:{host}.example", address=f"http://{host}:8000")
    assert messages() == []
    Peer.objects.create(did="did:web:old.example", address="http://10.0.0.5:8000")
    (message,) = messages()
    assert "10.0.0.5, which needs TLS" in message.msg


def test_a_warning_has_an_end() -> None:
    for number in range(7):
        Peer.objects.create(did=f"did:web:h{number}.example", address="http://10.0.0.5")
    (message,) = messages()
    assert "did:web:h4.example" in message.msg
    assert "did:web:h5.example" not in message.msg
    assert "and 2 more" in message.msg
