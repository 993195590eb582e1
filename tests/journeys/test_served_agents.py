"""`python -m uap serve` with two server processes: asked on one, answered on the other."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.client import TERMINAL, output_text, text_of
from tests.journeys.cluster import Cluster, running_cluster
from tests.journeys.product import ROOT
from tests.journeys.served_agents import COUNTING, ServedAgent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.client import UampClient

pytestmark = [pytest.mark.redis, pytest.mark.any_database]

PYTHON = Path(sys.executable)


@pytest.fixture(scope="module")
def cluster(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(redis_url, tmp_path_factory.mktemp("cluster")) as running:
        yield running


def serve(
    cluster: Cluster, folder: Path, names: list[str], *options: str, token: str = ""
) -> ServedAgent:
    """Serve alice's agents at the first server, with a token for each unless one is given."""
    (folder / "my_agent.py").write_text(COUNTING)
    token = token or " ".join(connect_token(cluster, name) for name in names)
    name_options = " ".join(f"--name {name}" for name in names)
    places = " ".join(["my_agent:agent"] * len(names))
    address = f"ws://127.0.0.1:{cluster.ports[0]}"
    command = f"python -m uap serve {places} --connect {address} {name_options} {' '.join(options)}"
    return ServedAgent(folder, PYTHON, command, UAMP_CONNECT_TOKEN=token, PYTHONPATH=str(ROOT))


def connect_token(cluster: Cluster, name: str) -> str:
    """Create a connect token of alice, who takes the name."""
    key = cluster.product.people["alice"]["api_key"]
    answer = httpx.post(
        f"http://127.0.0.1:{cluster.ports[1]}/api/v1/connect-tokens",
        json={"agent": name},
        headers={"Authorization": f"Bearer {key}"},
        timeout=60,
        trust_env=False,
    )
    secret: str = answer.raise_for_status().json()["secret"]
    return secret


def talk(client: UampClient, agent: str) -> None:
    client.create_session(agent=agent)


def test_two_agents_on_one_socket_answer_who_asks_on_the_other_process(
    cluster: Cluster, tmp_path: Path
) -> None:
    with serve(cluster, tmp_path, ["first", "second"]) as daemon:
        daemon.wait_for("@first is connected")
        daemon.wait_for("@second is connected")
        for name in ("first", "second"):
            with cluster.socket(1, "alice") as client:
                talk(client, name)
                frames = client.answer("hello")
                assert frames[-1]["type"] == "response.done"
                assert text_of(frames) == output_text(frames[-1]) == "1 2 3 done"
                assert frames[-1]["response"]["usage"]["output_tokens"] == 4


@pytest.mark.long
def test_a_daemon_is_back_when_its_server_was_killed(cluster: Cluster, tmp_path: Path) -> None:
    with serve(cluster, tmp_path, ["again"]) as daemon:
        daemon.wait_for("@again is connected")
        cluster.end("server0", signal.SIGKILL)
        daemon.wait_for("reconnecting")
        cluster.start_server(0)
        daemon.wait_for("@again is connected", times=2)

        with cluster.socket(1, "alice") as client:
            talk(client, "again")
            assert output_text(client.answer("hello")[-1]) == "1 2 3 done"


def test_a_stopped_daemon_ends_its_answers_and_takes_no_more(
    cluster: Cluster, tmp_path: Path
) -> None:
    with (
        serve(cluster, tmp_path, ["leaving"]) as daemon,
        cluster.socket(1, "alice") as first,
        cluster.socket(1, "alice") as second,
    ):
        daemon.wait_for("@leaving is connected")
        talk(first, "leaving")
        talk(second, "leaving")
        first.ask("slowly")
        first.until("response.delta")
        daemon.process.send_signal(signal.SIGTERM)
        daemon.wait_for("stopping; 1 answers are in progress")

        refused = second.answer("hello")[-1]
        assert refused["type"] == "response.error"
        assert refused["error"]["code"] == "agent_offline"
        assert output_text(first.until(*TERMINAL)[-1]).endswith("30 done")
        assert daemon.process.wait(timeout=60) == 0


# tests/sessions_app/connected shows the same with one process.
@pytest.mark.long
def test_an_answer_that_is_cancelled_stops_at_the_daemon(cluster: Cluster, tmp_path: Path) -> None:
    with (
        serve(cluster, tmp_path, ["slow-one"], "--answers", "1") as daemon,
        cluster.socket(1, "alice") as client,
        cluster.socket(0, "alice") as other,
    ):
        daemon.wait_for("@slow-one is connected")
        talk(client, "slow-one")
        talk(other, "slow-one")
        client.ask("endlessly")
        client.until("response.delta")
        # It waits until the first answer ends and then takes its slot.
        other.ask("hello")
        client.send("response.cancel")

        assert client.until(*TERMINAL)[-1]["type"] == "response.cancelled"
        assert output_text(other.until(*TERMINAL)[-1]) == "1 2 3 done"


@pytest.mark.long
@pytest.mark.parametrize("token", ["uak_wrong", "no-token"])
def test_a_refused_token_ends_the_daemon(cluster: Cluster, tmp_path: Path, token: str) -> None:
    with serve(cluster, tmp_path, ["refused-one"], token=token) as daemon:
        assert daemon.process.wait(timeout=60) == 3
        assert "Create a new token" in daemon.log


@pytest.mark.long
def test_the_name_of_another_agent_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    token = connect_token(cluster, "own-name")
    with serve(cluster, tmp_path, ["echo"], token=token) as daemon:
        assert daemon.process.wait(timeout=60) == 3
        assert "may not register" in daemon.log
