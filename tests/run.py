"""Runs the tests on every available database, and finally lists failures and tests not run.

`make test` leaves out the long tests; `make test-all` adds `--all` and runs everything on both
databases (tests/tiers.py). Other arguments are appended to pytest's: `-n0` runs without workers.
With REQUIRE_SERVICES=1, a missing service is a failure.

If tests of only a few modules fail in `make test`, they run once more, alone, as a busy machine may
have starved them. Those that pass then are listed as unstable and do not fail the run. `make
test-all` repeats nothing.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests import cpu_times, processes, services
from tests.services import OPTIONAL_PROGRAM
from tests.watchdog import activities

if TYPE_CHECKING:
    from collections.abc import Sequence

CORES: Final = os.cpu_count() or 1
# Tests wait for processes and sockets more than they compute, so there are two workers per core and
# one more. A worker without tests takes over tests that another has not started.
WORKERS: Final = min(2 * CORES + 1, 8)
# A journey keeps a core busy, with its own server, workers and browser, except while it waits.
BROWSERS: Final = min(CORES + 1, 8)
# The most connections of a worker: its pool, and those opened by its tests.
WORKER_CONNECTIONS: Final = 16 + 4
# Tests without a database are not even collected for the second one.
DATABASE_ONLY: Final = (
    "--database-only",
    *(f"--ignore=tests/{name}" for name in ("uamp", "upp", "uap")),
)
OPTIONS: Final = (
    *("-q", "--dist=worksteal", "--durations=20"),
    # After this many failures, the rest of the run has little to say.
    *("--maxfail=40", "--max-worker-restart=4"),
)
# For each of the three runs, about twice the longest duration on two idle cores.
RUN_SECONDS: Final = float(os.environ.get("RUN_SECONDS", "3000"))
ALL_RUN_SECONDS: Final = float(os.environ.get("RUN_SECONDS", "7200"))
# Failures in more modules than this are not chance, and are not repeated. The tests of one module
# may share the thing that failed.
REPEATED_MODULES: Final = 5
REPEAT_SECONDS: Final = 900
# How long pytest may take to list the failures of a run that is stopped.
SUMMARY_SECONDS: Final = 30
# How long after its own watchdog a process is killed.
GRACE_SECONDS: Final = float(os.environ.get("WATCHDOG_GRACE_SECONDS", "10"))
LISTED: Final = 60
# pytest's exit statuses.
TESTS_FAILED: Final = 1
STOPPED: Final = 2


@dataclass(kw_only=True)
class Suite:
    """The pytest runs that make up one run of the tests."""

    folder: Path
    arguments: Sequence[str]
    seconds: float
    is_short: bool
    environment: dict[str, str] = field(default_factory=dict)
    has_passed: bool = True
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        """Create the files that the runs append to."""
        self.skipped = self.folder / "skipped"
        self.failed = self.folder / "failed"
        self.failed_tests = self.folder / "failed-tests"
        self.unstable = self.folder / "unstable"
        self.cpu = self.folder / "cpu"
        shared = self.folder / "shared"
        for folder in (self.cpu, shared):
            folder.mkdir()
        for file in (self.skipped, self.failed, self.failed_tests, self.unstable):
            file.touch()
        self.environment |= {
            "SKIPPED_FILE": str(self.skipped),
            "FAILED_FILE": str(self.failed),
            "FAILED_TESTS_FILE": str(self.failed_tests),
            "CPU_FOLDER": str(self.cpu),
            "SHARED_FOLDER": str(shared),
            "TEST_DATABASE_URL": "",
            # Property tests draw fewer examples.
            "SHORT_RUN": "1" if self.is_short else "",
            # Workers and processes started by tests reuse the bytecode compiled by the first one.
            "PYTHONDONTWRITEBYTECODE": "",
        }

    def run(self, name: str, options: Sequence[str], *, workers: int = WORKERS) -> None:
        """Run the tests of a database; repeat failures if they are few."""
        print(f"\n=== Tests on {name} ===", flush=True)  # noqa: T201 it reports
        skips, failures = self.skipped.read_text(), self.failed.read_text()
        self.failed_tests.write_text("")
        began, cpu_before = time.monotonic(), _cpu_seconds()
        arguments = [*options, *self.arguments]
        status = self._run_pytest([f"-n{workers}", *arguments], self.seconds)
        tests = sorted(set(self.failed_tests.read_text().splitlines()))
        if status == TESTS_FAILED and self.may_repeat(tests, skips):
            status = self._repeat(name, tests, options, failures)
        wall, cpu = time.monotonic() - began, _cpu_seconds() - cpu_before
        print(f"{name}: {wall / 60:.1f} minutes, {cpu / 60:.1f} of CPU", flush=True)  # noqa: T201 as above
        # An argument may select only tests that this run leaves out.
        self.has_passed &= status in {0, 5} if self.arguments else status == 0

    def may_repeat(self, tests: Sequence[str], skips: str) -> bool:
        """Return whether failed tests may run again; `skips` were listed before the run."""
        modules = {test.partition("::")[0] for test in tests}
        new_skips = self.skipped.read_text().removeprefix(skips).splitlines()
        has_new_skips = any(OPTIONAL_PROGRAM not in line for line in new_skips)
        fails_anyway = has_new_skips and os.environ.get("REQUIRE_SERVICES") == "1"
        return self.is_short and 0 < len(modules) <= REPEATED_MODULES and not fails_anyway

    def _repeat(self, name: str, tests: list[str], options: Sequence[str], failures: str) -> int:
        """Run failed tests again, with no others alongside; return the exit status.

        `failures` are those listed before the run.
        """
        print(f"\n=== Again, alone: {len(tests)} that failed on {name} ===", flush=True)  # noqa: T201 it reports
        lines = self.failed.read_text().removeprefix(failures)
        status = self._run_pytest(["-n0", *options, *tests], REPEAT_SECONDS)
        if status == 0:
            self.failed.write_text(failures)
            with self.unstable.open("a") as file:
                file.write(lines)
        return status

    def _run_pytest(self, arguments: Sequence[str], seconds: float) -> int:
        """Run pytest in a separate process, and end everything that it leaves behind."""
        tier = ["--short"] if self.is_short else []
        with tempfile.TemporaryDirectory(prefix="uamp-watch-") as watched:
            process = subprocess.Popen(  # noqa: S603 our own interpreter
                [*(sys.executable, "-m", "pytest"), *OPTIONS, *tier, *arguments],
                env={**os.environ, **self.environment, "WATCHDOG_FOLDER": watched},
            )
            try:
                return _status_of(process, Path(watched), seconds)
            finally:
                processes.kill_all(processes.descendants(os.getpid()))
                processes.reap()

    def report(self) -> None:
        """Print what took the most time, what was not run, and what failed."""
        folders = cpu_times.total(self.cpu, "folders").most_common()
        modules = cpu_times.total(self.cpu, "modules").most_common(LISTED)
        tests = cpu_times.total(self.cpu, "tests").most_common(LISTED)
        for title, lines in (("folder", folders), ("module", modules), ("test", tests)):
            print(f"\n=== CPU seconds by {title} ===")  # noqa: T201 it reports
            for name, seconds in lines:
                print(f"{seconds:8.1f}  {name}")  # noqa: T201 as above
        for title, file in (
            ("Not run here", self.skipped),
            ("Unstable: failed, and passed when run again alone", self.unstable),
            ("Failed", self.failed),
        ):
            if text := file.read_text():
                print(f"\n=== {title} ===\n{text}")  # noqa: T201 as above
        print(f"\nTotal: {(time.monotonic() - self.began) / 60:.1f} minutes")  # noqa: T201 as above
        print("The tests pass." if self.has_passed else "THE TESTS DO NOT PASS.", flush=True)  # noqa: T201 as above


def database_workers(connections: int) -> int:
    """Return the number of workers that the cores and the connections of a PostgreSQL allow."""
    return max(1, min(WORKERS, connections // WORKER_CONNECTIONS))


def _cpu_seconds() -> float:
    """Return the CPU time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _status_of(process: subprocess.Popen[bytes], watched: Path, seconds: float) -> int:
    """Return the exit status of a run; stop it if it takes too long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=0.2)
        processes.reap(spare=process.pid)
        for activity in activities(watched):
            is_late = time.time() > activity.until + GRACE_SECONDS
            if is_late and processes.is_running(activity.pid):
                print(f"\n{activity.worker} hangs and is killed: {activity.text}", flush=True)  # noqa: T201 it reports
                processes.kill_all([activity.pid, *processes.descendants(activity.pid)])
    print(f"\nStopped after {seconds:.0f} seconds. Still running:")  # noqa: T201 it reports
    for activity in activities(watched):
        if processes.is_running(activity.pid):
            print(f"  {activity.worker}: {activity.text}", flush=True)  # noqa: T201 as above
    # Like Ctrl-C, so that pytest prints its summary.
    process.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=SUMMARY_SECONDS)
    return STOPPED


def main(arguments: list[str]) -> int:
    """Run everything; return the exit status."""
    processes.adopt_orphans()
    # The `finally` of a run ends the processes that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    runs_all = "--all" in arguments
    arguments = [argument for argument in arguments if argument != "--all"]
    names_paths = any(Path(argument.partition("::")[0]).exists() for argument in arguments)
    with tempfile.TemporaryDirectory(prefix="uamp-run-") as folder:
        suite = Suite(
            folder=Path(folder),
            arguments=arguments,
            seconds=ALL_RUN_SECONDS if runs_all else RUN_SECONDS,
            is_short=not (runs_all or names_paths),
        )
        suite.run("SQLite", ("-m", "not browser"))
        suite.run("SQLite, in browsers", ("-m", "browser"), workers=BROWSERS)
        if url := services.postgres():
            suite.environment["TEST_DATABASE_URL"] = url
            workers = database_workers(services.connection_limit(url))
            suite.run("PostgreSQL", DATABASE_ONLY, workers=workers)
        else:
            with suite.skipped.open("a") as file:
                file.write("everything on PostgreSQL: none found; set TEST_DATABASE_URL\n")
            suite.has_passed &= os.environ.get("REQUIRE_SERVICES") != "1"
        suite.report()
    return 0 if suite.has_passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
