"""`uamp chat` in a terminal, and what a shell completes, with the command of an installed wheel."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from chat_app.models import Message
from sessions_app.models import Response
from tests.live_server import Person, quick_agent, shared_chat
from tests.uamp.client.installed import SECONDS
from tests.uamp.client.terminal import CTRL_C, CTRL_D, ENTER, terminal

if TYPE_CHECKING:
    from tests.conftest import ServerAddress
    from tests.uamp.client.installed import Installed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

# An answer is printed line by line, and this one does not end by itself.
ENDLESS: Final = "\n".join(f"line {number}" for number in range(2000))


def test_a_person_asks_reads_as_it_grows_cancels_and_leaves(
    demo: ServerAddress, alice: Person, installed: Installed
) -> None:
    quick_agent("endless", "echo", delay=0.05)
    shared_chat(alice, agents=("echo", "endless"))
    here = {"UAMP_URL": demo.http, "UAMP_KEY": alice.key}
    with terminal(installed, "chat", "Shared", **here) as person:
        assert "@echo" in person.read_to("/help lists")
        person.read_to(">")
        person.type(f"@echo hello{ENTER}")
        person.read_to("@echo  hello")
        person.read_to(">")
        # With no answer running Ctrl-C leaves the chat open.
        person.wait_until(lambda: Response.objects.get().finished_at is not None)
        person.type(CTRL_C)
        person.read_to("No answer is running.")

        person.paste(f"@endless {ENDLESS}")
        person.type(ENTER)
        person.read_to("@endless  line 0")
        person.read_to("line 1")
        assert Response.objects.filter(finished_at__isnull=True).count() == 1
        person.type(CTRL_C)
        person.wait_until(lambda: Response.objects.filter(status="cancelled").exists())
        # The chat goes on.
        person.type(f"@echo still here{ENTER}")
        person.read_to("@echo  still here")
        person.wait_until(lambda: Message.objects.filter(content="still here").exists())
        person.type(CTRL_D)
        assert person.end() == 0


def in_bash(installed: Installed, line: str) -> list[str]:
    """Return bash's completions of a line, with the script of the command loaded."""
    script = """
        source <(uamp completion bash)
        complete -p uamp >/dev/null || exit 3
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _uamp_completion uamp "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    bash_run = subprocess.run(  # noqa: S603 a script of ours
        ["bash", "--noprofile", "--norc", "-c", script, "bash", *line.split(" ")],  # noqa: S607 that of the path
        env=installed.environment(),
        cwd=installed.home,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (bash_run.returncode, bash_run.stderr) == (0, "")
    return bash_run.stdout.split()


@pytest.mark.long
def test_bash_loads_the_script_and_completes_commands_options_and_choices(
    installed: Installed,
) -> None:
    assert in_bash(installed, "uamp ex") == ["export"]
    assert {"ask", "chat", "tail"} <= set(in_bash(installed, "uamp "))
    assert in_bash(installed, "uamp ask --pay") == ["--pay-up-to"]
    assert in_bash(installed, "uamp completion z") == ["zsh"]
