"""The time it takes to recover from a killed process: `python -m benchmarks resume`.

Real servers and workers (tests/faults) on PostgreSQL and Redis. A worker is killed (SIGKILL) in the
middle of a long tool; the time runs until the tool's new attempt reports progress. A server is
killed while an answer streams after its checkpoint; the time runs until its client, which resumes
at the other server, receives text from the process that took over.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

from tests.faults.kill_clients import Asker, new_tag
from tests.faults.kill_servers import LIMITS, running_servers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.client import Frame
    from tests.faults.kill_servers import ServerGroup

PRODUCT: Final = {"UAMP_LEASE_SECONDS": "15", "UAMP_SWEEP_SECONDS": "3", "UAMP_FLUSH_MS": "250"}
WAIT_SECONDS: Final = 90.0
UNDER_WAY_SECONDS: Final = 0.3


class Watch:
    """Waits for a frame, and then for another one after the kill."""

    def __init__(self, before: Callable[[Frame], bool], after: Callable[[Frame], bool]) -> None:
        self.reached = threading.Event()
        self.resumed = threading.Event()
        self.killed = False
        self.resumed_at = 0.0
        self._before, self._after = before, after

    def __call__(self, _asker: Asker, frame: Frame) -> None:
        """See Asker: every frame that it gets."""
        if self.killed:
            if not self.resumed.is_set() and self._after(frame):
                self.resumed_at = time.monotonic()
                self.resumed.set()
        elif self._before(frame):
            self.reached.set()


def _is_progress(frame: Frame) -> bool:
    return frame["type"] == "progress" and frame.get("percent") is not None


def _is_late_progress(frame: Frame) -> bool:
    """Return whether the tool has had an effect: its journal names its process."""
    return _is_progress(frame) and frame["percent"] >= 50


def _is_late_text(frame: Frame) -> bool:
    """Return whether a text delta belongs to the answer after the tools."""
    return _is_text(frame) and "word5" in frame["delta"]["text"]


def _is_text(frame: Frame) -> bool:
    delta = frame.get("delta")
    return isinstance(delta, dict) and delta.get("type") == "text"


def _is_new_text(frame: Frame) -> bool:
    """Return whether a delta continues the answer and does not repeat earlier text."""
    return _is_text(frame) and frame["offset"] > 0 and "word" in frame["delta"]["text"]


def measure(group: ServerGroup, victim: str, number: int) -> float:
    """Kill once; return the seconds until the work resumes."""
    before, after = (
        (_is_late_progress, _is_progress) if victim == "worker" else (_is_late_text, _is_new_text)
    )
    watch = Watch(before, after)
    asker = Asker(group, number % 2, agent="stepper", tag=new_tag(number), watch=watch)
    asker.start()
    asker.ask()
    if not watch.reached.wait(WAIT_SECONDS):
        raise TimeoutError(f"{asker.name} did not come to the point: {asker.failure!r}")
    server = asker.server
    killed_at = time.monotonic()
    if victim == "server":
        group.kill_server(server)
    else:
        busy = (group.worker_of(int(line[3])) for line in group.journal(asker.tag))
        group.kill_worker(next(pid for pid in busy if pid is not None))
    # Let its output so far arrive.
    time.sleep(UNDER_WAY_SECONDS)
    watch.killed = True
    resumed = watch.resumed.wait(WAIT_SECONDS)
    if victim == "server":
        group.restart_server(server)
    asker.join(WAIT_SECONDS)
    if not resumed:
        raise TimeoutError(f"{asker.name} did not resume: {asker.failure!r}")
    return watch.resumed_at - killed_at


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks resume", description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--victims", nargs="+", choices=["worker", "server"], default=["worker"])
    parser.add_argument("--settings", nargs="+", choices=["short", "product"], default=["short"])
    options = parser.parse_args(arguments)
    print(
        f"{'settings':10}{'lease':>7}{'sweep':>7}{'killed':>8}{'kills':>7}{'p50 s':>8}{'max s':>8}"
    )
    for name in options.settings:
        changes = PRODUCT if name == "product" else {}
        with running_servers("postgres", changes) as group:
            for victim in options.victims:
                times = [measure(group, victim, number) for number in range(options.kills)]
                used = {**LIMITS, **changes}
                print(
                    f"{name:10}{used['UAMP_LEASE_SECONDS']:>7}{used['UAMP_SWEEP_SECONDS']:>7}"
                    f"{victim:>8}{len(times):>7}{statistics.median(times):>8.1f}{max(times):>8.1f}"
                )
                sys.stdout.flush()


if __name__ == "__main__":
    main()
