"""The examples of README.md and docs/demo.md run as they stand, on what `make run` installs."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.uamp_project.serving import Serving, data_dir
from uamp_project.demo import CHAT_AGENTS

__all__ = ["data_dir"]

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
DEMO = (ROOT / "docs" / "demo.md").read_text()
(_AGENT, EXAMPLE) = re.findall(r"```python\n(.*?)```", DEMO, re.DOTALL)
# A request for each protocol.
(REQUESTS,) = re.findall(r"^```sh\n(B=.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_example_needs_nothing_that_make_run_does_not_install() -> None:
    lock = (ROOT / "requirements" / "runtime.txt").read_text()
    installed = set(re.findall(r"^([\w-]+)==", lock, re.MULTILINE))
    imported = set()
    for node in ast.walk(ast.parse(EXAMPLE)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module).partition(".")[0])
    client = (ROOT / "packaging" / "uamp" / "pyproject.toml").read_text()
    (needed,) = re.findall(r"^client = \[(.*)\]$", client, re.MULTILINE)

    assert imported - sys.stdlib_module_names - installed == {"uamp"}
    assert set(re.findall(r'"([\w-]+)', needed)) <= installed


def test_the_page_of_the_demo_says_which_agents_are_in_the_chat() -> None:
    assert "*Welcome* has the first four." in DEMO
    listed = re.findall(r"^\| `@([\w-]+)` \|", DEMO, re.MULTILINE)
    assert set(listed[:4]) == set(CHAT_AGENTS)


def run(serving: Serving, key: str) -> subprocess.CompletedProcess[str]:
    """Run the example with a key."""
    program = EXAMPLE.replace("uak_...", key)
    program = program.replace("127.0.0.1:8000", f"127.0.0.1:{serving.port}")
    return subprocess.run(  # noqa: S603 our own example
        [sys.executable, "-c", program],
        env={"PATH": os.environ["PATH"], "NO_PROXY": "*"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_example_prints_the_answer_and_fails_with_a_bad_key(data_dir: Path) -> None:
    people = json.loads((data_dir / "demo.json").read_text())["users"]
    serving = Serving(data_dir)
    try:
        done = run(serving, people[0]["api_key"])
        refused = run(serving, "uak_missing")
    finally:
        serving.process.end()

    assert done.returncode == 0, done.stderr
    assert done.stdout == "hello there\n"
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "UnauthorizedError" in refused.stderr


def test_each_request_of_the_readme_is_answered(data_dir: Path) -> None:
    people = json.loads((data_dir / "demo.json").read_text())["users"]
    serving = Serving(data_dir)
    requests = REQUESTS.replace("127.0.0.1:8000", f"127.0.0.1:{serving.port}")
    requests = requests.replace("uak_...", people[0]["api_key"])
    # Each prints what it receives as one line.
    script = re.sub(r"^(# .*)$", r"echo; echo '\1'", requests, flags=re.MULTILINE)
    try:
        done = subprocess.run(  # noqa: S603 our own example
            ["bash", "-eu", "-c", script],  # noqa: S607 the shell of the path
            env={"PATH": os.environ["PATH"], "NO_PROXY": "*"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    finally:
        serving.process.end()

    assert (done.returncode, done.stderr) == (0, "")
    answers = re.split(r"^# .*$", done.stdout, flags=re.MULTILINE)[1:]
    assert len(answers) == REQUESTS.count("curl ") == 8
    for answer in answers[:-1]:
        assert "hello" in answer
        assert "there" in answer
        assert '"error":{' not in answer
    assert '"status":"' in answers[-1]
