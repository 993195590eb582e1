"""A conversation between two servers whose connections are cut 200 times."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from chat_app.log.verification import all_chats, check_log
from federation_app import own_names
from federation_app.peers import registry
from payments_app import services as ledger
from sessions_app.models import Response
from tests import services
from tests.agents_app.remote.remote_agents import remote_agent
from tests.faults.cut_line import CutLine
from tests.federation_app.peer import SERVER
from tests.federation_app.test_remote_agents import PROTOCOLS
from tests.journeys.product import Product, running_product
from tests.sessions_app.turn.delegation import answer_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]
OTHER = "did:web:other.example"
TALKER = f"{OTHER}:agents:talker"
CUTS = 200
BETWEEN = 3
"""So many deltas come between two cuts."""
WORDS = " ".join(f"word{number}" for number in range(150))
PREPARE = """
import json
from agents_app.models import Agent
from federation_app.peers import registry
from federation_app import own_names
Agent.objects.create(name="talker", is_public=True, options={{"script": "echo", "delay": 0.03}})
registry.enter_peer({did!r}, json.loads({jwks!r}), user=None)
print(json.dumps({{"keys": [key.jwk() for key in own_names.own_keys({other!r})]}}))
"""
ANSWERS = """
import json
from sessions_app.models import Response
from federation_app.models import ReceivedEnvelope
rows = Response.objects.filter(agent__name="talker").order_by("created_at")
print(json.dumps({
    "texts": ["".join(item.get("text", "") for item in row.output) for row in rows],
    "statuses": [row.status for row in rows],
    "asks": ReceivedEnvelope.objects.filter(intent="ask").count(),
}))
"""


def jwks_of(did: str) -> dict[str, Any]:
    """Return the public keys of one of this server's names."""
    return {"keys": [key.jwk() for key in own_names.own_keys(did)]}


@pytest.fixture
def other(federated: ServerAddress, tmp_path: Path) -> Iterator[Product]:
    """Run another server, in processes and on a database of its own; both know each other."""
    rpc = services.free_port()
    variables: dict[str, Any] = {
        "UAMP_FEDERATION_HOST": "other.example",
        "UAMP_GRPC_ADDRESS": f"127.0.0.1:{rpc}",
        "UAMP_ENVELOPES_PER_MINUTE": "100000",
        "UAMP_CONNECTIONS_PER_ADDRESS": "1000",
    }
    with running_product(tmp_path / "other", **variables) as product:
        jwks = json.dumps(jwks_of(SERVER))
        keys = json.loads(product.run(PREPARE.format(did=SERVER, jwks=jwks, other=OTHER)))
        registry.enter_peer(OTHER, keys, user=None)
        yield product


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_conversation_is_whole_and_single_after_200_cuts(
    other: Product, dial: Dial, alice: Person, protocol: str
) -> None:
    is_rpc = protocol == "envelope_grpc"
    port = int(other.environment["UAMP_GRPC_ADDRESS"].rpartition(":")[2]) if is_rpc else other.port
    line = CutLine("127.0.0.1", port)
    remote_agent(f"http://127.0.0.1:{line.port}", protocol=protocol, name="far", model=TALKER)
    cuts, texts = 0, list[str]()
    while cuts < CUTS:
        client = dial(alice)
        client.create_session(agent="far")
        client.ask(WORDS)
        frames: list[Any] = []
        deltas = due = 0
        while not frames or frames[-1]["type"] not in {"response.done", "response.error"}:
            frames.append(client.receive())
            deltas += frames[-1]["type"] == "response.delta"
            if deltas > due and cuts < CUTS and (ended := line.cut()):
                cuts, due = cuts + bool(ended), deltas + BETWEEN
        assert frames[-1]["type"] == "response.done", frames[-1]
        texts.append(answer_text(frames))
        client.close()
    line.close()

    assert cuts == CUTS
    assert set(texts) == {WORDS}
    # Both logs have the same answers, each once.
    assert set(Response.objects.values_list("status", flat=True)) == {"completed"}
    there = json.loads(other.run(ANSWERS))
    assert there == {
        "texts": texts,
        "statuses": ["completed"] * len(texts),
        "asks": len(texts),
    }
    # And both audits are clean.
    assert ledger.audit().clean
    summaries = [check_log(chat_id) for chat_id in all_chats()]
    assert summaries
    assert all(summary is not None and summary.is_intact for summary in summaries)
    assert "No log was changed." in other.manage("audit_log")
    other.manage("audit_ledger")
