"""Each person's view of an answer matches the stored one, on whichever process they were."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.client import TERMINAL, output_text, text_of
from tests.journeys.cluster import Cluster, ask, join, running_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.client import Frame

pytestmark = [pytest.mark.long, pytest.mark.redis]

QUESTION = " ".join(f"w{number}é" for number in range(40))
TURNS = 5
SWITCH_SECONDS = 60.0
AGENTS = ("echo", "slow", "breaker")
# It fails at the moment when text is being collected.
BREAKER = (
    "from agents_app.models import Agent\n"
    "options = {'script': 'fail', 'delay': 0.004}\n"
    "Agent.objects.create(name='breaker', is_public=True, options=options)\n"
)
STORED = "from sessions_app.models import Response; print(Response.objects.get(pk={0!r}).text)"


@pytest.fixture(scope="module")
def cluster(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with running_cluster(redis_url, folder) as running:
        running.product.run(BREAKER)
        yield running


def stored(cluster: Cluster, response_id: str) -> str:
    text = cluster.product.run(STORED.format(response_id)).removesuffix("\n")
    assert text
    return text


@pytest.mark.parametrize("agent", AGENTS)
def test_a_member_on_the_other_process_sees_what_is_stored(cluster: Cluster, agent: str) -> None:
    with cluster.product.api("alice") as api:
        body = {"title": agent, "users": ["bob"], "agents": [agent]}
        chat_id = api.post("/api/v1/chats", json=body).raise_for_status().json()["id"]
    with cluster.socket(0, "alice") as alice, cluster.socket(1, "bob") as bob:
        for client in (alice, bob):
            join(client, chat_id)
        for _ in range(TURNS):
            response_id = ask(alice, f"@{agent} {QUESTION}")
            if agent == "slow":
                alice.until("response.delta")
                alice.send("response.cancel", response_id=response_id)
            frames = bob.until(*TERMINAL)
            assert frames[-1]["response_id"] == response_id
            assert text_of(frames) == output_text(frames[-1]) == stored(cluster, response_id)


@pytest.mark.parametrize("agent", AGENTS)
def test_an_asker_who_moved_to_the_other_process_sees_what_is_stored(
    cluster: Cluster, agent: str
) -> None:
    for _ in range(TURNS):
        with (
            cluster.socket(0, "alice", f"/agents/{agent}/uamp") as asker,
            cluster.socket(1, "alice", f"/agents/{agent}/uamp") as there,
        ):
            asker.send("session.create", uamp_version="1.0", session={})
            created = asker.until("session.created")[-1]
            response_id = ask(asker, QUESTION)
            first_frames = asker.until("response.delta")
            resume = {"session_id": created["session_id"], "epoch": created["epoch"], "after": 0}
            there.send("session.create", session={}, resume=resume)
            frames: list[Frame] = there.until("response.delta", *TERMINAL)
            if agent == "slow":
                there.send("response.cancel", response_id=response_id)
            if frames[-1]["type"] not in TERMINAL:
                frames += there.until(*TERMINAL)
            text = stored(cluster, response_id)
            assert output_text(frames[-1]) == text
            # Text that the first process sent does not count if it arrived late.
            assert text_of([*first_frames, *frames]) == text or text_of(frames) == ""


def test_what_a_killed_process_had_not_stored_is_taken_back(cluster: Cluster) -> None:
    with cluster.socket(1, "bob") as bob:
        join(bob, cluster.product.chat_id)
        with cluster.socket(0, "alice") as alice:
            join(alice, cluster.product.chat_id)
            response_id = ask(alice, f"@slow {QUESTION}")
            frames = bob.until("response.delta")
            while "word20" not in text_of(frames):
                frames += bob.until("response.delta")
            cluster.end("server0", signal.SIGKILL)
        frames += bob.until("response.error", timeout=SWITCH_SECONDS)
        assert text_of(frames) == output_text(frames[-1]) == stored(cluster, response_id)
    cluster.start_server(0)
