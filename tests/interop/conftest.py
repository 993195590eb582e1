"""The fixtures of the tests with official clients."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.federation_app.peer import federated, peer, rpc_place
from tests.interop.accounts import make_account
from tests.interop.deployments import (
    ONE_PROCESS,
    TWO_PROCESSES,
    Deployment,
    TwoProcesses,
    two_processes,
)
from tests.interop.installation import node_folder, python_of
from tests.live_server import alice, bob, demo, dial, impatience, mallory, web

if TYPE_CHECKING:
    from tests.conftest import ServerAddress

# `make test` runs the client that is installed in seconds, against one process.
IS_WHOLE = os.environ.get("INTEROP") == "1"
_OTHERS = [
    *("a2a", "acp", "ag_ui", "envelopes", "frameworks", "realtime", "remote_agents", "webagents"),
]
collect_ignore = [] if IS_WHOLE else [f"test_{name}.py" for name in _OTHERS]
# A2A's kit is in no registry: it runs where both of its versions are named.
if not {"A2A_KIT_10", "A2A_KIT_03"} <= set(os.environ):
    collect_ignore.append("test_a2a_kit.py")

Run = Callable[..., dict[str, Any]]
PROGRAMS = Path(__file__).parent / "clients"
PROGRAM_SECONDS = 100


def command_of(lock: str, program: str) -> list[str]:
    """Return the command of a program; Node finds packages beside the program's file alone."""
    if lock != "node":
        return [str(python_of(lock)), str(PROGRAMS / program)]
    return ["node", str(shutil.copy(PROGRAMS / program, node_folder()))]


@pytest.fixture(scope="session")
def two_running(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoProcesses]:
    """Run two server processes and a worker; every test has an account of its own there."""
    with two_processes(redis_url, tmp_path_factory.mktemp("interop")) as running:
        yield running
        assert all(running.balancer.passed.values()), running.balancer.passed


@pytest.fixture(params=[ONE_PROCESS, TWO_PROCESSES] if IS_WHOLE else [ONE_PROCESS])
def deployment(request: pytest.FixtureRequest, demo: ServerAddress) -> Deployment:
    """Give a running product and an account: one process, and once more two that take turns.

    The one process is there in both cases: pytest-django has to know before a test that it commits.
    """
    if request.param == TWO_PROCESSES:
        running: TwoProcesses = request.getfixturevalue("two_running")
        return running.deployment()
    return Deployment(origin=demo.http, account=make_account("client"))


@pytest.fixture
def run_client(deployment: Deployment) -> Run:
    """Give a function that runs a program of `clients` and returns what it printed.

    The program acts for the person of the deployment.
    """

    def run(lock: str, program: str, *arguments: str) -> dict[str, Any]:
        try:
            command = command_of(lock, program)
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            pytest.skip(f"the clients of {lock} cannot be installed: {error}")
        command += [deployment.origin, deployment.account.key, *arguments]
        environment = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        done = subprocess.run(  # noqa: S603 a program of ours
            command,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            timeout=PROGRAM_SECONDS,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        printed: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return printed

    return run


__all__ = [
    "alice",
    "bob",
    "demo",
    "dial",
    "federated",
    "impatience",
    "mallory",
    "peer",
    "rpc_place",
    "web",
]
