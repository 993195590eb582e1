"""What a process costs, read from /proc: CPU seconds of all its threads, and its own memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterable

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Return user and system time of a process and all its threads, in seconds."""
    # The name may hold blanks and brackets; what follows the last bracket is numbers.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def pss_bytes(pid: int) -> int:
    """Return the proportional set size of a process in bytes."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"no Pss of process {pid}")


class Backends:
    """The PostgreSQL backends of one database, where they run on this machine."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._seen: dict[int, float] = {}

    def cpu_seconds(self) -> float:
        """Return what the database's backends used so far, those that ended included."""
        rows = self._connection.execute(
            "SELECT pid FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        for pid in _present(pid for (pid,) in rows.fetchall()):
            self._seen[pid] = cpu_seconds(pid)
        return sum(self._seen.values())

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()


def _present(pids: Iterable[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]
