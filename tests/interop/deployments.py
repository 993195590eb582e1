"""Deployments for clients: one server on SQLite, or two on PostgreSQL and Redis.

With two servers, consecutive requests alternate between them.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.interop import accounts
from tests.interop.round_robin import round_robin
from tests.journeys.cluster import running_cluster
from tests.realtime_vendor import realtime_vendor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.interop.round_robin import RoundRobin

ONE_PROCESS = "one process"
TWO_PROCESSES = "two processes"
# Enough for every test that has two processes.
PEOPLE = 40
# What the vendor's model says; the processes and this one make its agent alike.
SPOKEN = "You played {said}"
SPEAKER_OPTIONS = {"transcription": "whisper"}


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A running product, as a client of one person knows it."""

    origin: str
    account: accounts.Account


class TwoProcesses:
    """Two server processes and a worker, and accounts that no test has used."""

    def __init__(self, balancer: RoundRobin, unused: Iterator[accounts.Account]) -> None:
        self.balancer = balancer
        self._unused = unused

    def deployment(self) -> Deployment:
        """Return the two as one address, for a person of their own."""
        return Deployment(
            origin=f"http://127.0.0.1:{self.balancer.port}", account=next(self._unused)
        )


@contextmanager
def two_processes(redis_url: str, data_dir: Path) -> Iterator[TwoProcesses]:
    """Run two server processes and a worker until the end of the block."""
    # Nothing is killed here, and a lease must outlast a machine with other work. The clients have
    # receivers of webhooks on this machine.
    settings = {
        "UAMP_LEASE_SECONDS": "15",
        "UAMP_SWEEP_SECONDS": "2",
        "UAMP_FETCH_ALLOW_HOSTS": "127.0.0.1:*",
    }
    with (
        realtime_vendor(SPOKEN) as vendor,
        running_cluster(
            redis_url, data_dir, UAMP_MODEL_ALLOW_HOSTS=vendor.url.split("/")[2], **settings
        ) as cluster,
    ):
        speaker = f"realtime_vendor.make_agent({vendor.url!r}, options={SPEAKER_OPTIONS})"
        cluster.product.manage(
            "shell", "-v0", "-c", f"from tests import realtime_vendor; {speaker}"
        )
        accounts_json = cluster.product.manage(
            "shell", "-v0", "-c", accounts.MAKE.format(count=PEOPLE)
        )
        unused = iter([accounts.Account(**fields) for fields in json.loads(accounts_json)])
        with round_robin(cluster.ports) as balancer:
            yield TwoProcesses(balancer, unused)
