"""Progress of long tools, up to their results."""

from pathlib import Path

import pytest

from sessions_app.tools.tasks import notify_workers
from sessions_app.tools.worker import Work
from tests.sessions_app.tools import long_tools
from tests.sessions_app.tools.claims import claimed, expire_lease, progress_of, receiving
from tests.sessions_app.tools.tool_workers import ended, lines, queued_call, wait_for

pytestmark = pytest.mark.usefixtures("database_threads")


@pytest.mark.usefixtures("celery_worker_thread")
def test_a_queued_call_is_run_and_the_chat_receives_its_progress(tmp_path: Path) -> None:
    call = queued_call("steps", {"steps": 3, "pause": 0.15, "journal": str(tmp_path / "j")})
    with receiving(call) as received:
        notify_workers(call.pk)
        row = ended(call)
        wait_for(lambda: received[-1:] and received[-1]["type"] == "run.settled")
    assert (row.status, row.result, row.is_error) == ("done", "3 steps", False)
    assert (row.attempts, row.lease_until) == (1, None)
    reported = progress_of(received)
    assert [(e["step"], e["percent"]) for e in reported] == [(1, 33), (2, 67), (3, 100)]
    last = reported[-1]
    assert row.progress is not None
    assert {name: last[name] for name in row.progress if name not in {"event_id", "timestamp"}} == {
        "type": "progress",
        "target": "tool",
        "target_id": "call_1",
        "response_id": call.response_id,
        "stage": "steps",
        "message": "on",
        "percent": 100,
        "step": 3,
        "total_steps": 3,
    }
    assert {m["response"] for m in received} == {call.response_id}
    assert received[-1] == {"type": "run.settled", "response": call.response_id, "call": call.pk}


@pytest.mark.usefixtures("celery_worker_thread")
def test_rapid_progress_is_thinned_out_but_each_stage_keeps_its_last() -> None:
    call = queued_call("rapid", {"seconds": 0.5})
    with receiving(call) as received:
        notify_workers(call.pk)
        row = ended(call)
        wait_for(lambda: received and received[-1]["type"] == "run.settled")
    reported = progress_of(received)
    assert row.status == "done"
    assert len(reported) <= 14
    read_stage = [e for e in reported if e["stage"] == "read"]
    assert (read_stage[0]["step"], read_stage[-1]["step"], reported[-1]["step"]) == (1, -1, -1)
    percents = [e["percent"] for e in reported if "percent" in e]
    assert set(percents) == {99}


@pytest.mark.usefixtures("celery_worker_thread")
def test_the_last_words_before_a_silence_are_reported(tmp_path: Path) -> None:
    call = queued_call("gated", {"journal": str(tmp_path / "j")})
    with receiving(call) as received:
        notify_workers(call.pk)
        wait_for(lambda: len(progress_of(received)) == 2)
        assert [e["message"] for e in progress_of(received)] == ["first", "second"]
        long_tools.open_gate(tmp_path / "j")
        assert ended(call).status == "done"


def test_progress_never_falls_not_even_in_another_attempt() -> None:
    call = queued_call("steps")
    with Work(claimed(call)) as work:
        work.progress(percent=60.4)
    expire_lease(call)
    with Work(claimed(call)) as work, receiving(call) as received:
        work.progress(percent=10, stage="again")
        work.progress(percent=250, stage="over")
    assert [e["percent"] for e in progress_of(received)] == [60, 100]


@pytest.mark.parametrize("percent", [float("nan"), float("inf"), float("-inf"), 1e308 * 10])
def test_progress_that_is_not_a_number_is_reported_without_its_percentage(percent: float) -> None:
    call = queued_call("steps")
    with Work(claimed(call)) as work, receiving(call) as received:
        work.progress(percent=30, stage="one")
        work.progress(percent=percent, stage="two", step=2)
        work.progress(percent=20, stage="three")
    reported = [(e["stage"], e.get("percent"), e.get("step")) for e in progress_of(received)]
    assert reported == [("one", 30, None), ("two", None, 2), ("three", 30, None)]


def test_long_words_of_progress_are_cut() -> None:
    call = queued_call("steps")
    with Work(claimed(call)) as work, receiving(call) as received:
        work.progress(stage="s" * 10_000, message="m" * 10_000)
    (reported,) = progress_of(received)
    assert (reported["stage"], reported["message"]) == ("s" * 500, "m" * 500)


@pytest.mark.usefixtures("celery_worker_thread")
def test_ringing_twice_runs_a_call_once(tmp_path: Path) -> None:
    call = queued_call("once", {"journal": str(tmp_path / "j")})
    for _ in range(3):
        notify_workers(call.pk)
    assert ended(call).status == "done"
    later = queued_call("repeat", {"text": "x", "times": 1})
    notify_workers(later.pk)
    ended(later)
    assert lines(tmp_path / "j") == ["sent"]
