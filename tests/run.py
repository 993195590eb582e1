"""Runs the tests on every database there is; what failed or could not be run is listed last.

`make test` calls it. With arguments it hands them to pytest, after its own: `-n0` runs without
workers. With REQUIRE_SERVICES=1 a service that is missing is a failure.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import services

# The tests wait for processes, sockets and browsers more than they compute: two workers for each
# core. One that has no more tests takes those that another has not begun.
WORKERS = min(2 * (os.cpu_count() or 1), 8)
# What touches no database is not even collected for the second one.
DATABASE_ONLY = ("--database-only", *(f"--ignore=tests/{name}" for name in ("uamp", "upp", "uap")))
OPTIONS = ("-q", f"-n{WORKERS}", "--dist=worksteal", "--durations=20")


def run_pytest(name: str, arguments: list[str], environment: dict[str, str]) -> bool:
    """Run pytest in a process of its own; return whether it passed."""
    sys.stdout.write(f"\n=== Tests on {name} ===\n")
    sys.stdout.flush()
    done = subprocess.run(  # noqa: S603 our own interpreter
        [sys.executable, "-m", "pytest", *OPTIONS, *arguments],
        env={**os.environ, **environment},
        check=False,
    )
    # An argument may select only tests that this run leaves out.
    return done.returncode in {0, 5} if arguments else done.returncode == 0


def main(arguments: list[str]) -> int:
    """Run everything; return the exit status."""
    required = os.environ.get("REQUIRE_SERVICES") == "1"
    with tempfile.TemporaryDirectory(prefix="uamp-run-") as folder:
        skipped = Path(folder) / "skipped"
        failed = Path(folder) / "failed"
        for file in (skipped, failed):
            file.touch()
        environment = {
            "SKIPPED_FILE": str(skipped),
            "FAILED_FILE": str(failed),
            "TEST_DATABASE_URL": "",
            # Workers and the processes that tests start read what the first of them has compiled.
            "PYTHONDONTWRITEBYTECODE": "",
        }
        passed = run_pytest("SQLite", arguments, environment)
        if url := services.postgres():
            environment["TEST_DATABASE_URL"] = url
            passed &= run_pytest("PostgreSQL", [*DATABASE_ONLY, *arguments], environment)
        else:
            skipped.write_text(
                skipped.read_text()
                + "everything on PostgreSQL: none found; set TEST_DATABASE_URL\n"
            )
            passed &= not required
        if lines := skipped.read_text():
            sys.stdout.write(f"\n=== Not run here ===\n{lines}")
        if lines := failed.read_text():
            sys.stdout.write(f"\n=== Failed ===\n{lines}")
    sys.stdout.write("\nThe tests pass.\n" if passed else "\nTHE TESTS DO NOT PASS.\n")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
