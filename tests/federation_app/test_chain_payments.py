"""Answers of paid agents that a peer pays for on a chain (x402), with a `confirm`."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone
from eth_account import Account

from federation_app.models import ReceivedEnvelope
from payments_app.models import PaymentToken, Receipt
from sessions_app.models import PaymentRequest, Response
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


def proof_of(price: str = PRICE) -> Any:
    """Return an x402 payment that the official client has signed."""
    header = signed(demand(price, "seller"), Account.create())
    return json.loads(base64.b64decode(header["PAYMENT-SIGNATURE"]))


def paid_with(peer: ForeignPeer, proof: Any, stream: str = "str-1", to: str = SELLER) -> Any:
    """Return the `confirm` of a payment on a chain."""
    content = json.dumps({"payment": {"scheme": "exact", "proof": proof}})
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
        for proof in ("token", None, {"long": "x" * 20_000}):
            assert refusal(records, paid_with(peer, proof))[0] == "4.00", proof
        assert not chain.settled
        assert not Receipt.objects.exists()
        assert not ReceivedEnvelope.objects.filter(intent="confirm").exists()
        assert PaymentRequest.objects.get().status == "waiting"
        records.send(paid_with(peer, proof_of()))
        assert text_of(records.until("done", "error")) == "hello there"
    wait_until(lambda: earned(seller) == PRICE)
    assert clean()


def test_a_payment_is_of_the_peer_that_sent_it_and_of_the_agent_it_paid(
    federated: ServerAddress, chain: Facilitator, seller: Agent
) -> None:
    """What it has left over pays that agent again, for the same peer alone."""
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


def test_a_payment_for_an_answer_that_was_cancelled_meanwhile_pays_for_the_next(
    federated: ServerAddress, chain: Facilitator, seller: Agent
) -> None:
    """It settles while the answer ends; the money stays with the peer."""
    peer = add_peer()
    proof = proof_of()
    chain.mode = "late"
    with Records(federated.ws) as paying, Records(federated.ws) as records:
        ask(records, peer)
        paying.send(paid_with(peer, proof))
        wait_until(lambda: bool(chain.settled))
        records.send(peer.envelope("cancel", "", to=[SELLER], stream_id="str-1"))
        assert records.until("cancel", "done", "error")[-1]["type"] == "cancel"
        error = error_of(paying.receive())
        assert (error["code"], error["detail"]) == ("4.00", "payment_not_due")
        assert "the next answer" in error["message"]
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
