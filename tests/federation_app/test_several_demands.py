"""Answers that wait for several payments at once: proposed and paid one after another."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from federation_app.models import ReceivedEnvelope
from payments_app.models import Receipt
from sessions_app.models import PaymentRequest
from tests.client import wait_until
from tests.federation_app.peer import SERVER, ForeignPeer, Records, add_peer, text_of
from tests.federation_app.test_chain_payments import proof_of
from tests.federation_app.test_paid_and_allowed import demand_of
from tests.federation_app.test_websocket import error_of
from tests.payments_app.x402.conftest import chain
from tests.sessions_app.billing.paid_agents import clean, earned, token_of, usd
from tests.sessions_app.turn.delegation import doer
from tests.sessions_app.turn.team_tools import order

if TYPE_CHECKING:
    from agents_app.models import Agent
    from tests.conftest import ServerAddress
    from tests.live_server import Person
    from tests.payments_app.x402.facilitator import Facilitator

__all__ = ["chain"]

pytestmark = pytest.mark.django_db(transaction=True)
BOSS = f"{SERVER}:agents:boss"
PRICES = {"cheap": "0.10", "dear": "0.25"}


@pytest.fixture
def team(demo: object) -> dict[str, Agent]:
    """Give two priced agents, and one that passes work on to both at once."""
    doer("boss", *PRICES)
    return {name: doer(name, pricing={"per_answer": price}) for name, price in PRICES.items()}


def work_for(first: str, second: str) -> str:
    """Return the order to pass work on to two agents."""
    first_call, second_call = (
        {"call": "delegate", "arguments": {"agent": name, "task": order(say="done")}}
        for name in (first, second)
    )
    return order(**second_call, also=first_call)


def confirm(peer: ForeignPeer, payment: dict[str, Any], **members: Any) -> Any:
    """Return the `confirm` of a payment."""
    content = json.dumps({"payment": payment, **members})
    return peer.envelope("confirm", content, to=[BOSS], stream_id="str-1")


def usual(price: str) -> str:
    """Return a price as the ledger writes it."""
    return str(usd(price))


def both_wait() -> bool:
    """Return whether both agents wait for their payment."""
    return PaymentRequest.objects.filter(status="waiting").count() == len(PRICES)


@pytest.mark.parametrize("way", ["token", "chain"])
@pytest.mark.parametrize("order_of_work", [("cheap", "dear"), ("dear", "cheap")])
def test_demands_are_proposed_and_paid_one_after_another(
    federated: ServerAddress,
    chain: Facilitator,
    alice: Person,
    team: dict[str, Agent],
    order_of_work: tuple[str, str],
    way: str,
) -> None:
    peer = add_peer()
    token = token_of(alice)
    with Records(federated.ws) as records:
        records.send(peer.envelope(content=work_for(*order_of_work), to=[BOSS], stream_id="str-1"))
        proposed: list[str] = []
        for _ in PRICES:
            needed = demand_of(records.receive(), BOSS)
            agent = needed["extra"]["agent"]
            assert needed["amount"] == usual(PRICES[agent])
            if not proposed:
                wait_until(both_wait)
            proposed.append(agent)
            payment = (
                {"scheme": "token", "token": token}
                if way == "token"
                else {"scheme": "exact", "proof": proof_of(PRICES[agent], agent)}
            )
            records.send(confirm(peer, payment, response_id=needed["extra"]["response_id"]))
            wait_until(lambda: earned(team[proposed[-1]]) == usual(PRICES[proposed[-1]]))
        assert text_of(records.until("done", "error")) == "received: done"
    first = PaymentRequest.objects.order_by("id")[0].response.agent.name
    assert proposed[0] == first
    assert {*proposed} == {*PRICES}
    assert clean()


@pytest.mark.parametrize("way", ["token", "chain"])
def test_a_payment_names_its_demand_if_several_are_due(
    federated: ServerAddress, chain: Facilitator, alice: Person, team: dict[str, Agent], way: str
) -> None:
    """Any of them may be paid first, and the last one needs no name."""
    peer = add_peer()
    token = token_of(alice)

    def paid(agent: str) -> dict[str, Any]:
        if way == "token":
            return {"scheme": "token", "token": token}
        return {"scheme": "exact", "proof": proof_of(PRICES[agent], agent)}

    with Records(federated.ws) as records:
        records.send(peer.envelope(content=work_for("cheap", "dear"), to=[BOSS], stream_id="str-1"))
        first = demand_of(records.receive(), BOSS)["extra"]["agent"]
        wait_until(both_wait)
        rows = list(PaymentRequest.objects.order_by("id").values_list("response_id", flat=True))
        records.send(confirm(peer, paid(first)))
        error = error_of(records.receive())
        assert (error["code"], error["detail"]) == ("4.09", "response_id")
        assert error["response_ids"] == rows
        assert all(response_id in error["message"] for response_id in rows)
        assert not ReceivedEnvelope.objects.filter(intent="confirm").exists()
        assert not chain.asked
        assert both_wait()
        other = next(name for name in PRICES if name != first)
        records.send(confirm(peer, paid(other), response_id=rows[1]))
        wait_until(lambda: earned(team[other]) == usual(PRICES[other]))
        assert earned(team[first]) == "0"
        records.send(confirm(peer, paid(first)))
        assert text_of(records.until("done", "error")) == "received: done"
    wait_until(lambda: earned(team[first]) == usual(PRICES[first]))
    assert clean()


def test_a_payment_for_another_response_is_not_due(
    federated: ServerAddress, chain: Facilitator, team: dict[str, Agent]
) -> None:
    """Nothing is settled, and the demand that was proposed keeps waiting."""
    peer = add_peer()
    with Records(federated.ws) as records:
        records.send(peer.envelope(content=work_for("cheap", "dear"), to=[BOSS], stream_id="str-1"))
        agent = demand_of(records.receive(), BOSS)["extra"]["agent"]
        payment = {"scheme": "exact", "proof": proof_of(PRICES[agent], agent)}
        for response_id, code in (("resp_other", "4.00"), (7, "4.00")):
            records.send(confirm(peer, payment, response_id=response_id))
            assert error_of(records.receive())["code"] == code
        assert not chain.asked
        assert not Receipt.objects.exists()
        records.send(peer.envelope("cancel", "", to=[BOSS], stream_id="str-1"))
        assert records.until("cancel", "done", "error")[-1]["type"] == "cancel"
    wait_until(clean)
