"""The CPU seconds of a process's threads, and its own memory, read from /proc."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
import redis

if TYPE_CHECKING:
    from collections.abc import Iterable

_TICK: Final = os.sysconf("SC_CLK_TCK")
WRITER_THREAD: Final = "turns"
"""The name of the thread that writes turns (`sessions_app.store.group_commit`)."""


def cpu_seconds(pid: int) -> float:
    """Return user and system time of a process and all its threads, in seconds."""
    return _seconds(Path(f"/proc/{pid}/stat"))


def thread_seconds(pid: int, name: str) -> float:
    """Return the CPU time of a process's threads with a name, in seconds."""
    total = 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            if (task / "comm").read_text().strip() == name:
                total += _seconds(task / "stat")
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
    return total


def _seconds(stat: Path) -> float:
    # The name may contain spaces and parentheses; only numbers follow the last parenthesis.
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def pss_bytes(pid: int) -> int:
    """Return the proportional set size of a process in bytes."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"no Pss of process {pid}")


def redis_pid(url: str) -> int:
    """Return the process id of a local Redis; raises LookupError if it is not on this machine."""
    with redis.Redis.from_url(url) as client:
        pid = int(client.info("server")["process_id"])
    if not Path(f"/proc/{pid}").exists():
        raise LookupError(f"no process {pid} of Redis on this machine")
    return pid


class Backends:
    """The PostgreSQL backends of one local database, except those of autovacuum."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._seen: dict[int, float] = {}

    def cpu_seconds(self) -> float:
        """Return the CPU time of the database's backends so far, including ended ones."""
        rows = self._connection.execute(
            "SELECT pid FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type <> 'autovacuum worker'"
        )
        for pid in _present(pid for (pid,) in rows.fetchall()):
            self._seen[pid] = cpu_seconds(pid)
        return sum(self._seen.values())

    def close(self) -> None:
        """Close the connection to the database."""
        self._connection.close()


def _present(pids: Iterable[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]
