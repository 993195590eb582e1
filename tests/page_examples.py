"""Runs the requests printed in the documentation, unchanged."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest


def shell_examples(page: str) -> list[str]:
    """Return a page's examples for `bash`, without the first, which sets B and KEY."""
    return re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1:]


def run_shell(example: str, *, http: str, key: str) -> str:
    """Run an example on a server with a person's key, and return its output."""
    bash, curl = shutil.which("bash"), shutil.which("curl")
    if bash is None or curl is None:
        pytest.skip("no bash or no curl")
    done = subprocess.run(  # noqa: S603 our own page
        [bash, "-u", "-c", example],
        env={"PATH": "/usr/bin:/bin", "B": http, "KEY": key, "no_proxy": "*"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout
