"""Connections to a peer that are cut in the middle of answers; the server is its own peer here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from federation_app.models import ReceivedEnvelope
from sessions_app.models import Response
from tests.agents_app.remote.remote_agents import remote_agent
from tests.faults.cut_line import CutLine
from tests.federation_app.peer import SERVER
from tests.federation_app.test_remote_agents import PROTOCOLS, own_peer
from tests.live_server import quick_agent
from tests.sessions_app.turn.delegation import answer_text

if TYPE_CHECKING:
    from federation_app.models import Peer
    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

__all__ = ["own_peer"]

pytestmark = pytest.mark.django_db(transaction=True)
LONG = " ".join(f"word{n}" for n in range(80))
CUTS = 4
BETWEEN = 6
"""So many deltas come between two cuts."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_is_whole_and_single_after_its_connections_were_cut(
    own_peer: Peer,
    federated: ServerAddress,
    rpc_place: str,
    dial: Dial,
    alice: Person,
    protocol: str,
) -> None:
    quick_agent("talker", "echo", delay=0.03)
    http = federated.http.removeprefix("http://")
    host, _, port = (rpc_place if protocol == "envelope_grpc" else http).rpartition(":")
    line = CutLine(host, int(port))
    place = f"http://127.0.0.1:{line.port}"
    remote_agent(place, protocol=protocol, name="far", model=f"{SERVER}:agents:talker")
    client = dial(alice)
    client.create_session(agent="far")
    cut = 0
    client.ask(LONG)
    frames: list[Any] = []
    while not frames or frames[-1]["type"] not in {"response.done", "response.error"}:
        frames.append(client.receive())
        deltas = sum(frame["type"] == "response.delta" for frame in frames)
        if frames[-1]["type"] == "response.delta" and deltas > BETWEEN * (cut + 1) and cut < CUTS:
            # Between two connections there is none to cut.
            cut += line.cut() > 0
    line.close()

    assert answer_text(frames) == LONG
    assert cut >= 1
    assert ReceivedEnvelope.objects.filter(intent="ask").count() == 1
    assert sorted(Response.objects.values_list("status", flat=True)) == ["completed"] * 2
