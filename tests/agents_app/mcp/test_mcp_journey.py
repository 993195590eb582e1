"""A tool of an MCP server from the socket to the server and back, through a real worker."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.mcp.tools import refresh
from agents_app.models import Agent, ToolSource, ToolSourceApproval
from sessions_app.models import Response, ToolCall
from tests.agents_app.mcp import mcp_sources
from tests.agents_app.mcp.mcp_sources import lines
from tests.client import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django.fixtures import Settings

    from tests.client import UampClient
    from tests.live_server import Dial

pytestmark = [pytest.mark.usefixtures("demo", "celery_worker_thread"), pytest.mark.any_database]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def walker(settings: Settings, journal: Path) -> ToolSource:
    """Give the source of an agent that calls `<source>__walk` with what it is asked."""
    settings.UAMP_MCP_COMMANDS = [sys.executable]
    source = mcp_sources.program(journal, name="outdoors", approval="never")
    assert refresh(source)
    Agent.objects.create(
        name="walker",
        is_public=True,
        options={"script": "tool-user"},
        tools=["outdoors__walk"],
    )
    return source


def ask(dial: Dial, text: str) -> UampClient:
    """Open a session with the walker and ask it."""
    client = dial()
    client.create_session(agent="walker")
    client.ask(text)
    return client


def test_progress_reaches_the_chat_and_the_result_the_answer(
    dial: Dial, walker: ToolSource
) -> None:
    frames = ask(dial, "4").until("response.done")
    reported = [frame for frame in frames if frame["type"] == "progress"]
    assert {(frame["target"], frame["stage"]) for frame in reported} == {("tool", "call")}
    assert (reported[-1]["percent"], reported[-1]["message"]) == (100, "step 4")
    call = ToolCall.objects.get()
    assert (call.name, call.status, call.result) == ("outdoors__walk", "done", "4 steps")
    assert call.arguments == '{"query":"4"}'
    assert "The tool answered: 4 steps" in json.dumps(frames[-1])


def test_what_the_server_does_not_take_is_reported_to_the_model(
    dial: Dial, walker: ToolSource, settings: Settings
) -> None:
    settings.UAMP_MCP_COMMANDS = []
    frames = ask(dial, "4").until("response.done")
    assert "The tool failed: The program " in json.dumps(frames[-1])
    assert ToolCall.objects.get().status == "failed"


def test_a_cancelled_answer_cancels_the_call_at_the_server(
    dial: Dial, walker: ToolSource, journal: Path
) -> None:
    client = ask(dial, "1000")
    # A call reports progress also while its server starts, which has nothing to cancel then.
    wait_until(lambda: "began" in lines(journal), seconds=60)
    client.send("response.cancel")
    client.until("response.cancelled")
    wait_until(lambda: "cancelled" in lines(journal), seconds=60)
    wait_until(lambda: ToolCall.objects.get().finished_at is not None, seconds=30)
    assert ToolCall.objects.get().status == "cancelled"
    assert Response.objects.get().status == "cancelled"


def test_a_call_that_may_change_something_waits_for_a_person(
    dial: Dial, walker: ToolSource, journal: Path
) -> None:
    walker.approval = ToolSourceApproval.WRITES
    walker.save()
    before = len(lines(journal))
    client = ask(dial, "2")
    wait_until(lambda: ToolCall.objects.filter(status="asking").exists())
    frames: list[dict[str, Any]] = client.during(0.5)
    assert "response.done" not in {frame["type"] for frame in frames}
    assert len(lines(journal)) == before
