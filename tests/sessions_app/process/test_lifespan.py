"""Work that a server process does once, at its start; in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.programs import PROGRAM_SECONDS

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import gc, sys, django
django.setup()
print(gc.isenabled(), "twisted" in sys.modules)
from sessions_app import lifespan
lifespan.calm_collector()
print(gc.get_freeze_count() > 50_000, len(gc.get_objects()) < 1000, gc.get_threshold())
"""


def test_what_was_loaded_at_the_start_is_not_collected_again() -> None:
    done = subprocess.run(  # noqa: S603 our own code
        # With an option Python starts anew, and not as a fork with more modules (fork_server.py).
        [sys.executable, "-X", "utf8", "-c", PROGRAM],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=PROGRAM_SECONDS,
    )
    assert done.stdout.decode().splitlines() == ["True False", "True True (10000, 20, 50)"]
