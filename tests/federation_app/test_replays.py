"""The same envelope at two server processes at once, on one PostgreSQL and one Redis."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from federation_app.envelope.signatures.keys import EnvelopeKey
from federation_app.models import Peer
from tests.federation_app.peer import HOST, SERVER, ForeignPeer, Records, text_of
from tests.journeys.cluster import running_cluster
from tests.threads import thread_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.journeys.cluster import Cluster

pytestmark = [pytest.mark.redis, pytest.mark.long]
DID = "did:web:client.example"
SELLER = f"{SERVER}:agents:seller"
QUESTIONS = 6
WAIT_SECONDS = 120
PREPARE = """
import json
from django.contrib.auth.models import User
from federation_app.peers import registry
from payments_app.spending import approvals
from tests.live_server import Person
from tests.sessions_app.billing.paid_agents import priced, rich, usd
payer = User.objects.create_user("payer")
agent = priced("seller", per_answer="0.25")
approvals.approve(rich(Person(payer, "")).user.pk, agent.pk, usd("9"))
registry.enter_peer({did!r}, json.loads({jwks!r}), user=payer)
"""
STATE = """
import json
from django.contrib.auth.models import User
from agents_app.models import Agent
from chat_app.models import Message
from federation_app.models import EnvelopeStream, ReceivedEnvelope
from payments_app.models import Hold
from sessions_app.models import Response
from tests.live_server import Person
from tests.sessions_app.billing.paid_agents import clean, earned, wallet
agent = Agent.objects.get(name="seller")
payer = Person(User.objects.get(username="payer"), "")
asked = Message.objects.filter(chat__sessions__principal__startswith="peer:")
print(json.dumps({
    "answers": list(Response.objects.filter(agent=agent).values_list("status", flat=True)),
    "messages": sorted(asked.values_list("role", flat=True)),
    "envelopes": ReceivedEnvelope.objects.count(),
    "streams": EnvelopeStream.objects.count(),
    "holds": Hold.objects.count(),
    "money": [earned(agent), str(wallet(payer).posted)],
    "is_clean": clean(),
}))
"""


def ask_at(port: int, asks: list[Any], together: threading.Barrier) -> list[list[Any]]:
    """Send each envelope at the same time as another thread; return what came back for each."""
    outcomes = []
    with Records(f"ws://127.0.0.1:{port}") as records:
        for ask in asks:
            together.wait(WAIT_SECONDS)
            records.send(ask)
            received = [records.receive(WAIT_SECONDS)]
            while received[-1].get("type") != "done" and received[-1].get("intent") != "error":
                received.append(records.receive(WAIT_SECONDS))
            outcomes.append(received)
    return outcomes


def outcome_of(received: list[Any]) -> str:
    """Return the text of an answer, or the code of a signed refusal."""
    if received[-1].get("intent") == "error":
        code: str = json.loads(received[-1]["body"]["content"])["code"]
        return code
    return text_of(received)


@pytest.fixture(scope="module")
def cluster(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with running_cluster(redis_url, folder, UAMP_FEDERATION_HOST=HOST) as running:
        yield running


@pytest.fixture
def paying_peer(cluster: Cluster) -> ForeignPeer:
    """Return a peer of both processes, whose account pays the agent `seller`."""
    key = EnvelopeKey(f"{DID}#1", Ed25519PrivateKey.generate())
    jwks = json.dumps({"keys": [key.public().jwk()]})
    cluster.product.run(PREPARE.format(did=DID, jwks=jwks))
    return ForeignPeer(DID, key, Peer(did=DID))


def test_an_ask_at_two_processes_at_once_is_answered_and_paid_once(
    cluster: Cluster, paying_peer: ForeignPeer
) -> None:
    texts = [f"question {number}" for number in range(QUESTIONS)]
    asks = [paying_peer.envelope(content=text, to=[SELLER]) for text in texts]
    together = threading.Barrier(2)
    with thread_pool(2) as threads:
        futures = [threads.submit(ask_at, port, asks, together) for port in cluster.ports]
        here, there = (future.result(QUESTIONS * WAIT_SECONDS) for future in futures)

    for text, received in zip(texts, zip(here, there, strict=True), strict=True):
        outcomes = {outcome_of(answer) for answer in received}
        # The one that came second gets the same answer, or is refused as busy.
        assert text in outcomes <= {text, "5.04"}
    # Later, either process repeats the stored answer.
    for port in cluster.ports:
        with Records(f"ws://127.0.0.1:{port}") as records:
            records.send(asks[0])
            assert text_of(records.until("done")) == texts[0]
    assert json.loads(cluster.product.run(STATE)) == {
        "answers": ["completed"] * QUESTIONS,
        "messages": ["assistant"] * QUESTIONS + ["user"] * QUESTIONS,
        "envelopes": QUESTIONS,
        "streams": QUESTIONS,
        "holds": QUESTIONS,
        "money": ["1.5", "8.5"],
        "is_clean": True,
    }
