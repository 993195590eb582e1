"""Asks of peers that have to be paid, or whose tools a person would have to allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agents_app.models import Agent
from federation_app.models import EnvelopeStream, ReceivedEnvelope
from payments_app.spending import approvals
from sessions_app.models import Response
from tests.client import wait_until
from tests.federation_app.peer import SERVER, Records, add_peer, text_of
from tests.federation_app.test_websocket import error_of
from tests.sessions_app.billing.paid_agents import clean, earned, priced, rich, usd, wallet
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
    without, peer = add_peer("poor.example"), add_peer("payer.example", user=rich(alice).user)
    with Records(federated.ws) as records:
        for one in (without, peer):
            records.send(one.envelope(to=to))
            assert error_of(records.receive())["code"] == "4.02", "the price was not agreed to"
        assert not ReceivedEnvelope.objects.exists()
        assert not EnvelopeStream.objects.exists()
        assert not Response.objects.exists()
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
