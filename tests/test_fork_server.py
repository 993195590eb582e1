"""Product processes are forks; if that is impossible, they start as usual."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests import fork_server
from tests.programs import PROGRAM_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the fork server needs Linux")

# The server of these tests imports one small library.
CODE = """
import json, os, sys  # not django.setup()
print(json.dumps({
    "is_fork": "rfc8785" in sys.modules, "parent": os.getppid(), "session": os.getsid(0),
    "argv": sys.argv, "variable": os.environ.get("A_VARIABLE"), "cwd": os.getcwd(),
    "input": sys.stdin.read(),
}))
sys.exit(3)
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[fork_server.ForkServer]:
    """Give this process another fork server."""
    monkeypatch.setattr(fork_server, "LIBRARIES", {"rfc8785"})
    monkeypatch.setattr(fork_server, "TWISTED", ("rfc8785",))
    monkeypatch.setattr(fork_server, "server", fork_server.ForkServer())
    yield fork_server.server
    fork_server.server.close()


def run(cwd: str = "/", **environment: str) -> dict[str, Any]:
    """Run the code and return its report about its process."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with subprocess.Popen(  # noqa: S603 our own interpreter
        [sys.executable, "-c", CODE, "an argument"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=cwd,
        env={**variables, **environment},
        start_new_session=True,
    ) as process:
        output, _ = process.communicate(b"typed", timeout=PROGRAM_SECONDS)
    facts: dict[str, Any] = json.loads(output)
    assert process.returncode == 3
    assert (facts.pop("parent"), facts.pop("session")) == (os.getpid(), process.pid)
    assert facts.pop("argv") == ["-c", "an argument"]
    assert (facts.pop("cwd"), facts.pop("input")) == (cwd, "typed")
    return facts


@pytest.mark.usefixtures("server")
def test_a_process_of_the_product_is_a_fork_and_a_child_of_the_tests() -> None:
    assert run(A_VARIABLE="here") == {"is_fork": True, "variable": "here"}
    assert run() == {"is_fork": True, "variable": None}


@pytest.mark.usefixtures("server")
def test_what_python_reads_at_its_start_starts_another_interpreter() -> None:
    assert run(PYTHONDEVMODE="1") == {"is_fork": False, "variable": None}


@pytest.mark.usefixtures("server")
def test_another_release_starts_another_interpreter(tmp_path: Path) -> None:
    (tmp_path / "manage.py").touch()
    assert run(str(tmp_path)) == {"is_fork": False, "variable": None}


def test_a_process_starts_without_a_fork_server_that_was_killed(
    server: fork_server.ForkServer,
) -> None:
    assert run()["is_fork"]
    assert server._process is not None
    server._process.kill()

    assert not run()["is_fork"]
    assert not run()["is_fork"]


def test_a_process_starts_without_a_stalled_fork_server(
    server: fork_server.ForkServer,
) -> None:
    assert run()["is_fork"]
    assert server._process is not None
    assert server._socket is not None
    server._socket.settimeout(0.2)
    server._process.send_signal(signal.SIGSTOP)

    assert not run()["is_fork"]
