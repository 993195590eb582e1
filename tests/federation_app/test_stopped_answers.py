"""Answers to a peer that is no longer trusted end, and cost no more than what they delivered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import grpc
import pytest

from agents_app.models import Agent
from agents_app.providers import scripts
from federation_app.edges.http import ENVELOPE_MEDIA_TYPE
from federation_app.peers import registry
from federation_app.rpc import agent_pb2, agent_pb2_grpc
from payments_app.spending import approvals
from sessions_app.models import Response
from tests.client import wait_until
from tests.federation_app.peer import SERVER, ForeignPeer, Records, add_peer
from tests.live_server import quick_agent
from tests.sessions_app.access.test_standing import TEXT, half
from tests.sessions_app.billing.paid_agents import clean, earned, priced, rich, usd

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from federation_app.models import Peer
    from tests.conftest import ServerAddress
    from tests.live_server import Person

pytestmark = pytest.mark.django_db(transaction=True)


def switch_off(_peer: object = None) -> None:
    """Switch the agent off in this process, which forgets what it remembers of it."""
    agent = Agent.objects.get(name="half")
    agent.is_enabled = False
    agent.save()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("has_account", [False, True], ids=["visitor", "account"])
@pytest.mark.parametrize(
    ("lose", "code"),
    [
        (registry.revoke, "unauthorized"),
        (registry.suspend, "unauthorized"),
        (switch_off, "agent_disabled"),
    ],
)
def test_the_answer_to_a_peer_ends_with_its_trust_or_the_agent(
    federated: ServerAddress,
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
    lose: Callable[[Peer], object],
    code: str,
    has_account: bool,  # noqa: FBT001 a case of the table
) -> None:
    monkeypatch.setitem(scripts.SCRIPTS, "half", half)
    agent = priced("half", "half", **({"per_answer": "1"} if has_account else {}))
    approvals.approve(rich(alice).user.pk, agent.pk, usd("9"))
    peer = add_peer("payer.example", user=alice.user if has_account else None)
    with Records(federated.ws) as records:
        records.send(peer.envelope(content="talk", to=[f"{SERVER}:agents:half"]))
        wait_until(lambda: Response.objects.filter(text=TEXT).exists())
        lose(peer.row)
        wait_until(lambda: Response.objects.filter(status="failed").exists(), seconds=30)
    row = Response.objects.get()
    assert (row.status, (row.error or {})["code"]) == ("failed", code)
    assert row.text == TEXT
    wait_until(clean)
    if has_account:
        # The operator ended it: no more than a share of the price is due.
        assert usd("0") < usd(earned(agent)) < usd("1")
    else:
        assert earned(agent) == "0"


@pytest.mark.parametrize("transport", ["WebSocket", "gRPC", "HTTP"])
def test_a_peer_is_refused_by_an_agent_that_is_switched_off(
    federated: ServerAddress,
    web: httpx.Client,
    peer: ForeignPeer,
    request: pytest.FixtureRequest,
    transport: str,
) -> None:
    quick_agent("half", "echo")
    switch_off()
    ask = peer.envelope(to=[f"{SERVER}:agents:half"])
    if transport == "WebSocket":
        with Records(federated.ws) as records:
            records.send(ask)
            refusal = records.receive()["body"]["content"]
    elif transport == "gRPC":
        with grpc.insecure_channel(request.getfixturevalue("rpc_place")) as channel:
            stub = agent_pb2_grpc.AgentStub(channel)
            sent = agent_pb2.Record(json=json.dumps(ask).encode())
            (record,) = stub.Stream(iter([sent]), timeout=60)
            refusal = json.loads(record.json)["body"]["content"]
    else:
        headers = {"Content-Type": ENVELOPE_MEDIA_TYPE}
        refusal = web.post("/v1/messages", json=ask, headers=headers).text
    assert json.loads(refusal)["code"] == "4.04"
    assert "half is switched off." in refusal
    assert not Response.objects.exists()
