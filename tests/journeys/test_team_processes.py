"""Agents that work together on two servers and a worker, each of which may die.

With one PostgreSQL and one Redis. Whichever process is killed while the other agent's tool runs,
the waiting agent continues, the other one has worked once, and each response has one end.
"""

from __future__ import annotations

import os
import time
from signal import SIGKILL
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
import pytest

from tests.client import TERMINAL, UampClient, output_text
from tests.journeys.cluster import Cluster, join, running_cluster
from tests.sessions_app.turn.team_tools import order

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.long, pytest.mark.redis]

SWITCH_SECONDS = 60.0
AGENTS = (
    "from tests.sessions_app.turn import team_tools\n"
    "from agents_app.models import Agent\n"
    'Agent.objects.create(name="boss", is_public=True, options={"script": "doer"},'
    ' delegates=["worker", "asker"])\n'
    'Agent.objects.create(name="worker", is_public=True, options={"script": "doer"},'
    ' tools=["steps"])\n'
    'Agent.objects.create(name="asker", is_public=True, options={"script": "doer"},'
    ' tools=["steps"], approvals=["steps"])\n'
)


@pytest.fixture(scope="module")
def cluster(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = "tests.sessions_app.turn.team_settings"
    folder = tmp_path_factory.mktemp("cluster")
    with running_cluster(redis_url, folder, DJANGO_SETTINGS_MODULE=settings) as running:
        running.product.run(AGENTS)
        with running.product.api("alice") as client:
            client.base_url = f"http://127.0.0.1:{running.ports[0]}"
            path = f"/api/v1/chats/{running.product.chat_id}/participants"
            client.post(path, json={"agent": "boss"}).raise_for_status()
        yield running


def rows(cluster: Cluster, sql: LiteralString, *values: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    url = cluster.product.environment["DATABASE_URL"]
    with psycopg.connect(url) as connection:
        return connection.execute(sql, values).fetchall()


def delegated_request(agent: str, journal: Path, *, steps: int) -> str:
    """Return the request to the first agent: have another one use the tool `steps`."""
    arguments = {"steps": steps, "pause": 0.1, "journal": str(journal)}
    task = order(call="steps", arguments=arguments)
    return f"@boss {order(call='delegate', arguments={'agent': agent, 'task': task})}"


def lines(journal: Path) -> list[str]:
    """Return the lines that the tool has written."""
    return journal.read_text().splitlines() if journal.exists() else []


def wait_for_lines(journal: Path, count: int) -> None:
    """Wait until the tool has written a number of lines."""
    deadline = time.monotonic() + SWITCH_SECONDS
    while len(lines(journal)) < count:
        assert time.monotonic() < deadline, "the tool did not begin"
        time.sleep(0.05)


def end_of(client: UampClient, response_id: str) -> dict[str, Any]:
    """Wait for the end of a response, however long a takeover takes."""
    deadline = time.monotonic() + SWITCH_SECONDS
    while time.monotonic() < deadline:
        frame = client.receive(SWITCH_SECONDS)
        if frame["type"] in TERMINAL and frame["response_id"] == response_id:
            return frame
    raise AssertionError("the response did not end")


def check_one_end_each(cluster: Cluster, boss: str) -> None:
    """Assert that one other agent worked for a response, and that both ended once."""
    family = rows(
        cluster,
        "SELECT r.id, r.status FROM sessions_app_response r"
        " LEFT JOIN sessions_app_session s ON r.session_id = s.id"
        " LEFT JOIN sessions_app_toolcall c ON s.parent_call_id = c.id"
        " WHERE r.id = %s OR c.response_id = %s",
        boss,
        boss,
    )
    assert [status for _, status in family] == ["completed", "completed"]
    for response_id, _ in family:
        ends = rows(
            cluster,
            "SELECT type FROM chat_app_chatevent WHERE response_id = %s AND type IN"
            " ('response.done', 'response.error', 'response.cancelled')",
            response_id,
        )
        assert ends == [("response.done",)]


@pytest.mark.parametrize("victim", ["server1", "worker"])
def test_work_continues_when_a_process_dies(cluster: Cluster, tmp_path: Path, victim: str) -> None:
    journal = tmp_path / "journal"
    chat_id = cluster.product.chat_id
    with cluster.socket(0, "alice") as watcher:
        join(watcher, chat_id)
        with cluster.socket(1, "bob") as client:
            join(client, chat_id)
            client.ask(delegated_request("worker", journal, steps=40))
            response_created = client.until("response.created")[-1]
            wait_for_lines(journal, 5)
            cluster.end(victim, SIGKILL)
        if victim == "worker":
            cluster.start_worker()
        end = end_of(watcher, response_created["response_id"])
        if victim == "server1":
            cluster.start_server(1)
    assert (end["type"], output_text(end)) == ("response.done", "received: received: 40 steps")
    check_one_end_each(cluster, response_created["response_id"])
    # Each surviving worker began the tool once, and one of them finished it.
    attempts = {line.split()[0] for line in lines(journal)}
    assert len(attempts) == (2 if victim == "worker" else 1)
    assert sum(line.endswith(" 40") for line in lines(journal)) == 1
    assert str(os.getpid()) not in attempts


def test_progress_and_words_of_the_other_agent_reach_the_other_server(
    cluster: Cluster, tmp_path: Path
) -> None:
    chat_id = cluster.product.chat_id
    with cluster.socket(0, "alice") as watcher, cluster.socket(1, "bob") as client:
        for each in (watcher, client):
            join(each, chat_id)
        client.ask(delegated_request("worker", tmp_path / "journal", steps=10))
        for each in (watcher, client):
            frames = each.until(*TERMINAL)
            call = next(
                f["delta"]["tool_call"]["id"]
                for f in frames
                if f["type"] == "response.delta" and f["delta"]["type"] == "tool_call"
            )
            reported = [f for f in frames if f["type"] == "progress" and f["target_id"] == call]
            percents = [f["percent"] for f in reported if "percent" in f]
            assert percents == sorted(set(percents))
            assert percents[-1] == 100
            words = [
                f["delta"]["tool_progress"]["text"]
                for f in frames
                if f["type"] == "response.delta" and f["delta"]["type"] == "tool_progress"
            ]
            assert "".join(words) == "received: 10 steps"


def test_a_question_outlives_the_server_that_asked_it(cluster: Cluster, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    chat_id = cluster.product.chat_id
    with cluster.socket(0, "alice") as owner:
        join(owner, chat_id)
        with cluster.socket(1, "bob") as client:
            join(client, chat_id)
            client.ask(delegated_request("asker", journal, steps=1))
            response_created = client.until("response.created")[-1]
            client.until("tool.approval_required")
            cluster.end("server1", SIGKILL)
        question = owner.until("tool.approval_required")[-1]
        assert not journal.exists()
        owner.send("tool.approve", call_id=question["call_id"], approved=True)
        end = end_of(owner, response_created["response_id"])
    cluster.start_server(1)
    assert output_text(end) == "received: received: 1 steps"
    assert len(lines(journal)) == 1
    check_one_end_each(cluster, response_created["response_id"])
