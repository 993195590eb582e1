"""The two ends of an order: given twice it begins one answer, and the last words come before it.

An order is given twice by a process that goes on for a dead one.
"""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import uamp
from agents_app.conversation.delegation_orders import DelegationOrder
from sessions_app import database, lifespan, services
from sessions_app.access import auth
from sessions_app.models import Response, Session, ToolCall
from sessions_app.process.signals import ResponseSignals
from sessions_app.response import forwarding
from sessions_app.response.checkpoints import Checkpoints
from sessions_app.tools import delegated_calls
from sessions_app.turn import delegation
from tests.client import WAIT_SECONDS
from tests.sessions_app.response.running import Hearer, ask, process
from tests.sessions_app.turn import team_tools
from tests.sessions_app.turn.delegation import doer, task_for
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_django import Settings

    from sessions_app.process.registry import Process
    from sessions_app.records import OpenSession
    from sessions_app.response.run import Run

__all__ = ["process"]

pytestmark = pytest.mark.usefixtures("process")


def open_session() -> OpenSession:
    """Open a visitor's session with an agent that may give work to another one."""
    doer("boss", "worker")
    doer("worker")
    return services.open_session(
        principal=auth.anonymous(),
        transport="websocket",
        create=ev.SessionCreate(),
        agent_name="boss",
        chat_id=None,
    )


def families() -> tuple[int, int, list[str]]:
    """Return the numbers of sessions and answers for orders, and the states of the answers."""
    responses = Response.objects.filter(session__parent_call__isnull=False)
    return (
        Session.objects.filter(parent_call__isnull=False).count(),
        responses.count(),
        sorted(responses.values_list("status", flat=True)),
    )


async def test_an_order_that_is_given_again_is_the_same_order(process: Process) -> None:
    session = await database.run(open_session)
    hearer = Hearer()
    run = await ask(session, task_for("worker", team_tools.order(words=10)), hearer)
    async with asyncio.timeout(WAIT_SECONDS):
        while not run.waiting_calls or len(process.runs) < 2:  # noqa: ASYNC110 rows say when
            await asyncio.sleep(0.02)
    row = await database.run(ToolCall.objects.get)
    order = msgspec.json.decode(row.arguments, type=DelegationOrder)
    call = uamp.ToolCallData(id=row.call_id, name=row.name, arguments=row.arguments)
    again = partial(delegation.delegate, run._port, row.pk, call, order)
    await again()
    async with asyncio.timeout(WAIT_SECONDS):
        await hearer.is_over.wait()
    # Also when all of it has ended.
    await again()
    assert await database.run(families) == (1, 1, ["completed"])
    assert await database.run(delegated_calls.live_children, run.response_id) == []
    assert (await database.run(Response.objects.get, pk=run.response_id)).status == "completed"


async def test_the_last_words_of_the_other_agent_are_reported_before_its_result(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end is written before all is cleared away after it, and the waiting response resumes."""
    del process
    # Nothing but the end itself reaches them.
    monkeypatch.setattr(forwarding, "FORWARD_SECONDS", 60.0)
    hearer = Hearer()
    forget = Checkpoints.forget

    async def forget_later(checkpoints: Checkpoints) -> None:
        if len(cleared) == 0:
            cleared.append(checkpoints)
            await asyncio.wait_for(hearer.is_over.wait(), WAIT_SECONDS)
        await forget(checkpoints)

    cleared: list[Checkpoints] = []
    monkeypatch.setattr(Checkpoints, "forget", forget_later)
    session = await database.run(open_session)
    await ask(session, task_for("worker", team_tools.order(words=3)), hearer)
    async with asyncio.timeout(WAIT_SECONDS):
        await hearer.is_over.wait()
    deltas = [json.loads(frame).get("delta", {}) for frame in hearer.frames]
    reported = [d.get("tool_progress", {}).get("text") for d in deltas]
    ended = next(n for n, delta in enumerate(deltas) if delta.get("type") == "tool_result")
    assert [text for text in reported if text] == ["word0 word1 word2 "]
    assert any(reported[:ended])


async def test_work_that_was_passed_on_ends_before_the_process_does(
    process: Process, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is given, while the other agent works, and until its end is known."""
    settings.UAMP_GRACE_SECONDS = 30
    settle, give = ResponseSignals.call_ended, delegation.delegate

    async def give_later(*args: Any, **kwargs: Any) -> Sequence[Run]:
        await asyncio.sleep(0.3)
        return await give(*args, **kwargs)

    async def settle_later(self: ResponseSignals, response_id: str, pk: int) -> None:
        await asyncio.sleep(0.3)
        await settle(self, response_id, pk)

    monkeypatch.setattr(ResponseSignals, "call_ended", settle_later)
    monkeypatch.setattr(process.runs, "_delegate", give_later)
    session = await database.run(open_session)
    hearer = Hearer()
    run = await ask(session, task_for("worker", team_tools.order(words=3)), hearer)
    # The order is given while the process drains already.
    await lifespan.drain()
    assert process.runs == {}
    assert hearer.is_over.is_set()
    row = await database.run(Response.objects.get, pk=run.response_id)
    assert (row.status, row.text.startswith("received: ")) == ("completed", True)
