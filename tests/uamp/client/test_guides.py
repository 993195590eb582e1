"""The examples of docs/client.md, command-line.md and demo.md, from an installed wheel."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.live_server import Person, shared_chat
from tests.sessions_app.billing.paid_agents import rich

if TYPE_CHECKING:
    from tests.conftest import ServerAddress
    from tests.uamp.client.installed import Installed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "client.md").read_text()
PROGRAMS = dict(
    re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?```python\n(.*?)```", GUIDE, re.MULTILINE | re.DOTALL)
)
DEMO = (ROOT / "docs" / "demo.md").read_text()
(_AGENT, DEMO_PROGRAM) = re.findall(r"```python\n(.*?)```", DEMO, re.DOTALL)
COMMANDS = (ROOT / "docs" / "command-line.md").read_text()
SHELL = "".join(
    re.findall(
        r"^```sh\n(.*?)^```$", COMMANDS.partition("## Examples")[2], re.MULTILINE | re.DOTALL
    )
)
PRINTED = {
    "Ask": ["hello", "the whole at once echo completed"],
    "Without asyncio": ["hello", "again"],
    "What goes wrong": ["chat_not_found", "agent_not_found"],
    "Tools": ['"place":"Oslo","degrees":4'],
    "Payments": ["within the limit", "9.97", "USD"],
    "History, files, exports": ["echo None", "alice Read this.", "['Read this.']", "count=1"],
}
NOTHING_OF_THE_SERVER = """
import sys
assert not {"django", "agents_app", "sessions_app", "upp"} & set(sys.modules)
"""


def run(installed: Installed, program: list[str], **variables: str) -> str:
    """Run a program where the client alone is installed; return what it printed."""
    done = subprocess.run(  # noqa: S603 our own pages
        program,
        env=installed.environment(**variables),
        cwd=installed.home,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def test_every_example_of_the_guides_runs_as_it_stands(
    demo: ServerAddress, alice: Person, installed: Installed
) -> None:
    rich(alice)
    chat = shared_chat(alice)
    chat.title = "Welcome"
    chat.save()
    assert PROGRAMS.keys() == PRINTED.keys()
    here = {"UAMP_URL": demo.http, "UAMP_KEY": alice.key}
    python = [str(installed.python), "-W", "error", "-c"]
    for heading, program in PROGRAMS.items():
        printed = run(installed, [*python, program + NOTHING_OF_THE_SERVER], **here)
        missing = [words for words in PRINTED[heading] if words not in printed]
        assert not missing, (heading, printed)
    assert (installed.home / "copy.txt").read_text() == "What we said.\n"

    program = DEMO_PROGRAM.replace("uak_...", alice.key)
    program = program.replace("http://127.0.0.1:8000", demo.http)
    assert run(installed, [*python, program]) == "hello there\n"

    # Without pipefail: `head` ends a pipe into which the program still writes.
    printed = run(installed, ["bash", "-eu", "-c", SHELL], **here)
    for words in ("hello there", "What is piped in", "hello for two cents", "Welcome: complete"):
        assert words in printed
    assert '"status":"completed"' in printed
