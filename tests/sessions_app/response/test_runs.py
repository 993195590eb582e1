"""The edges of a run's life: cancelled too late, a lease that ran out, no listener left."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import User
from django.db import connections, transaction
from django.utils import timezone

import uamp
from agents_app.providers import scripts
from chat_app.models import Chat, ChatEvent, Presence
from sessions_app import database, lifespan
from sessions_app.access import auth
from sessions_app.models import Response, ToolCall
from sessions_app.process import recovery
from sessions_app.process import registry as processes
from sessions_app.response.output import text_frames
from sessions_app.response.output.answer import AnswerSnapshot, RunningAnswer
from sessions_app.states import ToolCallState
from sessions_app.store import leases
from sessions_app.tools import calls
from tests import factories
from tests.client import wait_until
from tests.sessions_app.response.running import (
    WAIT_SECONDS,
    Hearer,
    ask,
    get_response,
    left_behind,
    log_of,
    open_session,
    process,
)
from tests.threads import join_threads
from uamp_project.asgi import application

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pytest_django import Settings

    from sessions_app.process.registry import Process
    from sessions_app.response.run import Run

__all__ = ["process"]


@asynccontextmanager
async def locked(chat_id: str) -> AsyncIterator[None]:
    """Keep every process from writing to a chat (on SQLite to anything)."""
    is_locked, released = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Chat.objects.select_for_update().get(pk=chat_id)
            is_locked.set()
            released.wait(WAIT_SECONDS)
        connections.close_all()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert await asyncio.to_thread(is_locked.wait, WAIT_SECONDS)
        yield
    finally:
        released.set()
        await asyncio.to_thread(join_threads, [thread])


async def test_a_cancel_while_the_end_is_written_changes_nothing(
    process: Process,
) -> None:
    session = await database.run(open_session, "echo", delay=0.1)
    hearer = Hearer()
    run = await ask(session, "one two three", hearer)
    async with locked(session.chat_id):
        await hearer.until(lambda: "".join(hearer.texts) == "one two three")
        await asyncio.sleep(0.2)
        run.cancel()
    async with asyncio.timeout(WAIT_SECONDS):
        await hearer.is_over.wait()
    assert hearer.events == [
        "message.created",
        "response.created",
        "response.done",
        "message.created",
    ]
    assert (await database.run(get_response, run.response_id)).status == "completed"
    assert process.runs == {}


async def test_an_answer_that_is_made_faster_than_read_has_few_frames(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    del process
    monkeypatch.setattr(scripts, "MAX_PIECES", 1_000_000)
    session = await database.run(open_session, "echo")
    hearer = Hearer()
    text = "ä " * 20_000
    began = time.monotonic()
    await ask(session, text, hearer)
    async with asyncio.timeout(WAIT_SECONDS):
        await hearer.is_over.wait()
    passed = time.monotonic() - began
    assert "".join(hearer.texts) == text
    assert (
        len(hearer.texts) <= text_frames.FRAMES_BURST + text_frames.FRAMES_PER_SECOND * passed + 2
    )
    # Text at the pace of a reader has a frame for each word.
    slow = Hearer()
    await ask(session, "one two three", slow, event_id="evt_2")
    async with asyncio.timeout(WAIT_SECONDS):
        await slow.is_over.wait()
    assert slow.texts == ["one ", "two ", "three"]


async def test_pending_text_is_reported_before_later_events(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    del process
    monkeypatch.setattr(text_frames, "FRAMES_BURST", 1)
    monkeypatch.setattr(text_frames, "FRAMES_PER_SECOND", 1 / 3600)
    session = await database.run(open_session, "thinker")
    hearer = Hearer()
    run = await ask(session, "one two three", hearer)
    async with asyncio.timeout(WAIT_SECONDS):
        await hearer.is_over.wait()
    answer = "I thought about it. You asked: one two three"
    assert "".join(hearer.texts) == answer
    assert len(hearer.texts) == 2
    # The usage is sent after all of the text.
    assert run.answer.text == answer
    assert hearer.order[-2:] == ["text", "frame"]


@dataclass
class Latecomer(Hearer):
    """Comes to listen at the moment at which the run notifies its listeners of its end."""

    run: Run | None = None
    may_listen: bool | None = None

    def ended(self, response_id: str) -> None:
        """See Listener."""
        assert self.run is not None
        assert response_id in processes.current().runs
        self.may_listen = self.run.listen(Hearer())
        super().ended(response_id)


async def test_a_late_listener_does_not_wait_for_the_end_of_a_finished_run(
    process: Process,
) -> None:
    session = await database.run(open_session, "echo")
    late = Latecomer()
    late.run = await ask(session, "one two three", late)
    async with asyncio.timeout(WAIT_SECONDS):
        await late.is_over.wait()
    assert late.may_listen is False


async def test_a_socket_that_is_gone_does_not_keep_its_person_online(process: Process) -> None:
    person = await database.run(factories.user)
    ghost = await database.run(factories.presence, person)
    seen = timezone.now() - timedelta(seconds=100)
    # Its socket closed while the database was away: only the row is left.
    await database.run(Presence.objects.update, process=process.id, connected_at=seen, seen_at=seen)
    key = await database.run(auth.create_api_key, person, name="tests")
    headers = [(b"authorization", f"Bearer {key}".encode())]
    socket = WebsocketCommunicator(application, "/uamp", headers=headers)
    await socket.connect()
    await database.run(wait_until, lambda: any(f.presence_id for f in list(process.followers)))
    await database.run(Presence.objects.update, connected_at=seen, seen_at=seen)
    await process.followers.renew_presence()
    fresh = await database.run(
        lambda: list(Presence.objects.filter(seen_at__gt=seen).values_list("pk", flat=True))
    )
    assert len(fresh) == 1
    assert ghost.pk not in fresh
    await socket.disconnect()


async def test_a_socket_that_closes_after_the_end_of_the_server_starts_nothing_anew(
    process: Process,
) -> None:
    socket = WebsocketCommunicator(application, "/uamp")
    connected, _ = await socket.connect()
    assert connected
    assert len(process.followers) == 1
    await lifespan.shutdown()
    await socket.disconnect()
    assert processes.current_or_none() is None


async def test_a_process_does_not_take_its_own_running_responses_from_itself(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = leases.claim_orphans

    @transaction.atomic
    def claim_late(*args: Any, **kwargs: Any) -> list[Response]:
        # As after a database that was away for longer than a lease. The server of other tests
        # sweeps the same database: it sees none of this.
        Response.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
        claimed = claim(*args, **kwargs)
        Response.objects.update(lease_until=timezone.now() + timedelta(minutes=1))
        return claimed

    session = await database.run(open_session, "echo", delay=0.1)
    hearer = Hearer()
    run = await ask(session, "one two three four", hearer)
    monkeypatch.setattr(leases, "claim_orphans", claim_late)
    await recovery.sweep(process)
    monkeypatch.undo()
    async with asyncio.timeout(WAIT_SECONDS):
        await hearer.is_over.wait()
    response = await database.run(get_response, run.response_id)
    assert (response.status, response.fence) == ("completed", 1)


async def test_a_response_that_waits_without_a_process_can_be_cancelled(process: Process) -> None:
    response = await database.run(
        left_behind, text="So far", output=[{"type": "text", "text": "So far"}]
    )
    await recovery.sweep(process)
    assert (await database.run(get_response, response.pk)).status == "waiting"
    operator = await database.run(User.objects.create_user, "operator")
    await process.signals.cancel(response.pk, operator.pk)
    # Who asks again is not the one who stopped it.
    await process.signals.cancel(response.pk)
    await recovery.sweep(process)
    # The process sweeps by itself too, and may have been the one to take it.
    await database.run(wait_until, lambda: get_response(response.pk).status == "cancelled")
    assert (await database.run(get_response, response.pk)).text == "So far"
    rows = await database.run(calls.tool_calls_of, response.pk)
    assert [call.status for call in rows] == ["cancelled"]
    assert await database.run(log_of, response.chat_id) == ["response.cancelled", "message.created"]
    event = await database.run(ChatEvent.objects.get, type="response.cancelled")
    assert (event.payload["user_id"], event.payload["username"]) == (str(operator.pk), "operator")


@pytest.fixture
def _no_periodic_flush(settings: Settings) -> None:
    settings.UAMP_FLUSH_MS = 3_600_000


@pytest.mark.usefixtures("_no_periodic_flush")
async def test_what_a_run_waits_for_is_kept_again_after_the_call_is_open(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flush that began before the call may be written after it, and take the call away."""
    take_snapshot = RunningAnswer.snapshot

    def begin_flush(answer: RunningAnswer) -> AnswerSnapshot:
        snapshot = take_snapshot(answer)
        answer.flush()
        return snapshot

    monkeypatch.setattr(RunningAnswer, "snapshot", begin_flush)
    search = uamp.ToolDefinition(type="function", function=uamp.FunctionDefinition(name="search"))
    session = await database.run(open_session, "tool-user")
    session.config = uamp.SessionConfig(tools=(search,))
    hearer = Hearer()
    run = await ask(session, "Paris", hearer)
    await database.run(wait_until, ToolCall.objects.exists)
    async with asyncio.timeout(WAIT_SECONDS):
        while not run.answer.needs_flush:  # noqa: ASYNC110 it has no event
            await asyncio.sleep(0.01)
    # This is what such a flush leaves.
    await database.run(Response.objects.update, output=[])
    await process.runs.flush()
    assert (await database.run(get_response, run.response_id)).output != []
    assert process.runs == {run.response_id: run}


async def test_an_answer_that_cannot_be_kept_keeps_no_other_from_it(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    session = await database.run(open_session, "slow")
    received = Hearer(), Hearer()
    bad = await ask(session, "Count", received[0], "evt_1")
    good = await ask(session, "Count", received[1], "evt_2")
    await received[1].until(lambda: received[1].texts)
    bad.answer.add_text("half a character: \ud800")
    failure = f"the answer so far of {bad.response_id} was not kept"
    await database.run(wait_until, lambda: failure in caplog.text)
    text_before = (await database.run(get_response, good.response_id)).text
    await database.run(
        wait_until, lambda: len(get_response(good.response_id).text) > len(text_before)
    )


async def test_an_answer_whose_tool_has_run_resumes_without_a_checkpoint(process: Process) -> None:
    """The process died after the tool and before the step was kept: the tool is not lost."""
    call = {"type": "tool_call", "tool_call": {"id": "call_1", "name": "search", "arguments": "{}"}}
    response = await database.run(left_behind, output=[call])
    await database.run(
        ToolCall.objects.filter(response=response).update,
        call_id="call_1",
        status=ToolCallState.DONE,
        result='"sunny"',
        finished_at=timezone.now(),
    )
    await database.run(Response.objects.filter(pk=response.pk).update, status="in_progress")
    await recovery.sweep(process)
    await database.run(wait_until, lambda: get_response(response.pk).status == "completed")
    assert (await database.run(get_response, response.pk)).text == "The tool answered: sunny"


async def test_an_answer_that_ends_its_process_each_time_is_given_up(process: Process) -> None:
    response = await database.run(left_behind)
    await database.run(
        Response.objects.filter(pk=response.pk).update, status="in_progress", fence=9
    )
    await recovery.sweep(process)
    await database.run(wait_until, lambda: get_response(response.pk).status == "failed")
    ended = await database.run(get_response, response.pk)
    assert (ended.error or {})["code"] == "interrupted"
