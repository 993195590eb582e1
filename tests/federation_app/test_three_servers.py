"""Three servers in a row: an agent of the third is asked through a hub, and answers back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from federation_app import own_names
from federation_app.models import Peer, ReceivedEnvelope
from federation_app.peers import registry
from sessions_app.models import Response
from tests import services
from tests.agents_app.remote.remote_agents import remote_agent
from tests.client import wait_until
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
HUB, FAR = "did:web:hub.example", "did:web:far.example"
TALKER = f"{FAR}:agents:talker"
WORDS = " ".join(f"word{number}" for number in range(120))
# More deltas than its window of 64 allows without acknowledgements.
PREPARE = """
import json
from agents_app.models import Agent
from federation_app import own_names
from federation_app.models import Peer
from federation_app.peers import registry
if {delay!r} is not None:
    Agent.objects.create(
        name="talker", is_public=True, options={{"script": "echo", "delay": {delay!r}}}
    )
for did, (jwks, address) in json.loads({peers!r}).items():
    registry.enter_peer(did, jwks, user=None)
    Peer.objects.filter(did=did).update(address=address, is_relayed=bool(address))
"""
KEYS = """
import json
from federation_app import own_names
print(json.dumps({{"keys": [key.jwk() for key in own_names.own_keys({did!r})]}}))
"""
STATE = """
import json
from sessions_app.models import Response
from federation_app.models import Peer, ReceivedEnvelope
rows = Response.objects.order_by("created_at")
print(json.dumps({
    "texts": ["".join(item.get("text", "") for item in row.output) for row in rows],
    "statuses": [row.status for row in rows],
    "asks": ReceivedEnvelope.objects.filter(intent="ask").count(),
}))
"""


def keys_of(product: Product, did: str) -> Any:
    """Return the public keys of a server."""
    return json.loads(product.run(KEYS.format(did=did)))


def state_of(product: Product) -> Any:
    """Return the answers and envelopes of a server."""
    return json.loads(product.run(STATE))


@pytest.fixture
def row_of_servers(
    federated: ServerAddress, settings: Any, tmp_path: Path
) -> Iterator[tuple[Product, Product]]:
    """Run a hub and a server behind it; this server and that one are the hub's members."""
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:*"]
    shared: dict[str, Any] = {
        "UAMP_ENVELOPES_PER_MINUTE": "100000",
        "UAMP_REMOTE_ALLOW_HOSTS": "127.0.0.1:*",
        "UAMP_PEER_LOOPBACK_HTTP": "1",
    }
    rpc: dict[str, Any] = {"UAMP_GRPC_ADDRESS": f"127.0.0.1:{services.free_port()}"}
    here = {"keys": [key.jwk() for key in own_names.own_keys(SERVER)]}
    with (
        running_product(
            tmp_path / "hub", UAMP_FEDERATION_HOST="hub.example", **shared, **rpc
        ) as hub,
        running_product(tmp_path / "far", UAMP_FEDERATION_HOST="far.example", **shared) as far,
    ):
        far_keys = keys_of(far, FAR)
        # The members know each other; the one behind the hub does not know the hub.
        members = {SERVER: (here, federated.http), FAR: (far_keys, far.url)}
        hub.run(PREPARE.format(delay=None, peers=json.dumps(members)))
        far.run(PREPARE.format(delay=0.03, peers=json.dumps({SERVER: (here, "")})))
        registry.enter_peer(FAR, far_keys, user=None)
        yield hub, far


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_streams_back_through_the_hub_and_is_cancelled_through_it(
    row_of_servers: tuple[Product, Product], dial: Dial, alice: Person, protocol: str
) -> None:
    hub, far = row_of_servers
    is_rpc = protocol == "envelope_grpc"
    url = f"http://{hub.environment['UAMP_GRPC_ADDRESS']}" if is_rpc else hub.url
    if protocol == "envelope_http":
        # A token for the hub has to name it: its documents are read where its agents are.
        registry.enter_peer(HUB, keys_of(hub, HUB), user=None)
        Peer.objects.filter(did=HUB).update(documents_address=hub.url)
    remote_agent(url, protocol=protocol, name="far", model=TALKER)
    client = dial(alice)
    client.create_session(agent="far")
    client.ask(WORDS)
    frames = client.until("response.done", "response.error")
    assert frames[-1]["type"] == "response.done", frames[-1]
    assert answer_text(frames) == WORDS
    assert len([frame for frame in frames if frame["type"] == "response.delta"]) > 10, "it streams"

    client.ask(" ".join(["slowly"] * 2000))
    delta = client.until("response.delta")[-1]
    client.send("response.cancel", response_id=delta["response_id"])
    client.until("response.cancelled")

    # The third server has answered once, and its other answer was cancelled on the way.
    wait_until(lambda: state_of(far)["statuses"] == ["completed", "cancelled"])
    there = state_of(far)
    assert (there["texts"][0], there["asks"]) == (WORDS, 2)
    # The hub has passed on both questions, and answered none.
    between = state_of(hub)
    assert (between["statuses"], between["asks"]) == ([], 2)
    assert not ReceivedEnvelope.objects.exists()
    assert set(Response.objects.values_list("status", flat=True)) == {"completed", "cancelled"}
