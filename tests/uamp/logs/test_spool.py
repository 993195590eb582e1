"""Tables that are larger than memory: they answer as dictionaries do, and leave no files."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.programs import PROGRAM_SECONDS
from uamp.logs import spool
from uamp.logs.spool import Spool, SpoolError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.any_database

KEYS = st.sampled_from(["", "a", "b\0", "b", "ä\u2028", "msg_1"])
VALUES = st.none() | st.booleans() | st.integers() | st.lists(st.text(max_size=3), max_size=2)


@pytest.fixture(params=[0, 30, spool.BYTES_IN_MEMORY])
def _in_memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep no row in memory, a few, or all."""
    monkeypatch.setattr(spool, "BYTES_IN_MEMORY", request.param)


@pytest.mark.usefixtures("_in_memory")
def test_a_table_is_like_a_dictionary() -> None:
    @given(st.lists(st.tuples(KEYS, VALUES), max_size=20))
    def compared(rows: list[tuple[str, Any]]) -> None:
        expected: dict[str, Any] = {}
        with Spool() as tables:
            table = tables.table(object)
            for key, row in rows:
                assert (key in table, table.get(key)) == (key in expected, expected.get(key))
                expected[key] = table[key] = row
                assert (key in table, table.get(key)) == (True, row)
            assert list(table.items()) == list(expected.items())
            assert [(key in table, table.get(key)) for key in expected] == [
                (True, row) for row in expected.values()
            ]
            assert len(table) == len(expected)

    compared()


FILL = """
from uamp.logs.spool import Spool, SpoolError

with Spool() as tables:
    table = tables.table(str)
    try:
        for number in range(20_000):
            table[str(number)] = "x" * 1000
    except SpoolError as error:
        print(error)
"""


def test_a_file_that_cannot_be_used_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "BYTES_IN_MEMORY", 0)
    monkeypatch.setattr(spool, "_CREATE", "no statement")
    with Spool() as tables, pytest.raises(SpoolError, match="The temporary file cannot be used"):
        tables.table(int)["a"] = 1


def test_a_full_disk_is_reported_and_no_file_is_left(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(  # noqa: S603 our own program
        ["/bin/sh", "-c", 'ulimit -f 1000; exec "$0" -c "$1"', sys.executable, FILL],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
        check=True,
    )
    assert done.stdout.startswith("The temporary file cannot be used: "), done.stderr
    assert list(tmp_path.iterdir()) == []
