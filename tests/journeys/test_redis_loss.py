"""Redis dies or pauses while a response streams: two processes lose no event."""

from __future__ import annotations

import shutil
import signal
import socket
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from tests import services
from tests.client import Story, UampClient, new_event, output_text
from tests.journeys.cluster import WORDS, Cluster, ask, join, running_cluster
from tests.journeys.paying_person import PayingPerson
from tests.programs import Program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.long, pytest.mark.redis]


class OwnRedis:
    """A Redis without persistence, on the same port after each restart."""

    def __init__(self, program: str, folder: Path) -> None:
        self.port = services.free_port()
        options = ["--port", str(self.port), "--save", "", "--dir", str(folder)]
        self._command = [program, *options]
        self.start()

    def start(self) -> None:
        """Start it, empty, and wait until it responds."""
        self.process = Program(*self._command)
        self.process.wait_until(self._answers)

    def _answers(self) -> bool:
        with closing(socket.socket()) as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        """Kill it along with all its data."""
        self.process.end(signal.SIGKILL)


@contextmanager
def own_redis(folder: Path) -> Iterator[OwnRedis]:
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no redis-server")
    redis = OwnRedis(program, folder)
    try:
        yield redis
    finally:
        redis.process.send_signal(signal.SIGCONT)
        redis.kill()


def read_turn(client: UampClient, story: Story, response_id: str) -> str:
    """Read up to the end of a response; return the output in its final event."""
    while True:
        frame = client.receive()
        story.take(frame)
        if frame["type"] == "response.done" and frame["response_id"] == response_id:
            return output_text(frame)


def read_some(client: UampClient, story: Story, response_id: str) -> None:
    """Read until the response has a few words."""
    while len(story.texts.get(response_id, "")) < len("word1 word2 word3"):
        story.take(client.receive())


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnRedis]:
    with own_redis(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture(scope="module")
def cluster(redis: OwnRedis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with running_cluster(f"redis://127.0.0.1:{redis.port}/0", folder) as running:
        yield running


@pytest.mark.timeout(300)
def test_clients_of_both_processes_receive_everything(redis: OwnRedis, cluster: Cluster) -> None:
    with (
        cluster.socket(0, "alice") as asker,
        cluster.socket(1, "bob") as member,
    ):
        chat_id = cluster.product.chat_id
        stories = Story(), Story()
        for client in (asker, member):
            join(client, chat_id)
        for lose in ("pause", "kill", "nothing"):
            response_id = ask(asker, "@slow count")
            read_some(member, stories[1], response_id)
            if lose == "pause":
                redis.process.send_signal(signal.SIGSTOP)
            elif lose == "kill":
                redis.kill()
            ends = [
                read_turn(client, story, response_id)
                for client, story in zip((asker, member), stories, strict=True)
            ]
            assert ends == [WORDS, WORDS]
            assert [story.texts[response_id] for story in stories] == ends
            if lose == "pause":
                redis.process.send_signal(signal.SIGCONT)
            elif lose == "kill":
                redis.start()
        seqs = sorted(stories[1].log)
        assert seqs == list(range(seqs[0], seqs[-1] + 1))


@pytest.mark.timeout(300)
def test_a_payment_on_the_other_process_is_accepted_before_its_answer(
    redis: OwnRedis, cluster: Cluster
) -> None:
    """The acceptance is not in the log: the batch reads it from the payment's row."""
    payer = PayingPerson(cluster.product, money="5")
    with cluster.socket(0, payer.name, f"/agents/{payer.agent}/uamp") as first:
        first.send("session.create", uamp_version="1.0", session={"modalities": ["text"]})
        session_id = first.until("session.created")[-1]["session_id"]
        first.ask("Hello")
        demand = first.until("payment.required")[-1]
        redis.kill()
        submit = new_event(
            "payment.submit",
            payment={"scheme": "balance", "amount": demand["requirements"]["amount"]},
            response_id=demand["response_id"],
            session_id=session_id,
        )
        frames = cluster.batch(1, payer.name, submit)
        redis.start()
    types = [frame["type"] for frame in frames]
    assert types.count("payment.accepted") == 1
    assert types.index("payment.accepted") < types.index("response.done")
    assert output_text(frames[types.index("response.done")]) == "Hello"
