"""The requests of docs/transports.md work as they stand, against the real server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.urls import get_resolver

from payments_app import services as ledger
from payments_app.money import Money
from sessions_app.routing import websocket_urlpatterns
from sessions_app.urls import TRANSPORTS
from tests.page_examples import run_shell, shell_examples

if TYPE_CHECKING:
    from tests.conftest import ServerAddress
    from tests.live_server import Person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

PAGE = (Path(__file__).parents[3] / "docs" / "transports.md").read_text()
EXAMPLES = shell_examples(PAGE)
PROGRAM = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def run(number: int, demo: ServerAddress, alice: Person) -> str:
    """Run an example as a person with ten dollars, and return what it printed."""
    ledger.top_up(
        key="k",
        account=ledger.account_of_user(alice.user.pk).id,
        amount=Money.parse("10"),
        provider="tests",
        external_id="1",
    )
    return run_shell(EXAMPLES[number], http=demo.http, key=alice.key)


def test_every_example_is_tried() -> None:
    assert len(EXAMPLES) == 8
    assert PAGE.count("```python") == 2


def test_a_socket_is_opened_with_a_ticket(demo: ServerAddress, alice: Person) -> None:
    assert run(0, demo, alice) == "101\n"


def test_the_client_runs_its_tool_and_resumes(demo: ServerAddress, alice: Person) -> None:
    program = PROGRAM.replace("ws://127.0.0.1:8000", demo.ws).replace("uak_...", alice.key)
    done = subprocess.run(  # noqa: S603 our own page
        [sys.executable, "-c", program],
        env={"PATH": os.environ["PATH"], "no_proxy": "*"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    types = [line.split()[0] for line in done.stdout.splitlines()]
    first = types.index("response.done")
    assert types[0] == types[first + 1] == "session.created"
    assert types[:first].count("tool.call") == 1
    assert "response.delta" in types[:first]
    assert types[-1] == "response.done"
    assert "response.created" not in types[first:]


def test_a_turn_by_http_is_received_on_the_stream(demo: ServerAddress, alice: Person) -> None:
    received = run(1, demo, alice)
    assert received.count('"type":"response.created"') == 1
    assert "hello there" in received.splitlines()[-1]
    assert '"type":"response.done"' in received.splitlines()[-1]


def test_a_stream_resumes_after_the_last_event_id(demo: ServerAddress, alice: Person) -> None:
    received = run(2, demo, alice)
    assert '"type":"response.created"' not in received
    assert "one two" in received.splitlines()[-1]
    assert '"type":"response.done"' in received.splitlines()[-1]


@pytest.mark.parametrize(("number", "end"), [(3, "}]"), (5, "data: [DONE]\n\n")])
def test_a_batch_is_answered(number: int, end: str, demo: ServerAddress, alice: Person) -> None:
    answer = run(number, demo, alice)
    assert '"type":"response.done"' in answer
    assert answer.endswith(end)


def test_a_second_batch_brings_the_result_of_a_tool(demo: ServerAddress, alice: Person) -> None:
    answer = run(4, demo, alice)
    assert "The tool answered: 4 degrees" in answer
    assert '"type":"response.done"' in answer


def test_a_batch_under_a_key_is_answered_once(demo: ServerAddress, alice: Person) -> None:
    first, second = run(6, demo, alice).splitlines()
    assert first == second
    assert first.startswith('"response_id":"')


def test_a_batch_is_paid_by_a_header(demo: ServerAddress, alice: Person) -> None:
    status, _, answer = run(7, demo, alice).partition("\n")
    assert status == "402"
    assert '"type":"response.done"' in answer


def test_the_page_has_every_path() -> None:
    for pattern in TRANSPORTS:
        assert f"\n| `/{pattern.pattern}`" in PAGE
    assert len(websocket_urlpatterns) == 5
    for path in ("/uamp", "/ws", "/agents/{name}/", "/{name}/uamp", "/chats/{id}/uamp"):
        assert f"`{path}" in PAGE
    assert get_resolver().resolve("/events/stream").url_name == "event_stream"
