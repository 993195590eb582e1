"""A process suspended beyond its leases continues, and no longer writes what it has lost."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.client import TERMINAL
from tests.journeys.cluster import ask, join, running_cluster

if TYPE_CHECKING:
    from pathlib import Path

    from tests.client import Frame
    from tests.journeys.cluster import Cluster

pytestmark = [pytest.mark.long, pytest.mark.redis, pytest.mark.timeout(300)]


def logged_ends(cluster: Cluster, response_id: str) -> list[str]:
    """Return the terminal events of a response in the log, as read by the second server."""
    key = cluster.product.people["bob"]["api_key"]
    url = f"http://127.0.0.1:{cluster.ports[1]}/api/v1/chats/{cluster.product.chat_id}/events"
    answer = httpx.get(
        url, params={"limit": 200}, headers={"Authorization": f"Bearer {key}"}, trust_env=False
    )
    return [
        event["type"]
        for event in answer.raise_for_status().json()["data"]
        if event["type"] in TERMINAL and event["payload"]["response_id"] == response_id
    ]


def ends_of(frames: list[Frame], response_id: str) -> list[str]:
    return [f["type"] for f in frames if f["type"] in TERMINAL and f["response_id"] == response_id]


def test_a_response_taken_over_from_a_suspended_process_ends_once(
    redis_url: str, tmp_path: Path
) -> None:
    with (
        running_cluster(redis_url, tmp_path) as cluster,
        cluster.socket(0, "alice") as asker,
        cluster.socket(1, "bob") as member,
    ):
        for client in (asker, member):
            join(client, cluster.product.chat_id)
        response_id = ask(asker, "@slow count")
        asker.until("response.delta")
        suspended = cluster.processes["server0"]
        suspended.send_signal(signal.SIGSTOP)
        try:
            ended = member.until(*TERMINAL)[-1]
        finally:
            suspended.send_signal(signal.SIGCONT)
        assert (ended["type"], ended["error"]["code"]) == ("response.error", "interrupted")

        frames = asker.until(*TERMINAL)
        # The next answer ends after everything that the process still had to write.
        later = ask(asker, "@slow count")
        frames += asker.until("response.done")
        assert ends_of(frames, response_id) == ["response.error"]
        assert ends_of(frames, later) == ["response.done"]
        assert logged_ends(cluster, response_id) == ["response.error"]
