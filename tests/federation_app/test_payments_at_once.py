"""Several payments on one socket: each runs by itself, and a demand is paid once."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from federation_app.edges.websocket import PAYMENTS_AT_ONCE, EnvelopeSocket
from federation_app.exchange import turns
from payments_app.models import Receipt
from tests.client import wait_until
from tests.federation_app.peer import ForeignPeer, Records, add_peer
from tests.federation_app.test_chain_payments import (
    PRICE,
    SELLER,
    ask,
    paid_with,
    proof_of,
    seller,
)
from tests.federation_app.test_websocket import error_of
from tests.payments_app.x402.conftest import chain
from tests.payments_app.x402.payment_headers import PAY_TO
from tests.sessions_app.billing.paid_agents import clean, earned, token_of, usd

if TYPE_CHECKING:
    import threading

    from agents_app.models import Agent
    from tests.conftest import ServerAddress
    from tests.live_server import Person
    from tests.payments_app.x402.facilitator import Facilitator

__all__ = ["chain", "seller"]

pytestmark = pytest.mark.django_db(transaction=True)


def paid_by_token(peer: ForeignPeer, token: str, stream: str) -> Any:
    """Return the `confirm` of a payment with a token."""
    content = json.dumps({"payment": {"scheme": "token", "token": token}})
    return peer.envelope("confirm", content, to=[SELLER], stream_id=stream)


@pytest.fixture
def settlement(chain: Facilitator) -> threading.Lock:
    """Return the lock of the chain: while it is held, nothing is settled."""
    return chain.chain


def test_two_payments_for_one_demand_pay_it_once(
    federated: ServerAddress, chain: Facilitator, seller: Agent, settlement: threading.Lock
) -> None:
    peer = add_peer()
    with Records(federated.ws) as records:
        ask(records, peer)
        with settlement:
            first, second = (paid_with(peer, proof_of()) for _ in range(2))
            records.send(first)
            wait_until(lambda: chain.asked["settle"] == 1)
            records.send(second)
            wait_until(lambda: any(lock._waiters for lock in list(turns._payments.values())))
        refusals: list[tuple[str, str]] = []
        deltas: list[str] = []
        while len(refusals) < 1 or deltas[-1:] != ["done"]:
            record = records.receive()
            if "intent" in record:
                refusals.append((record["reply_to"], error_of(record)["detail"]))
            else:
                deltas.append(record["type"])
        assert refusals == [(second["id"], "payment_not_due")]
    assert chain.asked["settle"] == 1
    assert chain.received == Counter({PAY_TO: 250_000})
    assert Receipt.objects.count() == 1
    wait_until(lambda: earned(seller) == PRICE)
    assert clean()


def test_a_payment_does_not_wait_for_one_that_is_settled(
    federated: ServerAddress,
    chain: Facilitator,
    alice: Person,
    seller: Agent,
    settlement: threading.Lock,
) -> None:
    peer, token = add_peer(), token_of(alice)
    with Records(federated.ws) as records:
        ask(records, peer)
        ask(records, peer, "str-2")
        with settlement:
            records.send(paid_with(peer, proof_of()))
            wait_until(lambda: chain.asked["settle"] == 1)
            records.send(paid_by_token(peer, token, "str-2"))
            assert {delta["stream_id"] for delta in records.until("done", "error")} == {"str-2"}
        assert {delta["stream_id"] for delta in records.until("done", "error")} == {"str-1"}
    wait_until(lambda: earned(seller) == str(usd("0.50")))
    assert clean()


async def test_a_socket_has_a_number_of_payments_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[bytes] = []
    ended = asyncio.Event()

    async def take(_socket: EnvelopeSocket, record: bytes) -> None:
        begun.append(record)
        await asyncio.wait_for(ended.wait(), 60)

    monkeypatch.setattr(EnvelopeSocket, "_take", take)
    socket: Any = EnvelopeSocket.__new__(EnvelopeSocket)
    socket._payments = set()
    socket._process = SimpleNamespace(
        spawn=lambda acting, name: asyncio.create_task(acting, name=name)
    )

    async def read() -> None:
        for number in range(PAYMENTS_AT_ONCE + 1):
            await socket._take_beside(b"%d" % number)

    reading = asyncio.create_task(read())
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(begun) == PAYMENTS_AT_ONCE
    assert not reading.done()
    ended.set()
    await asyncio.wait_for(reading, 60)
    await asyncio.wait_for(asyncio.gather(*socket._payments), 60)
    assert len(begun) == PAYMENTS_AT_ONCE + 1
    assert not socket._payments
