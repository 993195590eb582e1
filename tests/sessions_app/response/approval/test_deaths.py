"""Approvals that outlive their server."""

from __future__ import annotations

import json
import shutil
import signal
from functools import partial
from typing import TYPE_CHECKING

import pytest

from sessions_app import database, services
from sessions_app.access import auth
from tests.client import TERMINAL, output_text
from tests.sessions_app.process.server_processes import Server, prepared, resumed
from tests.sessions_app.response.approval.questions import TOOLS, approve, asked_of, asker, task
from tests.sessions_app.response.running import Hearer, ask, process
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_django import Settings

    from sessions_app.process.registry import Process

__all__ = ["prepared", "process"]

ASKER = (
    "from tests.sessions_app.turn import team_tools\n"
    "from agents_app.models import Agent\n"
    'Agent.objects.create(name="asker", is_public=True, options={"script": "doer"},'
    ' tools=["steps"], approvals=["steps"])'
)


@pytest.fixture
def killable(prepared: Path, tmp_path: Path) -> Iterator[Server]:
    """Give a server whose agent asks first, not started."""
    shutil.copytree(prepared, tmp_path / "data")
    server = Server(tmp_path / "data", settings="tests.sessions_app.turn.team_settings")
    yield server
    if server.process is not None:
        server.end(signal.SIGKILL)


def test_a_question_survives_the_death_of_the_server(killable: Server, journal: Path) -> None:
    killable.run(ASKER)
    killable.start()
    client = killable.dial()
    created = client.create_session(agent="asker")
    client.ask(task(journal))
    response_created = client.expect("response.created")
    question = asked_of(client)
    killable.end(signal.SIGKILL)
    client.close()
    killable.start()
    again = killable.dial()
    resumed(again, created, response_created["seq"])
    question_again = asked_of(again)
    assert (question_again["call_id"], question_again["response_id"]) == (
        question["call_id"],
        response_created["response_id"],
    )
    approve(again, question_again, approved=False, reason="No.")
    end = again.until(*TERMINAL)[-1]
    assert end["response_id"] == response_created["response_id"]
    reported = "The call was not allowed by the visitor. They say: No."
    assert output_text(end) == f"failed: {reported}"
    # A result is JSON also when another process took it up (UAMP §8.4.2).
    results = [i["tool_result"] for i in end["response"]["output"] if i["type"] == "tool_result"]
    assert [json.loads(result["result"]) for result in results] == [reported]
    assert killable.query("SELECT status, count(*) FROM sessions_app_toolcall GROUP BY status") == [
        ("failed", 1)
    ]


async def test_a_call_that_was_allowed_waits_for_no_person(
    process: Process, settings: Settings, journal: Path
) -> None:
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, *TOOLS]
    await database.run(asker)
    opening = partial(
        services.open_session,
        principal=auth.anonymous(),
        transport="websocket",
        create=ev.SessionCreate(),
        agent_name="asker",
        chat_id=None,
    )
    hearer = Hearer()
    run = await ask(await database.run(opening), task(journal), hearer)
    await hearer.until(lambda: run.undecided_calls)
    assert run.waits_for_client
    run.decide_calls(run.undecided_calls)
    # Its task has not run yet: an exchange that waits for the answer must not end meanwhile.
    assert run.undecided_calls
    assert not run.waits_for_client
