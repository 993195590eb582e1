"""The command `uamp`, from an installed wheel, against the real server."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chat_app.models import Message
from sessions_app.models import Response
from tests.client import wait_until
from tests.live_server import Person, quick_agent, shared_chat
from tests.programs import PROGRAM_SECONDS
from tests.sessions_app.billing.paid_agents import clean, earned, priced, rich

if TYPE_CHECKING:
    from tests.conftest import ServerAddress
    from tests.uamp.client.installed import Installed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


def test_the_first_example_of_the_readme(
    demo: ServerAddress, alice: Person, installed: Installed
) -> None:
    readme = (Path(__file__).resolve().parents[3] / "README.md").read_text()
    (example,) = re.findall(
        r"^```sh\npip install .*?\n(export .*?)^```$", readme, re.MULTILINE | re.DOTALL
    )
    example = example.replace("http://127.0.0.1:8000", demo.http).replace("uak_...", alice.key)

    done = subprocess.run(  # noqa: S603 our own example
        ["bash", "-eu", "-c", example],  # noqa: S607 the shell of the path
        env=installed.environment(),
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("hello there\n", "")


def test_a_person_saves_a_key_asks_exports_and_verifies(
    demo: ServerAddress, alice: Person, installed: Installed, tmp_path: Path
) -> None:
    quick_agent("second", "echo", delay=0.001)
    chat = shared_chat(alice, agents=("echo", "second"))

    added = installed.run("keys", "add", "home", "--url", demo.http, stdin=f"{alice.key}\n")
    assert (added.returncode, added.stderr) == (0, "")
    assert "alice at http://" in added.stdout
    saved = tmp_path / ".config" / "uamp" / "servers.json"
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert alice.key not in installed.run("keys", "list").stdout

    agents = [json.loads(line) for line in installed.run("agents", "--json").stdout.splitlines()]
    assert "echo" in {agent["name"] for agent in agents}
    assert chat.pk in installed.run("chats").stdout

    ask_run = installed.run("ask", "--chat", "shared", "@echo hello there")
    assert (ask_run.stdout, ask_run.stderr, ask_run.returncode) == ("hello there\n", "", 0)
    piped = installed.run("ask", "--agent", "echo", "say", "-", stdin="what is piped\n")
    assert piped.stdout == "say\n\nwhat is piped\n"
    events = installed.run("ask", "--json", "--chat", chat.pk, "@echo again").stdout.splitlines()
    types = [json.loads(line)["type"] for line in events]
    assert (types[0], types[-1]) == ("response.created", "response.done")
    both = installed.run("ask", "--chat", "Shared", "@echo @second one").stdout
    assert re.fullmatch(r".*one\n(echo|second): .*one\n", both)

    send_run = installed.run("send", "Shared", "no answer", "wanted")
    assert Message.objects.get(pk=send_run.stdout.strip()).content == "no answer wanted"

    exported = installed.run("export", "Shared", "--json")
    summary = json.loads(exported.stdout)
    assert summary["count"] == Message.objects.filter(chat=chat).count()
    verify_run = installed.run("verify", "Shared.ndjson")
    assert (
        f"complete, {summary['count']} messages, SHA-256 {summary['sha256']}" in verify_run.stdout
    )
    file = tmp_path / "Shared.ndjson"
    text = file.read_text()
    file.write_text(text.replace("no answer", "an answer"))
    changed = installed.run("verify", file)
    assert (changed.returncode, "the file was changed" in changed.stderr) == (8, True)
    file.write_text(text[: text.rindex('{"type":"end"')])
    assert "was cut off" in installed.run("verify", file).stderr

    create_run = installed.run("keys", "create", "reader", "--scope", "chats:read")
    as_reader = {"UAMP_URL": demo.http, "UAMP_KEY": create_run.stdout.strip()}
    refused = installed.run("send", "Shared", "not mine to write", **as_reader)
    assert (refused.returncode, "uak_" in refused.stderr) == (3, False)
    listed = [
        json.loads(row) for row in installed.run("keys", "issued", "--json").stdout.splitlines()
    ]
    (reader,) = [key for key in listed if key["name"] == "reader"]
    assert installed.run("keys", "rotate", reader["id"]).stdout.startswith("uak_")
    assert installed.run("keys", "revoke", reader["id"]).returncode == 0

    assert installed.run("keys", "remove", "home").returncode == 0
    assert installed.run("chats").returncode == 7  # nothing listens at the default address


@pytest.mark.long
def test_errors_say_what_to_do_and_have_their_exit_codes(
    demo: ServerAddress, alice: Person, installed: Installed
) -> None:
    shared_chat(alice, agents=("echo", "slow"))
    priced("paid", per_answer="0.25")
    here = {"UAMP_URL": demo.http, "UAMP_KEY": alice.key}
    cases = [
        (2, ["ask", "hello"], "either --chat or --agent"),
        (3, ["chats"], "Create a key on the page /account"),
        (3, ["ask", "--agent", "echo", "hi"], "Create a key on the page /account"),
        (4, ["ask", "--chat", "Nowhere", "hi"], "not in a chat called 'Nowhere'"),
        (4, ["ask", "--agent", "no-such", "hi"], "`uamp agents` lists"),
        (5, ["ask", "--agent", "paid", "hi"], "costs 0.25 USD"),
        (6, ["ask", "--chat", "Shared", "hi"], "Mention an agent"),
        (7, ["ask", "--agent", "echo", "hi"], "Check the address"),
        (1, ["ask", "--agent", "echo", "--pay-up-to", "much", "hi"], "decimal number"),
    ]
    for code, arguments, error_text in cases:
        variables = dict(here)
        if code == 3:
            variables["UAMP_KEY"] = "uak_missing"
        if code == 7:
            variables["UAMP_URL"] = "http://127.0.0.1:9"
        done = installed.run(*arguments, **variables)
        assert (done.returncode, error_text in done.stderr) == (code, True), (arguments, done)
        assert "Traceback" not in done.stderr
        if code != 2:
            error_json = installed.run(*arguments, "--json", **variables).stderr
            assert json.loads(error_json)["error"]["code"]
    assert clean()


@pytest.mark.long
def test_a_payment_up_to_the_limit_is_agreed_to(
    demo: ServerAddress, alice: Person, installed: Installed
) -> None:
    agent = priced("paid", per_answer="0.25")
    rich(alice)
    here = {"UAMP_URL": demo.http, "UAMP_KEY": alice.key}
    paid = installed.run("ask", "--agent", "paid", "--pay-up-to", "0.25", "hello", **here)
    assert (paid.stdout, paid.returncode) == ("hello\n", 0)
    refused = installed.run("ask", "--agent", "paid", "--pay-up-to", "0.24", "hello", **here)
    assert refused.returncode == 5
    assert earned(agent) == "0.25"
    assert clean()


def test_ctrl_c_cancels_the_answer(
    demo: ServerAddress, alice: Person, installed: Installed
) -> None:
    quick_agent("endless", "echo", delay=0.05)
    with installed.start(
        *("ask", "--agent", "endless", "one two " * 500),
        variables={"UAMP_URL": demo.http, "UAMP_KEY": alice.key},
    ) as process:
        assert process.stdout is not None
        with process.limited_reads():
            assert process.stdout.read(3) == "one"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)

    assert (process.returncode, errors) == (130, "The answer was cancelled.\n")
    wait_until(lambda: Response.objects.get().status == "cancelled")


def test_tail_prints_past_and_new_messages_without_escape_sequences(
    demo: ServerAddress, alice: Person, bob: Person, installed: Installed
) -> None:
    shared_chat(alice, bob)
    here = {"UAMP_URL": demo.http, "UAMP_KEY": alice.key}
    as_bob = {**here, "UAMP_KEY": bob.key}
    assert installed.run("send", "Shared", "earlier", **as_bob).returncode == 0
    with installed.start("tail", "Shared", variables=here) as process:
        assert process.stdout is not None
        with process.limited_reads():
            assert process.stdout.readline().rstrip().endswith("bob  earlier")
        assert installed.run("send", "Shared", "now \x1b[31mred", **as_bob).returncode == 0
        with process.limited_reads():
            assert process.stdout.readline().rstrip().endswith("bob  now \ufffd[31mred")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130


def test_an_interactive_chat_asks_before_it_pays(
    demo: ServerAddress, alice: Person, installed: Installed
) -> None:
    priced("paid", per_answer="0.25")
    rich(alice)
    shared_chat(alice, agents=("echo", "paid"))
    here = {"UAMP_URL": demo.http, "UAMP_KEY": alice.key}
    with installed.start("chat", "Shared", variables=here) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def write(line: str) -> None:
            assert process.stdin is not None
            process.stdin.write(f"{line}\n")
            process.stdin.flush()

        def read_to(text: str) -> str:
            assert process.stdout is not None
            output = ""
            with process.limited_reads():
                while text not in output:
                    line = process.stdout.readline()
                    assert line, output
                    output += line
            return output

        assert "alice, @echo, @paid" in read_to("/help")
        write("@echo hello")
        read_to("@echo  hello")
        write("@paid dear")
        read_to("The answer costs 0.25 USD. Pay? [y/N]")
        write("n")
        write("@paid dear")
        read_to("Pay? [y/N]")
        write("y")
        read_to("@paid  dear")
        write("/quit")
        out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, (out, errors)
    assert "did not agree to pay" in errors
    assert clean()


@pytest.mark.long
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_get_a_script_and_names(
    demo: ServerAddress, alice: Person, installed: Installed, shell: str
) -> None:
    shared_chat(alice)
    assert "_UAMP_COMPLETE" in installed.run("completion", shell).stdout
    if shell == "bash":
        words = {"_UAMP_COMPLETE": "bash_complete", "COMP_CWORD": "2", "COMP_WORDS": "uamp tail Sh"}
        completion = installed.run(**words, UAMP_URL=demo.http, UAMP_KEY=alice.key)
        assert completion.stdout == "plain,Shared\n"


@pytest.mark.long
def test_every_command_has_help(installed: Installed) -> None:
    listed = installed.run("--help").stdout.partition("Commands:")[2]
    commands = [line.split()[0] for line in listed.splitlines() if line.strip()]
    assert set(commands) >= {"agents", "ask", "chat", "export", "keys", "send", "tail", "verify"}
    for command in commands:
        assert "--help" in installed.run(command, "--help").stdout
    assert subprocess.run(  # noqa: S603 of that environment
        [str(installed.python), "-m", "uamp", "--version"],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
        timeout=PROGRAM_SECONDS,
    ).stdout.startswith("uamp, version 0.")
