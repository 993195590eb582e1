"""One stream at two server processes: acknowledged at the other one, and read on after a death."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from federation_app.envelope.signatures.keys import EnvelopeKey
from federation_app.models import Peer
from tests.client import wait_until
from tests.federation_app.peer import HOST, SERVER, ForeignPeer, Records, text_of
from tests.journeys.cluster import running_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.journeys.cluster import Cluster

pytestmark = [pytest.mark.redis, pytest.mark.long]
DID = "did:web:client.example"
TALKER = f"{SERVER}:agents:talker"
WORDS = " ".join(f"word{n}" for n in range(100))
WAIT_SECONDS = 120
PREPARE = """
import json
from federation_app.peers import registry
from tests.live_server import quick_agent
quick_agent("talker", "echo", delay=0.03)
registry.enter_peer({did!r}, json.loads({jwks!r}), user=None)
"""


@pytest.fixture(scope="module")
def cluster(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with running_cluster(redis_url, folder, UAMP_FEDERATION_HOST=HOST) as running:
        yield running


@pytest.fixture(scope="module")
def peer_of_both(cluster: Cluster) -> ForeignPeer:
    """Return a peer of both processes, which have an agent whose answers take seconds."""
    key = EnvelopeKey(f"{DID}#1", Ed25519PrivateKey.generate())
    jwks = json.dumps({"keys": [key.public().jwk()]})
    cluster.product.run(PREPARE.format(did=DID, jwks=jwks))
    return ForeignPeer(DID, key, Peer(did=DID))


def error_code(record: Any) -> str:
    """Return the code of a signed refusal."""
    code: str = json.loads(record["body"]["content"])["code"]
    return code


def test_an_acknowledgement_at_one_process_opens_the_window_at_the_other(
    cluster: Cluster, peer_of_both: ForeignPeer
) -> None:
    ask = peer_of_both.envelope(content=WORDS, to=[TALKER], stream_id="str-ack", delta_window=2)
    here, there = (Records(f"ws://127.0.0.1:{port}") for port in cluster.ports)
    with here, there:
        here.send(ask)
        deltas = [here.receive(), here.receive()]
        with pytest.raises(TimeoutError):
            here.receive(1)
        while deltas[-1]["type"] not in {"done", "error"}:
            content = json.dumps({"ack": deltas[-1]["delta_seq"]})
            ack = peer_of_both.envelope("progress", content, to=[TALKER], stream_id="str-ack")
            there.send(ack)
            deltas.append(here.receive())
    assert deltas[-1]["type"] == "done"
    assert [delta["delta_seq"] for delta in deltas] == list(range(len(deltas)))
    assert text_of(deltas) == WORDS


def test_an_answer_whose_process_dies_is_read_on_at_the_other(
    cluster: Cluster, peer_of_both: ForeignPeer
) -> None:
    ask = peer_of_both.envelope(content=WORDS, to=[TALKER], stream_id="str-kill", delta_window=1024)
    with Records(f"ws://127.0.0.1:{cluster.ports[0]}") as records:
        records.send(ask)
        deltas = [records.receive() for _ in range(3)]
        cluster.end("server0", signal.SIGKILL)
    try:
        with Records(f"ws://127.0.0.1:{cluster.ports[1]}") as records:

            def has_ended() -> bool:
                """Resume, and read on until the answer ends or the stream has to be resumed."""
                content = json.dumps({"after": deltas[-1]["delta_seq"]})
                about = {"to": [TALKER], "stream_id": "str-kill"}
                records.send(peer_of_both.envelope("subscribe", content, **about))
                while "delta_seq" in (record := records.receive(WAIT_SECONDS)):
                    deltas.append(record)
                    if record["type"] in {"done", "error"}:
                        return True
                assert error_code(record) == "5.04"
                return False

            wait_until(has_ended, WAIT_SECONDS)
    finally:
        cluster.start_server(0)
    assert [delta["delta_seq"] for delta in deltas] == list(range(len(deltas)))
    assert deltas[3]["type"] in {"patch", "error"}
    if deltas[-1]["type"] == "error":
        # Not every model can continue an answer.
        assert deltas[-1]["payload"]["detail"] == "interrupted"
    else:
        assert text_of(deltas) == WORDS
