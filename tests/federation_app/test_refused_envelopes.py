"""Refused envelopes count for the peer that signed them, an address, or a sender behind a hub."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from federation_app.exchange.relay import RELAYED_BY
from federation_app.models import ReceivedEnvelope
from tests.federation_app.peer import add_peer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import ServerAddress
    from tests.federation_app.peer import ForeignPeer

pytestmark = pytest.mark.django_db(transaction=True)
HUB = "did:web:hub.example"
UNKNOWN = "did:web:stranger.example"


@pytest.fixture
def status(federated: ServerAddress, settings: Any) -> Iterator[Callable[..., int]]:
    """Yield a function that posts an envelope from an address, perhaps through a server."""
    settings.UAMP_ENVELOPES_PER_MINUTE = 2
    settings.UAMP_TRUSTED_PROXIES = ["127.0.0.1"]
    with httpx.Client(base_url=federated.http, timeout=60, trust_env=False) as client:

        def post(envelope: Any, *, address: str = "203.0.113.1", relay: str = "") -> int:
            headers = {"Content-Type": "application/uamp+json", "X-Forwarded-For": address}
            relay_headers = {RELAYED_BY: relay} if relay else {}
            content = json.dumps(envelope)
            return client.post(
                "/v1/messages", content=content, headers=headers | relay_headers
            ).status_code

        yield post


def forged(peer: ForeignPeer, **members: Any) -> Any:
    """Return an envelope that was changed after it was signed."""
    return {**peer.envelope(), "intent": "inform", **members}


def test_what_a_peer_signed_counts_for_the_peer(
    status: Callable[..., int], peer: ForeignPeer
) -> None:
    other = add_peer("other.example")
    refused = [peer.envelope("inform") for _ in range(3)]
    assert [status(envelope) for envelope in refused] == [415, 415, 429]
    assert status(peer.envelope(), address="203.0.113.2") == 429
    assert status(other.envelope()) == 202
    assert ReceivedEnvelope.objects.count() == 1


def test_what_anyone_can_send_counts_for_the_address(
    status: Callable[..., int], peer: ForeignPeer
) -> None:
    elsewhere = peer.envelope(to=["did:web:elsewhere.example"])
    old = peer.envelope(ts="2026-01-01T00:00:00Z")
    assert [status(envelope) for envelope in (elsewhere, old, peer.envelope())] == [403, 401, 429]
    assert status(peer.envelope(), address="203.0.113.2") == 202
    assert ReceivedEnvelope.objects.count() == 1


@pytest.mark.parametrize(("sender", "of_another"), [("did:web:bad.example", 401), (UNKNOWN, 429)])
def test_a_sender_that_is_refused_behind_a_hub_does_not_block_the_others(
    status: Callable[..., int], peer: ForeignPeer, sender: str, of_another: int
) -> None:
    add_peer("hub.example")
    add_peer("bad.example")
    refused = [status(forged(peer, **{"from": sender}), relay=HUB) for _ in range(3)]
    assert refused == [401, 401, 429]
    # The names of servers that are not peers count together.
    unknown = forged(peer, **{"from": "did:web:another.example"})
    assert status(unknown, relay=HUB) == of_another
    assert status(peer.envelope(), relay=HUB) == 202
    assert status(peer.envelope()) == 202
    assert ReceivedEnvelope.objects.count() == 2


def test_a_server_that_is_not_a_peer_cannot_be_a_hub(
    status: Callable[..., int], peer: ForeignPeer
) -> None:
    bad = forged(peer, **{"from": UNKNOWN})
    assert [status(bad, relay=HUB) for _ in range(2)] == [401, 401]
    assert status(peer.envelope(), relay=HUB) == 429
    assert not ReceivedEnvelope.objects.exists()


def test_naming_another_hub_gives_no_further_limit(
    status: Callable[..., int], peer: ForeignPeer
) -> None:
    add_peer("hub.example")
    add_peer("other.example")
    bad = forged(peer, **{"from": UNKNOWN})
    assert [status(bad, relay=HUB) for _ in range(2)] == [401, 401]
    assert status(bad, relay="did:web:other.example") == 429


def test_envelopes_beyond_the_limit_of_a_name_count_for_their_address(
    status: Callable[..., int], peer: ForeignPeer
) -> None:
    add_peer("hub.example")
    bad = forged(peer)
    assert [status(bad, relay=HUB) for _ in range(2)] == [401, 401]
    # The peer's name is spent at this address; what still comes in it is refused unverified.
    assert [status(bad) for _ in range(2)] == [429, 429]
    stranger = forged(peer, **{"from": UNKNOWN})
    assert status(stranger) == 429
    assert status(stranger, address="203.0.113.2") == 401
