"""A2A tasks on two server processes: begun on one, followed and answered on the other."""

from __future__ import annotations

import json
import signal
import uuid
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.journeys.cluster import WORDS, Cluster, running_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

# The first test's time includes starting the cluster.
pytestmark = [pytest.mark.long, pytest.mark.redis, pytest.mark.timeout(300)]

SEARCH = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
NOW = {"returnImmediately": True}


@pytest.fixture(scope="module")
def cluster(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(redis_url, tmp_path_factory.mktemp("a2a")) as running:
        yield running


def post(cluster: Cluster, number: int, agent: str, method: str, params: Any) -> httpx.Response:
    """Call a method on one of the servers."""
    key = cluster.product.people["alice"]["api_key"]
    return httpx.post(
        f"http://127.0.0.1:{cluster.ports[number]}/agents/{agent}/a2a",
        json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
        headers={"Authorization": f"Bearer {key}"},
        timeout=300,
        trust_env=False,
    )


def send(
    cluster: Cluster, number: int, agent: str, text: str, *, now: bool = False, **members: Any
) -> Any:
    """Send a message on one of the servers and return its task."""
    message = {"messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": [{"text": text}]}
    params = {"message": {**message, **members}, "configuration": NOW if now else {}}
    return post(cluster, number, agent, "SendMessage", params).json()["result"]["task"]


def follow(cluster: Cluster, number: int, task_id: str) -> tuple[str, str]:
    """Follow a task of the agent slow to its end; return its text and its last state."""
    answer = post(cluster, number, "slow", "SubscribeToTask", {"id": task_id})
    lines = [line[6:] for line in answer.text.splitlines() if line[:6] == "data: "]
    events = [json.loads(line)["result"] for line in lines]
    artifacts = list(events[0]["task"].get("artifacts", ()))
    artifacts += [e["artifactUpdate"]["artifact"] for e in events if "artifactUpdate" in e]
    text = "".join(part["text"] for artifact in artifacts for part in artifact["parts"])
    return text, events[-1]["statusUpdate"]["status"]["state"]


def test_a_task_is_followed_on_the_other_process(cluster: Cluster) -> None:
    task = send(cluster, 0, "slow", "Count", now=True)

    assert follow(cluster, 1, task["id"]) == (WORDS, "TASK_STATE_COMPLETED")


def test_a_task_is_cancelled_on_the_other_process(cluster: Cluster) -> None:
    task = send(cluster, 0, "slow", "Count", now=True)
    cancelled = post(cluster, 1, "slow", "CancelTask", {"id": task["id"]}).json()["result"]

    assert cancelled["status"]["state"] == "TASK_STATE_CANCELED"


def test_a_task_is_answered_on_the_other_process(cluster: Cluster) -> None:
    task = send(cluster, 0, "tool-user", "Find it", metadata={"uamp_tools": [SEARCH]})
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    done = send(cluster, 1, "tool-user", "42", taskId=task["id"])

    assert done["status"]["state"] == "TASK_STATE_COMPLETED"
    assert "42" in done["artifacts"][0]["parts"][0]["text"]


def test_the_end_of_a_process_ends_its_tasks_on_the_other(cluster: Cluster) -> None:
    task = send(cluster, 0, "slow", "Count", now=True)
    cluster.end("server0", signal.SIGKILL)

    text, state = follow(cluster, 1, task["id"])

    assert state == "TASK_STATE_FAILED"
    assert WORDS.startswith(text)
    cluster.start_server(0)
