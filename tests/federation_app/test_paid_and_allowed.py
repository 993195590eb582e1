"""Asks of peers that have to be paid, or whose tools a person would have to allow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.models import Agent
from federation_app.envelope.members.reading import envelope_of
from federation_app.envelope.signatures.signature import verify_signature
from federation_app.models import EnvelopeStream, ReceivedEnvelope
from federation_app.own_names import own_keys
from payments_app.spending import approvals
from sessions_app.models import Response
from tests.client import wait_until
from tests.federation_app.peer import SERVER, ForeignPeer, Records, add_peer, text_of
from tests.federation_app.test_websocket import error_of
from tests.sessions_app.billing.paid_agents import (
    clean,
    earned,
    priced,
    rich,
    token_of,
    usd,
    wallet,
)
from tests.sessions_app.turn.delegation import doer, task_for
from tests.sessions_app.turn.team_tools import order

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import ServerAddress
    from tests.live_server import Person

pytestmark = pytest.mark.django_db(transaction=True)
STEPS = "tests.sessions_app.turn.team_tools.STEPS"


@pytest.fixture
def steps(settings: Any) -> None:
    """Have a tool that leaves a line in a journal."""
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, STEPS]


def test_the_account_of_a_peer_pays_what_it_agreed_to(
    federated: ServerAddress, alice: Person
) -> None:
    agent = priced("seller", per_answer="0.25")
    to = [f"{SERVER}:agents:seller"]
    peer = add_peer("payer.example", user=rich(alice).user)
    with Records(federated.ws) as records:
        approvals.approve(alice.user.pk, agent.pk, usd("1"))
        ask = peer.envelope(content="hello there", to=to)
        records.send(ask)
        assert text_of(records.until("done", "error")) == "hello there"
        # The same question again is neither answered nor paid twice.
        records.send(ask)
        assert text_of(records.until("done", "error")) == "hello there"
    wait_until(lambda: earned(agent) == "0.25")
    assert str(wallet(alice).available) == "9.75"
    assert clean()


def demand_of(delta: Any, did: str) -> Any:
    """Return the requirements in the signed `propose` of a delta."""
    assert (delta["type"], delta["payload"]["stage"]) == ("progress", "payment_required")
    envelope = envelope_of(delta["payload"]["envelope"])
    assert envelope.intent == "propose"
    verify_signature(envelope.digests(), envelope.sig, sender=did, keys=own_keys(did))
    return json.loads(envelope.body.content)


def paid_by(peer: ForeignPeer, to: list[str], **payment: Any) -> Any:
    """Return the `confirm` of a payment."""
    content = json.dumps({"payment": payment})
    return peer.envelope("confirm", content, to=to, stream_id="str-1")


@pytest.fixture
def seller() -> Agent:
    """Return an agent that is paid for each answer."""
    return priced("seller", per_answer="0.25")


def test_a_peer_pays_with_a_token_for_an_answer_that_waits(
    federated: ServerAddress, alice: Person, seller: Agent
) -> None:
    """Neither the peer nor its account has agreed to the price beforehand."""
    did = f"{SERVER}:agents:seller"
    peer = add_peer("payer.example", user=rich(alice).user)
    token = token_of(alice)
    with Records(federated.ws) as records:
        records.send(peer.envelope(content="hello there", to=[did], stream_id="str-1"))
        demand = demand_of(records.receive(), did)
        assert (demand["amount"], demand["currency"]) == ("0.25", "USD")
        for code, payment in (
            ("4.03", {"scheme": "balance"}),
            ("4.02", {"scheme": "token", "token": "ptok_none"}),
            ("4.02", {"scheme": "token", "token": token, "amount": "0.1"}),
            ("4.00", {"token": token}),
            ("4.00", {"scheme": 7}),
        ):
            records.send(paid_by(peer, [did], **payment))
            assert error_of(records.receive())["code"] == code, payment
        assert not ReceivedEnvelope.objects.filter(intent="confirm").exists()
        assert earned(seller) == "0"
    # Another reader, which receives the same demand.
    with Records(federated.ws) as records:
        records.send(peer.envelope("subscribe", "", to=[did], stream_id="str-1"))
        assert demand_of(records.receive(), did) == demand
        confirm = paid_by(peer, [did], scheme="token", token=token)
        records.send(confirm)
        records.send(confirm)
        deltas = records.until("done", "error")
        assert text_of(deltas) == "hello there"
        # Nothing waits any more.
        late = paid_by(peer, [did], scheme="token", token=token)
        records.send(late)
        refused = records.receive()
        assert error_of(refused)["detail"] == "payment_not_due"
        assert refused["reply_to"] == late["id"], "the repeated one was not refused"
    wait_until(lambda: earned(seller) == "0.25")
    assert clean()


def test_a_demand_is_declined(federated: ServerAddress, seller: Agent) -> None:
    did, peer = f"{SERVER}:agents:seller", add_peer()
    with Records(federated.ws) as records:
        records.send(peer.envelope(to=[did], stream_id="str-1"))
        demand_of(records.receive(), did)
        records.send(peer.envelope("deny", "", to=[did], stream_id="str-1"))
        assert records.until("cancel", "done", "error")[-1]["type"] == "cancel"
    assert Response.objects.get().status == "cancelled"
    assert earned(seller) == "0"
    assert clean()


def test_a_payment_that_does_not_come_ends_the_answer(
    federated: ServerAddress, seller: Agent, settings: Any
) -> None:
    settings.UAMP_PAYMENT_SECONDS = 1
    did, peer = f"{SERVER}:agents:seller", add_peer()
    with Records(federated.ws) as records:
        records.send(peer.envelope(to=[did], stream_id="str-1"))
        end = records.until("done", "cancel", "error")[-1]
    assert (end["type"], end["payload"]["code"]) == ("error", "4.02")
    assert earned(seller) == "0"


def test_another_peer_neither_pays_nor_declines(federated: ServerAddress, seller: Agent) -> None:
    did, peer, other = f"{SERVER}:agents:seller", add_peer(), add_peer("other.example")
    with Records(federated.ws) as records:
        records.send(peer.envelope(to=[did], stream_id="str-1"))
        demand_of(records.receive(), did)
        records.send(paid_by(other, [did], scheme="token", token="ptok_none"))
        assert error_of(records.receive())["code"] == "4.04"
        records.send(other.envelope("deny", "", to=[did], stream_id="str-1"))
        assert error_of(records.receive())["code"] == "4.04"
    assert Response.objects.get().status not in {"cancelled", "failed"}


def test_an_answer_that_a_person_would_have_to_allow_ends_without_its_tool(
    steps: None, federated: ServerAddress, tmp_path: Path
) -> None:
    Agent.objects.create(
        name="guarded",
        is_public=True,
        options={"script": "doer"},
        tools=["steps"],
        approvals=["steps"],
    )
    journal = tmp_path / "journal"
    task = order(call="steps", arguments={"steps": 1, "pause": 0, "journal": str(journal)})
    peer = add_peer()
    with Records(federated.ws) as records:
        records.send(peer.envelope(content=task, to=[f"{SERVER}:agents:guarded"]))
        end = records.until("done", "error", "cancel")[-1]
    assert (end["type"], end["payload"]["code"]) == ("error", "4.03")
    response_id = EnvelopeStream.objects.get().response_id
    wait_until(lambda: Response.objects.get(pk=response_id).status == "cancelled")
    assert not journal.exists()


def test_a_peer_pays_for_the_work_that_its_answer_delegated(
    federated: ServerAddress, alice: Person, seller: Agent
) -> None:
    seller.options = {"script": "doer"}
    seller.save()
    doer("boss", "seller")
    did, peer = f"{SERVER}:agents:boss", add_peer("payer.example", user=rich(alice).user)
    task = task_for("seller", order(say="done"))
    with Records(federated.ws) as records:
        records.send(peer.envelope(content=task, to=[did], stream_id="str-1"))
        demand = demand_of(records.receive(), did)
        assert (demand["amount"], demand["extra"]["agent"]) == ("0.25", "seller")
        records.send(paid_by(peer, [did], scheme="token", token=token_of(alice)))
        assert text_of(records.until("done", "error")) == "received: done"
    wait_until(lambda: earned(seller) == "0.25")
    assert clean()
