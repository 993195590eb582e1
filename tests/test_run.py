"""A test run with workers: skips are recorded, and are failures if services are required."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from tests import cpu_times, services, tiers
from tests.run import WORKER_CONNECTIONS, WORKERS, database_workers

ROOT = Path(__file__).parent.parent
SKIPPED = """
import pytest
from tests.settings import WORKER
from django.db import connection

@pytest.mark.django_db
def test_skipped():
    assert WORKER == "gw0"
    assert "gw0" in str(connection.settings_dict["NAME"])
    pytest.skip("no such service")
"""
FAILED = """
import pytest

@pytest.fixture
def broken():
    raise LookupError("nothing")

def test_failed():
    assert 1 == 2

def test_not_set_up(broken):
    pass
"""


def run_in_worker(
    folder: Path, source: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a module of tests like the tests of this project."""
    (folder / "conftest.py").write_text("from tests.conftest import *\n")
    (folder / "test_made.py").write_text(source)
    variables = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return subprocess.run(  # noqa: S603 our own interpreter
        [
            *(sys.executable, "-m", "pytest", "-q", "-n1", str(folder)),
            *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)),
        ],
        cwd=folder,
        env={**variables, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_what_failed_in_a_worker_is_written_down_with_its_reason(tmp_path: Path) -> None:
    failed = tmp_path / "failed"
    done = run_in_worker(tmp_path, FAILED, FAILED_FILE=str(failed))
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    call, setup = sorted(failed.read_text().splitlines())
    assert call.endswith("::test_failed (call): assert 1 == 2")
    assert setup.endswith("::test_not_set_up (setup): LookupError: nothing")


@pytest.mark.long
def test_a_skip_in_a_worker_fails_a_run_that_requires_services(tmp_path: Path) -> None:
    skipped = tmp_path / "skipped"
    done = run_in_worker(tmp_path, SKIPPED, SKIPPED_FILE=str(skipped), REQUIRE_SERVICES="1")
    output = done.stdout + done.stderr

    assert "1 skipped" in output.splitlines()[-1], output
    assert skipped.read_text().endswith("test_skipped: Skipped: no such service\n")
    assert skipped.read_text().count("\n") == 1
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, output


# --- Hanging tests ---

SWALLOWS_ITS_TIMEOUT = """
import time
import pytest

@pytest.mark.timeout(1)
def test_hangs():
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
"""
HANGS_IN_TEARDOWN = """
import time
import pytest

@pytest.fixture
def slow_to_end():
    yield
    time.sleep(600)

def test_fails_first(slow_to_end):
    assert 1 == 2
"""
HANGS_AT_THE_END = """
import atexit, threading, time

def test_leaves_a_thread():
    threading.Thread(target=time.sleep, args=(600,)).start()
"""
LEAVES_A_CHILD = """
import subprocess, sys

CODE = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
children = []

def test_leaves_a_child():
    command = [sys.executable, "-c", CODE, "planted"]
    children.append(subprocess.Popen(command, start_new_session=True))
"""
STOPS_ITSELF = """
import os, signal
import pytest

@pytest.mark.timeout(1)
def test_is_stopped():
    os.kill(os.getpid(), signal.SIGSTOP)
"""
ENDS_LATE = """
import time

def test_fails():
    assert 1 == 2

def test_sleeps():
    time.sleep(600)
"""
FAILS_ONCE = """
from pathlib import Path

MARK = Path(__file__).with_suffix(".ran")

def test_fails_once():
    if not MARK.exists():
        MARK.touch()
        raise AssertionError("too slow")

def test_passes():
    assert MARK.exists()
"""
FAILS_ALWAYS = """
def test_fails():
    assert 1 == 2
"""
SUITE = """
import sys
from pathlib import Path
from tests import processes
from tests.run import Suite

processes.adopt_orphans()
folder, root, planted, seconds, tier = sys.argv[1:]
suite = Suite(
    folder=Path(folder), arguments=(planted,), seconds=float(seconds), is_short=tier == "short"
)
suite.environment["PYTEST_ADDOPTS"] = f"-c {root}/pyproject.toml --rootdir {root}"
suite.run("planted", (), workers=1)
suite.report()
sys.exit(not suite.has_passed)
"""
LIMITS = {
    "WATCHDOG_MARGIN_SECONDS": "2",
    "WATCHDOG_TEARDOWN_SECONDS": "3",
    "WATCHDOG_FINISH_SECONDS": "20",
    "WATCHDOG_GRACE_SECONDS": "2",
}


def run_suite(
    tmp_path: Path, source: str, *, seconds: float = 150, tier: str = "all"
) -> subprocess.CompletedProcess[str]:
    """Run a module as one of the runs of `tests/run.py`, with short limits."""
    planted, folder = tmp_path / "planted", tmp_path / "suite"
    planted.mkdir()
    folder.mkdir()
    (planted / "conftest.py").write_text("from tests.conftest import *\n")
    (planted / "test_planted.py").write_text(source)
    variables = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return subprocess.run(  # noqa: S603 our own interpreter
        [sys.executable, "-c", SUITE, str(folder), str(ROOT), str(planted), str(seconds), tier],
        cwd=planted,
        env={**variables, **LIMITS, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "lines"),
    [
        pytest.param(
            HANGS_IN_TEARDOWN,
            ["test_fails_first", "assert 1 == 2", "Timeout (0:00:03)!", "crashed while running"],
            id="teardown",
        ),
        pytest.param(
            STOPS_ITSELF,
            ["hangs and is killed: ", "test_is_stopped", "crashed while running"],
            id="stopped",
        ),
        pytest.param(
            SWALLOWS_ITS_TIMEOUT,
            ["Timeout (0:00:03)!", "in test_hangs", "crashed while running"],
            id="call",
        ),
    ],
)
def test_a_test_that_hangs_ends_in_time_and_is_named(
    tmp_path: Path, source: str, lines: list[str]
) -> None:
    done = run_suite(tmp_path, source)
    output = done.stdout + done.stderr
    assert done.returncode == 1, output
    assert [line for line in lines if line not in output] == [], output


@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "tier", "status", "lines"),
    [
        pytest.param(
            FAILS_ONCE, "short", 0, ["Unstable: ", "test_fails_once (call): "], id="by chance"
        ),
        pytest.param(
            *(FAILS_ALWAYS, "short", 1, ["Again, alone: 1", "=== Failed ==="]), id="always"
        ),
        pytest.param(FAILS_ONCE, "all", 1, ["=== Failed ==="], id="all"),
    ],
)
def test_failures_of_the_short_run_are_repeated_alone_and_listed(
    tmp_path: Path, source: str, tier: str, status: int, lines: list[str]
) -> None:
    done = run_suite(tmp_path, source, tier=tier)
    output = done.stdout + done.stderr
    assert done.returncode == status, output
    assert [line for line in lines if line not in output] == [], output
    assert ("Again, alone: " in output) is (tier == "short"), output


@pytest.mark.long
def test_a_run_that_takes_too_long_is_stopped_with_its_failures(tmp_path: Path) -> None:
    done = run_suite(tmp_path, ENDS_LATE, seconds=45)
    output = done.stdout + done.stderr
    assert done.returncode == 1, output
    assert "Stopped after 45 seconds" in output
    assert "test_planted.py::test_sleeps" in output
    assert "test_planted.py::test_fails (call): assert 1 == 2" in output


@pytest.mark.long
def test_a_thread_that_does_not_end_keeps_no_run(tmp_path: Path) -> None:
    done = run_suite(tmp_path, HANGS_AT_THE_END)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.long
def test_a_process_that_a_test_leaves_behind_is_killed(tmp_path: Path) -> None:
    done = run_suite(tmp_path, LEAVES_A_CHILD)
    assert done.returncode == 0, done.stdout + done.stderr
    commands = (file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline"))
    assert not [command for command in commands if command.endswith(b"\0planted\0")]


def test_the_cpu_of_the_folders_is_added_up(tmp_path: Path) -> None:
    for number, figure in enumerate((1.5, 2.0)):
        figures = {"folders": {"uamp": figure}, "modules": {"uamp/test_a.py": figure}}
        (tmp_path / f"{number}.json").write_text(json.dumps(figures))
    assert cpu_times.total(tmp_path, "folders") == {"uamp": 3.5}
    assert cpu_times.total(tmp_path, "modules") == {"uamp/test_a.py": 3.5}


@pytest.mark.parametrize(
    ("connections", "workers"), [(3, 1), (40, min(2, WORKERS)), (10_000, WORKERS)]
)
def test_the_connections_of_postgresql_suffice_for_all_workers(
    connections: int, workers: int
) -> None:
    assert database_workers(connections) == workers


@pytest.mark.postgres
def test_a_worker_opens_no_more_connections_than_it_is_counted_for(db: None) -> None:
    options = connection.settings_dict["OPTIONS"]
    assert options["pool"]["max_size"] + 4 <= WORKER_CONNECTIONS
    assert services.connection_limit(os.environ["TEST_DATABASE_URL"]) >= WORKER_CONNECTIONS


@pytest.mark.parametrize(("number", "name"), [(0, "zero"), (1, "one"), (2, "two")])
@pytest.mark.parametrize("letter", ["a", "b"])
def test_a_sampled_test_has_each_parameter_once(
    request: pytest.FixtureRequest, number: int, name: str, letter: str
) -> None:
    assert name
    assert tiers.is_sampled(request.node) is (letter == "aba"[number])


@pytest.mark.parametrize("number", range(7))
def test_a_sampled_test_may_have_a_limit(request: pytest.FixtureRequest, number: int) -> None:
    request.node.add_marker(pytest.mark.sampled(3))
    assert tiers.is_sampled(request.node) is (number in {0, 3, 5})


@pytest.mark.parametrize(
    ("text", "only_browser", "vendor", "expected"),
    [
        ("async def test_page(chromium): ...", True, "sqlite", False),
        ("def test_rows(db): ...", True, "sqlite", True),
        ("@pytest.mark.postgres", False, "postgresql", False),
        ("def test_rows(db): ...", False, "postgresql", True),
        ("def test_rows(db): ...", False, "sqlite", False),
    ],
)
def test_modules_without_tests_for_a_run_are_not_imported(
    tmp_path: Path, text: str, vendor: str, *, only_browser: bool, expected: bool
) -> None:
    module = tmp_path / "tests/chat_app/test_it.py"
    module.parent.mkdir(parents=True)
    module.write_text(text)
    outcome = tiers.has_nothing_for(module, tmp_path, vendor, only_browser=only_browser, short=True)
    assert outcome is expected
