"""A run of the tests in workers: a skip is written down, and fails where services are required."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
    """Run a module of tests as the tests of this project run."""
    (folder / "conftest.py").write_text("from tests.conftest import *\n")
    (folder / "test_made.py").write_text(source)
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return subprocess.run(  # noqa: S603 our own interpreter
        [
            *(sys.executable, "-m", "pytest", "-q", "-n1", str(folder)),
            *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)),
        ],
        cwd=folder,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_failed_in_a_worker_is_written_down_with_its_reason(tmp_path: Path) -> None:
    failed = tmp_path / "failed"
    done = run_in_worker(tmp_path, FAILED, FAILED_FILE=str(failed))
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    call, setup = sorted(failed.read_text().splitlines())
    assert call.endswith("::test_failed (call): assert 1 == 2")
    assert setup.endswith("::test_not_set_up (setup): LookupError: nothing")


def test_a_skip_in_a_worker_fails_a_run_that_requires_services(tmp_path: Path) -> None:
    skipped = tmp_path / "skipped"
    done = run_in_worker(tmp_path, SKIPPED, SKIPPED_FILE=str(skipped), REQUIRE_SERVICES="1")
    output = done.stdout + done.stderr

    assert "1 skipped" in output.splitlines()[-1], output
    assert skipped.read_text().endswith("test_skipped: Skipped: no such service\n")
    assert skipped.read_text().count("\n") == 1
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, output
