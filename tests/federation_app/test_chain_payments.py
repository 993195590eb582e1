"""Answers of paid agents that a peer pays for on a chain (x402), with a `confirm`."""

from __future__ import annotations

import base64
import json
import socket
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest
from django.utils import timezone
from eth_account import Account

from federation_app.models import ReceivedEnvelope
from payments_app.models import PaymentToken, Receipt
from sessions_app.models import PaymentRequest, Response
from sessions_app.transports import payment_threads
from tests.client import wait_until
from tests.federation_app.peer import SERVER, ForeignPeer, Records, add_peer, text_of
from tests.federation_app.test_paid_and_allowed import demand_of
from tests.federation_app.test_websocket import error_of
from tests.payments_app.x402.conftest import chain
from tests.payments_app.x402.payment_headers import PAY_TO, demand, signed
from tests.sessions_app.billing.paid_agents import clean, earned, priced

if TYPE_CHECKING:
    from agents_app.models import Agent
    from tests.conftest import ServerAddress
    from tests.payments_app.x402.facilitator import Facilitator

__all__ = ["chain"]

pytestmark = pytest.mark.django_db(transaction=True)
SELLER = f"{SERVER}:agents:seller"
PRICE = "0.25"


@pytest.fixture
def seller() -> Agent:
    """Return an agent that is paid for each answer."""
    return priced("seller", per_answer=PRICE)


def proof_of(price: str = PRICE, agent: str = "seller") -> Any:
    """Return an x402 payment that the official client has signed."""
    header = signed(demand(price, agent), Account.create())
    return json.loads(base64.b64decode(header["PAYMENT-SIGNATURE"]))


def paid_with(
    peer: ForeignPeer, proof: Any, stream: str = "str-1", to: str = SELLER, **terms: str
) -> Any:
    """Return the `confirm` of a payment on a chain."""
    content = json.dumps({"payment": {"scheme": "exact", "proof": proof, **terms}})
    return peer.envelope("confirm", content, to=[to], stream_id=stream)


def ask(
    records: Records, peer: ForeignPeer, stream: str = "str-1", to: str = SELLER, **members: Any
) -> Any:
    """Ask an agent, and return its demand for payment."""
    records.send(peer.envelope(content="hello there", to=[to], stream_id=stream, **members))
    return demand_of(records.receive(), to)


def refusal(records: Records, confirm: Any) -> tuple[str, str]:
    """Return the code and the detail of the error for an envelope."""
    records.send(confirm)
    error = records.receive()
    assert error["reply_to"] == confirm["id"]
    return error_of(error)["code"], error_of(error)["detail"]


def test_a_peer_pays_on_a_chain_for_an_answer_that_waits(
    federated: ServerAddress, chain: Facilitator, seller: Agent
) -> None:
    """The peer has no account here. The same payment is settled, and pays, once."""
    peer = add_peer()
    with Records(federated.ws) as records:
        needed = ask(records, peer)
        offers = needed["extra"]["x402"]
        (offer,) = offers["accepts"]
        assert (offers["x402Version"], offer["scheme"], offer["amount"]) == (2, "exact", "250000")
        assert offer["payTo"] == PAY_TO
        assert needed["schemes"][-1] == {
            "scheme": "exact",
            "network": offer["network"],
            "address": PAY_TO,
        }
        confirm = paid_with(peer, proof_of())
        records.send(confirm)
        records.send(confirm)
        assert text_of(records.until("done", "error")) == "hello there"
        late = paid_with(peer, proof_of())
        assert refusal(records, late) == ("4.00", "payment_not_due")
    assert (chain.asked["settle"], chain.received[PAY_TO]) == (1, 250_000)
    wait_until(lambda: earned(seller) == PRICE)
    assert PaymentToken.objects.count() == 1
    assert clean()


def test_without_a_facilitator_nothing_is_offered_or_taken(
    federated: ServerAddress, seller: Agent
) -> None:
    peer = add_peer()
    with Records(federated.ws) as records:
        needed = ask(records, peer)
        assert [scheme["scheme"] for scheme in needed["schemes"]] == ["token"]
        assert "x402" not in needed["extra"]


TERMS: dict[str, dict[str, str]] = {
    "another network": {"network": "eip155:1"},
    "another currency": {"currency": "CREDITS"},
    "a lower amount": {"amount": "0.24"},
    "no amount": {"amount": "much"},
}
OTHER_ADDRESS = "0x" + "cd" * 20
REFUSED: dict[str, Any] = {
    "another network": lambda: _accepting(proof_of(), network="eip155:1"),
    "another receiver": lambda: _accepting(proof_of(), payTo=OTHER_ADDRESS),
    "another asset": lambda: _accepting(proof_of(), asset=OTHER_ADDRESS),
    "too little": lambda: proof_of("0.24"),
    "expired": lambda: _expired(proof_of()),
    "altered": lambda: _altered(proof_of(), value="260000"),
    "another scheme": lambda: {**proof_of(), "accepted": {"scheme": "token"}},
    "no payment": lambda: {"x402Version": 7},
}


def _accepting(proof: Any, **terms: str) -> Any:
    proof["accepted"].update(terms)
    return proof


def _altered(proof: Any, **authorization: str) -> Any:
    proof["payload"]["authorization"].update(authorization)
    return proof


def _expired(proof: Any) -> Any:
    return _altered(proof, validBefore="1000")


def test_a_payment_that_does_not_meet_the_demand_is_refused_and_the_answer_waits(
    federated: ServerAddress, chain: Facilitator, seller: Agent
) -> None:
    peer = add_peer()
    with Records(federated.ws) as records:
        ask(records, peer)
        for name, proof in REFUSED.items():
            confirm = paid_with(peer, proof())
            assert refusal(records, confirm)[0] == "4.02", name
        for name, terms in TERMS.items():
            confirm = paid_with(peer, proof_of(), **terms)
            assert refusal(records, confirm)[0] == "4.02", name
        for proof in ("token", None, {"long": "x" * 20_000}):
            assert refusal(records, paid_with(peer, proof))[0] == "4.00", proof
        assert not chain.settled
        assert not Receipt.objects.exists()
        assert not ReceivedEnvelope.objects.filter(intent="confirm").exists()
        assert PaymentRequest.objects.get().status == "waiting"
        good = {"network": "eip155:8453", "currency": "USD", "amount": PRICE}
        records.send(paid_with(peer, proof_of(), **good))
        assert text_of(records.until("done", "error")) == "hello there"
    wait_until(lambda: earned(seller) == PRICE)
    assert clean()


def test_a_payment_is_of_the_peer_that_sent_it_and_of_the_agent_it_paid(
    federated: ServerAddress, chain: Facilitator, seller: Agent
) -> None:
    """The unspent rest pays that agent again, for the same peer alone."""
    dearer = priced("dearer", per_answer="0.05")
    peer, thief = add_peer(), add_peer("other.example")
    proof = proof_of("0.40")
    with Records(federated.ws) as records:
        ask(records, peer)
        records.send(paid_with(peer, proof))
        assert text_of(records.until("done", "error")) == "hello there"
        wait_until(lambda: earned(seller) == PRICE)
    seller.pricing = {"per_answer": "0.10"}
    seller.save()
    to = f"{SERVER}:agents:dearer"
    with Records(federated.ws) as records:
        ask(records, peer, "str-2", to)
        other_agent = paid_with(peer, proof, "str-2", to)
        assert refusal(records, other_agent) == ("4.02", "payment_required")
        ask(records, thief, "str-3")
        assert refusal(records, paid_with(thief, proof, "str-3"))[0] == "4.02"
        ask(records, peer, "str-4")
        records.send(paid_with(peer, proof, "str-4"))
        assert text_of(records.until("done", "error")) == "hello there"
        ask(records, peer, "str-5")
        assert refusal(records, paid_with(peer, proof, "str-5"))[0] == "4.02", "used up"
    assert chain.asked["settle"] == 1
    wait_until(lambda: earned(seller) == "0.35")
    assert earned(dearer) == "0"


def test_a_payment_whose_outcome_was_lost_is_settled_once_when_it_is_sent_again(
    federated: ServerAddress, chain: Facilitator, seller: Agent
) -> None:
    peer = add_peer()
    with Records(federated.ws) as records:
        ask(records, peer)
        confirm = paid_with(peer, proof_of())
        chain.mode = "500 after settling"
        assert refusal(records, confirm) == ("4.02", "payment_required")
        assert Receipt.objects.get().state == "submitted"
        chain.mode = "ok"
        records.send(confirm)
        assert text_of(records.until("done", "error")) == "hello there"
    assert (len(chain.settled), chain.received[PAY_TO]) == (1, 250_000)
    wait_until(lambda: earned(seller) == PRICE)
    assert clean()


def test_a_payment_for_an_answer_cancelled_before_it_settled_pays_for_the_next(
    federated: ServerAddress, chain: Facilitator, seller: Agent
) -> None:
    """It settles while the answer ends; the money stays with the peer.

    The same socket goes on reading meanwhile.
    """
    peer = add_peer()
    proof = proof_of()
    chain.mode = "late"
    with Records(federated.ws) as records:
        ask(records, peer)
        records.send(paid_with(peer, proof))
        wait_until(lambda: bool(chain.settled))
        records.send(peer.envelope("cancel", "", to=[SELLER], stream_id="str-1"))
        assert records.receive()["type"] == "cancel"
        error = error_of(records.receive())
        assert (error["code"], error["detail"]) == ("4.00", "payment_not_due")
        assert "for the next one of its agent" in error["message"]
        assert "charged" not in error["message"]
        assert Response.objects.get().status == "cancelled"
        chain.mode = "ok"
        ask(records, peer, "str-2")
        records.send(paid_with(peer, proof, "str-2"))
        assert text_of(records.until("done", "error")) == "hello there"
    assert chain.received[PAY_TO] == 250_000
    assert chain.asked["settle"] == 1
    wait_until(lambda: earned(seller) == PRICE)
    assert clean()


def test_a_payment_for_a_demand_that_is_over_is_not_settled(
    federated: ServerAddress, chain: Facilitator, seller: Agent
) -> None:
    peer = add_peer()
    with Records(federated.ws) as records:
        ask(records, peer)
        PaymentRequest.objects.update(deadline=timezone.now() - timedelta(seconds=1))
        records.send(paid_with(peer, proof_of()))
        codes = {error_of(record)["code"] for record in two(records) if "intent" in record}
        assert codes == {"4.00"}
    assert not chain.asked
    assert not Receipt.objects.exists()


def two(records: Records) -> list[Any]:
    """Return the refusal of an envelope and the end of its stream, in either order."""
    return [records.receive(), records.receive()]


def test_payments_are_counted_once_and_before_they_are_settled(
    federated: ServerAddress, chain: Facilitator, seller: Agent, settings: Any
) -> None:
    settings.UAMP_ANONYMOUS_PAYMENTS_PER_MINUTE = settings.UAMP_PAYMENTS_PER_MINUTE = 1
    peer = add_peer()
    with Records(federated.ws) as records:
        ask(records, peer)
        records.send(paid_with(peer, proof_of()))
        assert text_of(records.until("done", "error")) == "hello there"
        ask(records, peer, "str-2")
        assert refusal(records, paid_with(peer, proof_of(), "str-2"))[0] == "4.29"
    assert chain.asked["settle"] == 1


def test_a_client_that_leaves_while_its_payment_is_settled_sends_it_again(
    federated: ServerAddress, chain: Facilitator, seller: Agent
) -> None:
    """Nothing is settled twice, and the answer is paid meanwhile."""
    peer = add_peer()
    chain.mode = "one at a time"
    with Records(federated.ws) as records:
        ask(records, peer)
        confirm = json.dumps(paid_with(peer, proof_of())).encode()
        host, port = urlsplit(federated.http).hostname, urlsplit(federated.http).port
        with socket.create_connection((host, port), timeout=60) as leaving:
            lines = (
                "POST /v1/messages HTTP/1.1", f"Host: {host}:{port}",
                "Content-Type: application/uamp+json", f"Content-Length: {len(confirm)}", "\r\n",
            )  # fmt: skip
            leaving.sendall("\r\n".join(lines).encode() + confirm)
            wait_until(lambda: bool(chain.settled))
        headers = {"Content-Type": "application/uamp+json"}
        url = f"{federated.http}/v1/messages"
        again = httpx.post(url, content=confirm, headers=headers, timeout=60, trust_env=False)
        assert again.status_code == httpx.codes.ACCEPTED, again.text
        assert text_of(records.until("done", "error")) == "hello there"
    assert (chain.asked["settle"], chain.received[PAY_TO]) == (1, 250_000)
    wait_until(lambda: earned(seller) == PRICE)
    assert clean()


def test_two_payments_at_once_are_both_of_the_payer(
    federated: ServerAddress, chain: Facilitator, seller: Agent
) -> None:
    """The second is not reported as failed: its money has paid for the answer."""
    peer, proof = add_peer(), proof_of()
    chain.mode = "one at a time"
    with Records(federated.ws) as records, Records(federated.ws) as other:
        ask(records, peer)
        records.send(paid_with(peer, proof))
        # The socket that follows the answer is first, and its money is under way.
        wait_until(lambda: bool(chain.asked))
        other.send(paid_with(peer, proof))
        error = error_of(other.receive())
        assert "used up" in error["message"] or error["detail"] == "payment_not_due", error
        assert text_of(records.until("done", "error")) == "hello there"
    assert chain.received[PAY_TO] == 250_000
    wait_until(lambda: earned(seller) == PRICE)
    assert clean()


def test_a_demand_that_expires_while_its_payment_waits_for_a_thread_settles_nothing(
    federated: ServerAddress, chain: Facilitator, seller: Agent, settings: Any
) -> None:
    settings.UAMP_PAYMENT_SECONDS = 3
    peer, others = add_peer(), threading.Event()
    for _ in range(payment_threads.THREADS):
        payment_threads.threads.submit(others.wait, 60)
    try:
        with Records(federated.ws) as records:
            ask(records, peer)
            records.send(paid_with(peer, proof_of()))
            deadline = PaymentRequest.objects.get().deadline
            wait_until(lambda: timezone.now() > deadline)
            others.set()
            codes = {error_of(record)["code"] for record in two(records) if "intent" in record}
        assert codes == {"4.00"}
    finally:
        others.set()
    assert not chain.asked
    assert not Receipt.objects.exists()
