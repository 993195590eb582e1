"""A Python process with a product's settings that runs tests' code on its database.

`manage.py shell` takes two seconds of CPU to import the product; this process imports it once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from tests.programs import PROGRAM_SECONDS, Program

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# One line of JSON in, one out: the code's output, and its traceback if it failed.
LOOP: Final = """
import contextlib, io, json, os, sys, traceback
os.environ["DJANGO_SETTINGS_MODULE"] = "uamp_project.settings"
import django
django.setup()
from django.db import connections
for line in sys.stdin:
    printed, failure = io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        try:
            exec(json.loads(line), {})
        except Exception:
            failure = traceback.format_exc()
    connections.close_all()
    print(json.dumps([printed.getvalue(), failure]), flush=True)
"""


class ProductShell:
    """The process, started on first use and used only by the task of one test."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._process: Program | None = None

    def run(self, code: str) -> str:
        """Run code and return its output; raises RuntimeError with its traceback."""
        if self._process is None:
            self._process = Program(
                *(sys.executable, "-c", LOOP),
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        source, sink = self._process.stdout, self._process.stdin
        if source is None or sink is None:
            raise AssertionError(self._process)
        sink.write(json.dumps(code) + "\n")
        sink.flush()
        printed: str
        with self._process.limited_reads(PROGRAM_SECONDS):
            printed, failure = json.loads(source.readline())
        if failure:
            raise RuntimeError(failure)
        return printed

    def close(self) -> None:
        """Stop the process if it was started."""
        if self._process is not None:
            self._process.close_input()
            self._process = None
