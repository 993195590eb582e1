"""The chaos run in short: nothing is lost or doubled, and without keys something is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import services

pytestmark = pytest.mark.long

SECONDS = 12


def chaos(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it in a process of its own, on a database of its own."""
    return subprocess.run(  # noqa: S603 our own interpreter
        [sys.executable, "-m", "tests.faults.ledger_chaos", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_nothing_is_lost_or_doubled_whatever_dies(database: str) -> None:
    if database == "postgres" and services.postgres() is None:
        pytest.skip("no PostgreSQL: set TEST_DATABASE_URL")

    done = chaos("--seconds", str(SECONDS), "--database", database)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 lost, 0 doubled, audit clean" in done.stdout
    assert " 0 done" not in done.stdout
    assert " 0 deaths" not in done.stdout


def test_without_keys_effects_are_doubled() -> None:
    done = chaos("--seconds", "5", "--database", "sqlite", "--mutant", "forgets keys")

    assert done.returncode == 1, done.stdout + done.stderr
    assert " 0 doubled" not in done.stdout
