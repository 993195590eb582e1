"""Two server processes and a worker on PostgreSQL and Redis."""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest

from tests import services
from tests.client import UampClient
from tests.journeys.product import Product
from tests.programs import Program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.client import Frame

BATCH_SECONDS = 60.0
WORDS = " ".join(f"word{number}" for number in range(1, 201))


class ClusteredProduct(Product):
    """A product with two servers, which start and stop together."""

    cluster: Cluster

    def start(self) -> None:
        """Start both servers and wait until they are ready."""
        for number in range(len(self.cluster.ports)):
            self.cluster.start_server(number)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Stop both servers with a signal; the worker keeps running."""
        for place in range(len(self.cluster.ports)):
            self.cluster.end(f"server{place}", number)


class Cluster:
    """Two servers and a worker of one product."""

    def __init__(self, product: ClusteredProduct) -> None:
        self.product = product
        product.cluster = self
        self.ports = [services.free_port(), services.free_port()]
        product.port, *product.further_ports = self.ports
        self.processes: dict[str, Program] = {}

    def start_server(self, number: int) -> None:
        """Start one of the two servers and wait until it is ready."""
        port = str(self.ports[number])
        command = [*services.UVICORN[1:], "--port", port]
        self._start(f"server{number}", [*command, "--log-level", "warning"])
        services.wait_until_ready(f"http://127.0.0.1:{port}", self.processes[f"server{number}"])

    def start_worker(self) -> None:
        """Start the worker."""
        self._start("worker", ["celery", "-A", "uamp_project", "worker", "-P", "threads", "-c2"])

    def _start(self, name: str, command: list[str]) -> None:
        self.processes[name] = Program(
            *(sys.executable, "-m", *command),
            cwd=self.product.folder,
            env=self.product.all_environment(),
            stderr=subprocess.DEVNULL,
        )

    def end(self, name: str, number: int = signal.SIGTERM) -> None:
        """Stop one process with a signal."""
        self.processes.pop(name).end(number)

    @contextmanager
    def socket(self, number: int, username: str, path: str = "/uamp") -> Iterator[UampClient]:
        """Open a person's socket to one of the servers."""
        key = self.product.people[username]["api_key"]
        url = f"ws://127.0.0.1:{self.ports[number]}{path}"
        with UampClient(url, headers={"Authorization": f"Bearer {key}"}) as client:
            yield client

    def batch(self, number: int, username: str, *events: Frame) -> list[Frame]:
        """Send a person's batch to one of the servers and return the answer."""
        answer = httpx.post(
            f"http://127.0.0.1:{self.ports[number]}/uamp",
            json=list(events),
            headers={"Authorization": f"Bearer {self.product.people[username]['api_key']}"},
            timeout=BATCH_SECONDS,
            trust_env=False,
        )
        frames: list[Frame] = answer.raise_for_status().json()
        return frames


@contextmanager
def running_cluster(redis_url: str, data_dir: Path, **environment: str) -> Iterator[Cluster]:
    """Run a cluster with its own database until the end of the block."""
    address = services.postgres()
    if address is None:
        pytest.skip("no PostgreSQL: set TEST_DATABASE_URL or install postgresql")
    name = f"uamp_{uuid.uuid4().hex[:12]}"
    product = ClusteredProduct(
        data_dir,
        0,
        {
            "DATABASE_URL": f"{address.rsplit('/', 1)[0]}/{name}",
            "REDIS_URL": redis_url,
            "REDIS_PREFIX": name,
            "SECRET_KEY": uuid.uuid4().hex * 2,
            "UAMP_LEASE_SECONDS": "5",
            "UAMP_SWEEP_SECONDS": "0.5",
            "UAMP_GRACE_SECONDS": "0.2",
            **environment,
        },
    )
    running = Cluster(product)
    try:
        product.prepare()
        product.start()
        running.start_worker()
        yield running
    finally:
        product.close()
        for process in list(running.processes):
            running.end(process)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def join(client: UampClient, chat_id: str) -> dict[str, Any]:
    """Open a session in the chat."""
    session = {"modalities": ["text"]}
    client.send("session.create", uamp_version="1.0", session=session, chat=chat_id)
    created = client.until("session.created")[-1]
    client.until("capabilities")
    return created


def ask(client: UampClient, text: str) -> str:
    """Write a message that an agent answers, and return the response's id."""
    client.send("input.text", text=text)
    client.send("response.create")
    response_id: str = client.until("response.created")[-1]["response_id"]
    return response_id
