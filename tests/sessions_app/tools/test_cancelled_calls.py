"""Long tools that are cancelled or run out of time."""

from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from agents_app.tools.registry import ToolOutcome
from sessions_app.models import ToolCall
from sessions_app.store import responses
from sessions_app.tools import calls
from sessions_app.tools.tasks import notify_workers, requeue_lost_calls, run_tool_call
from sessions_app.tools.worker import Work, end_call
from tests.sessions_app.tools import long_tools
from tests.sessions_app.tools.claims import claimed, receiving
from tests.sessions_app.tools.tool_workers import ended, lines, queued_call, wait_for

pytestmark = pytest.mark.usefixtures("database_threads")


@pytest.mark.usefixtures("celery_worker_thread")
def test_a_cancelled_response_stops_its_running_tool(tmp_path: Path) -> None:
    call = queued_call("gated", {"journal": str(tmp_path / "j")})
    with receiving(call) as received:
        notify_workers(call.pk)
        wait_for(lambda: lines(tmp_path / "j"))
        responses.request_cancel(call.response_id)
        long_tools.open_gate(tmp_path / "j")
        row = ended(call)
        wait_for(lambda: received and received[-1]["type"] == "run.settled")
    assert (row.status, row.is_error) == ("cancelled", True)
    assert row.result == "The tool was cancelled."
    assert lines(tmp_path / "j") == ["began"]


def test_a_call_whose_response_was_cancelled_is_not_begun(tmp_path: Path) -> None:
    call = queued_call("once", {"journal": str(tmp_path / "j")})
    responses.request_cancel(call.response_id)
    run_tool_call(pk=call.pk)
    assert ended(call).status == "cancelled"
    assert lines(tmp_path / "j") == []


def test_a_tool_that_takes_too_long_is_stopped(settings: Settings, tmp_path: Path) -> None:
    settings.UAMP_TOOL_SECONDS = 0.4
    call = queued_call("steps", {"steps": 50, "pause": 0.1, "journal": str(tmp_path / "j")})
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.is_error) == ("failed", True)
    assert row.result == "The tool took too long and was stopped."
    assert len(lines(tmp_path / "j")) < 50


@pytest.mark.usefixtures("notified_calls")
def test_a_tool_that_hangs_past_its_time_loses_its_call(settings: Settings) -> None:
    settings.UAMP_TOOL_SECONDS = settings.UAMP_LEASE_SECONDS = 0.5
    call = queued_call("steps")
    claim = claimed(call)
    with Work(claim):
        wait_for(lambda: requeue_lost_calls() == [call.pk])
        wait_for(lambda: [late.pk for late in calls.expire_calls()] == [call.pk])
        assert not end_call(claim, "done", ToolOutcome(result="late"))
    row = ToolCall.objects.get(pk=call.pk)
    assert (row.status, row.result) == ("failed", "The tool did not answer in time.")
