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


def test_a_skip_in_a_worker_fails_a_run_that_requires_services(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "test_skipped.py").write_text(SKIPPED)
    skipped = tmp_path / "skipped"
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}

    done = subprocess.run(  # noqa: S603 our own interpreter
        [
            *(sys.executable, "-m", "pytest", "-q", "-n1", str(tmp_path)),
            *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)),
        ],
        cwd=tmp_path,
        env={**kept, "SKIPPED_FILE": str(skipped), "REQUIRE_SERVICES": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    output = done.stdout + done.stderr

    assert "1 skipped" in output.splitlines()[-1], output
    assert skipped.read_text().endswith("test_skipped: Skipped: no such service\n")
    assert skipped.read_text().count("\n") == 1
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, output
