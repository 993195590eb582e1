"""A conversation between two servers whose connections are cut 200 times."""

from __future__ import annotations

import json
from contextlib import ExitStack
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
from tests.federation_app.secure_server import requests, secure_server, trust_certificate
from tests.federation_app.test_remote_agents import PROTOCOLS
from tests.journeys.product import Product, running_product
from tests.sessions_app.turn.delegation import answer_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

__all__ = ["requests"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]
OTHER = "did:web:other.example"
TALKER = f"{OTHER}:agents:talker"
CUTS = 200
HTTP2 = "envelope_http2"
"""Stands for `envelope_http` with a server that chooses HTTP/2."""
VERSIONS = {"envelope_http": {b"HTTP/1.1"}, HTTP2: {b"HTTP/2"}}
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


@pytest.fixture
def transport(
    request: pytest.FixtureRequest,
    other: Product,
    settings: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[tuple[str, CutLine]]:
    """Ask the agent `far` over a transport, through a line; return its protocol and the line."""
    protocol: str = request.param
    with ExitStack() as stack:
        scheme, port = "http://127.0.0.1", other.port
        if protocol == "envelope_grpc":
            port = int(other.environment["UAMP_GRPC_ADDRESS"].rpartition(":")[2])
        elif protocol == HTTP2:
            settings.UAMP_REMOTE_ALLOW_HOSTS = ["localhost:*"]
            scheme, protocol = "https://localhost", "envelope_http"
            port = stack.enter_context(secure_server(other, tmp_path))
            trust_certificate(tmp_path, monkeypatch)
        line = CutLine("127.0.0.1", port)
        stack.callback(line.close)
        remote_agent(f"{scheme}:{line.port}", protocol=protocol, name="far", model=TALKER)
        yield request.param, line


@pytest.mark.parametrize("transport", [*PROTOCOLS, HTTP2], indirect=True)
def test_a_conversation_is_whole_and_single_after_200_cuts(
    other: Product, dial: Dial, alice: Person, transport: tuple[str, CutLine], requests: list[Any]
) -> None:
    protocol, line = transport
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

    assert cuts == CUTS
    assert {version for _, version in requests} == VERSIONS.get(protocol, set())
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
