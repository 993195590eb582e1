"""Programs of tests become ready or fail, end or are killed, and are started in one way."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import Program

TESTS = Path(__file__).parent
SLEEPING = "import time; time.sleep(600)"
STUBBORN = f"import signal; signal.signal(15, signal.SIG_IGN); print('on', flush=True); {SLEEPING}"
STARTERS = {"Popen", "create_subprocess_exec", "create_subprocess_shell", "popen", "spawnv"}
ELSEWHERE = {
    "run.py": "it runs before pytest does",
    "fork_server.py": "it is the server of the forks that `Popen` starts",
    "test_fork_server.py": "it compares such forks with processes",
    "uamp/client/test_javascript.py": "it reads a process in the loop of the test",
    "agents_app/mcp/mcp_crude.py": "it runs outside of pytest, as does its child",
    "sessions_app/tools/long_tools.py": "it runs in a worker",
}


def test_processes_are_started_by_program() -> None:
    programs = {
        path.relative_to(TESTS).as_posix()
        for path in TESTS.rglob("*.py")
        if path.name != "programs.py" and path.parts[len(TESTS.parts)] != "interop"
        if any(word in (text := path.read_text()) for word in STARTERS) and starts_process(text)
    }
    assert programs == set(ELSEWHERE)


def starts_process(text: str) -> bool:
    names = {
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
    }
    return bool(names & STARTERS)


def test_a_program_that_ends_before_it_is_ready_fails_with_its_output(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "raise SystemExit('no port')")
    with (
        Program(*command, log=tmp_path / "log") as program,
        pytest.raises(pytest.fail.Exception, match=r"ended with 1, before it is up:\nno port"),
    ):
        program.wait_until(lambda: False, "it is up")


def test_a_program_that_is_never_ready_fails_in_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Program(*(sys.executable, "-c", STUBBORN), log=log) as program:
        program.wait_until(lambda: "on" in program.output)
        with pytest.raises(pytest.fail.Exception, match=r"not within 0\.2 s: it is ready\non"):
            program.wait_until(lambda: False, seconds=0.2)
        assert program.end(seconds=0.2) == -signal.SIGKILL


def test_a_program_ends_with_its_block_and_its_pipes_are_closed() -> None:
    with Program(*(sys.executable, "-c", SLEEPING), stdout=subprocess.PIPE) as program:
        assert program.poll() is None
    assert program.returncode == -signal.SIGTERM
    assert program.stdout is not None
    assert program.stdout.closed


def test_reading_what_never_comes_ends_in_time() -> None:
    with Program(*(sys.executable, "-c", SLEEPING), stdout=subprocess.PIPE) as program:
        lines = iter(program.stdout or ())
        with (
            pytest.raises(pytest.fail.Exception, match=r"printed nothing for 0\.2 s"),
            program.limited_reads(0.2),
        ):
            next(lines, None)
