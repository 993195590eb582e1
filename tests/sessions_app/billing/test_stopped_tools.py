"""A tool with a price that runs when its answer is stopped is paid; one that waits is not."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from agents_app.models import Agent
from agents_app.providers import scripts
from agents_app.tools.registry import tool
from payments_app.models import Hold
from payments_app.spending.approvals import approve
from sessions_app import database
from sessions_app.models import PaymentRequest, Response, ToolCall
from sessions_app.tools.tasks import run_tool_call
from sessions_app.tools.worker import claim_call
from tests.client import TERMINAL, wait_until
from tests.live_server import quick_agent
from tests.sessions_app.billing.interrupted_payments import (
    DOLLAR,
    active_holds,
    asked_for,
    asker_balance,
    left_behind,
    pay,
    process,
    state,
    sweep,
)
from tests.sessions_app.billing.paid_agents import clean, earned, priced, rich, usd
from upp.providers.scripted import Call, Pause, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from pytest_django import Settings

    from agents_app.selectors import AgentSpec
    from sessions_app.process.registry import Process
    from tests.client import UampClient
    from tests.live_server import Dial, Person
    from upp import LLMRequest

__all__ = ["process"]

OWN = "tests.sessions_app.billing.test_stopped_tools.{}"
_begun, _over = threading.Event(), threading.Event()


@tool(long_running=False)
def labour() -> str:
    """Work until the test ends."""
    _begun.set()
    _over.wait(60)
    return "done"


@tool
def delivery() -> str:
    """Be run by a worker."""
    return "done"


async def worker(agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Call the tool of the agent."""
    if agent.delegates:
        yield Call(name="delegate", arguments={"agent": agent.delegates[0][0], "task": "Wait."})
    else:
        yield Call(name=agent.tools[0], arguments={})


async def helper(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Say something, and take long."""
    yield Text("I")
    yield Pause(60)


@pytest.fixture(autouse=True)
def _tools(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    tool_paths = [OWN.format("labour"), OWN.format("delivery")]
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, *tool_paths]
    monkeypatch.setitem(scripts.SCRIPTS, "worker", worker)
    monkeypatch.setitem(scripts.SCRIPTS, "helper", helper)
    _begun.clear()
    _over.clear()
    yield
    _over.set()


def ask_worker(dial: Dial, who: Person, up_to: str = "5", **row: Any) -> tuple[Agent, UampClient]:
    """Ask an agent that calls a tool for 0.5; it may take so much without asking."""
    prices = dict.fromkeys(["labour", "delivery", "delegate"], "0.5")
    agent = priced("paid", "worker", per_answer="1", tools=prices)
    for name, value in row.items():
        setattr(agent, name, value)
    agent.save()
    approve(rich(who).user.pk, agent.pk, usd(up_to))
    client = dial(who)
    client.create_session(agent="paid")
    client.ask("Work")
    return agent, client


def stopped(client: UampClient, agent: Agent) -> str:
    """Stop the answer; return what the agent earned."""
    client.send("response.cancel")
    assert client.until(*TERMINAL)[-1]["type"] == "response.cancelled"
    wait_until(clean)
    return earned(agent)


def test_a_tool_that_runs_on_the_server_is_paid(dial: Dial, alice: Person) -> None:
    agent, client = ask_worker(dial, alice, tools=["labour"])
    wait_until(_begun.is_set)
    assert stopped(client, agent) == "1.5"


def test_a_tool_that_waits_to_be_paid_is_not(dial: Dial, alice: Person) -> None:
    agent, client = ask_worker(dial, alice, up_to="1.2", tools=["labour"])
    client.until("payment.required")
    # Nothing was delivered: the price of the answer is not due either.
    assert stopped(client, agent) == "0"
    assert not _begun.is_set()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("state", "charged"), [("queued", "1"), ("asking", "0"), ("running", "1.5"), ("failed", "1")]
)
def test_a_tool_of_a_worker_is_paid_once_it_has_begun(
    dial: Dial, alice: Person, state: str, charged: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The worker of other tests may run in this process: it is not notified of the call.
    monkeypatch.setattr(run_tool_call, "apply_async", lambda **_: None)
    approvals = ["delivery"] if state == "asking" else []
    agent, client = ask_worker(dial, alice, tools=["delivery"], approvals=approvals)
    wait_until(ToolCall.objects.exists)
    row = ToolCall.objects.get()
    if state in {"running", "failed"}:
        assert claim_call(row.pk) is not None
    if state == "failed":
        ToolCall.objects.filter(pk=row.pk).update(
            status="failed", is_error=True, finished_at=timezone.now()
        )
    assert stopped(client, agent) == charged


def test_work_that_another_agent_has_begun_is_paid(dial: Dial, alice: Person) -> None:
    quick_agent("other", "helper")
    agent, client = ask_worker(dial, alice, delegates=["other"])
    wait_until(lambda: Response.objects.filter(agent__name="other", text="I").exists())
    assert stopped(client, agent) == "1.5"


def test_work_that_another_agent_was_paid_for_is_paid(dial: Dial, alice: Person) -> None:
    other = priced("other", "helper", per_answer="0.25")
    approve(alice.user.pk, other.pk, usd("1"))
    agent, client = ask_worker(dial, alice, delegates=["other"])
    wait_until(lambda: Hold.objects.filter(agent_id=other.pk).exists())
    assert stopped(client, agent) == "1.5"


def test_work_that_waits_for_its_own_payment_is_not(dial: Dial, alice: Person) -> None:
    other = priced("other", "helper", per_answer="0.25")
    agent, client = ask_worker(dial, alice, delegates=["other"])
    client.until("payment.required")
    assert stopped(client, agent) == "0"
    assert earned(other) == "0"


@pytest.mark.parametrize(("attempts", "left"), [(1, "3.5"), (0, "4")])
async def test_a_process_that_ends_an_answer_of_another_charges_its_tool(
    process: Process, attempts: int, left: str
) -> None:
    pricing = {"per_answer": "1", "tools": {"delivery": "0.5"}}
    response = await database.run(left_behind, "in_progress", pricing)
    await database.run(stopped_in_its_tool, response, attempts)
    await sweep(process)
    await database.run(wait_until, lambda: state(response) == ("cancelled", ""))
    assert (await database.run(asker_balance, response), await database.run(active_holds)) == (
        left,
        0,
    )


def stopped_in_its_tool(response: Response, attempts: int) -> None:
    """Let a response have called its tool before its process died, and be stopped after."""
    Agent.objects.filter(pk=response.agent_id).update(tools=["delivery"])
    row = asked_for(response)
    PaymentRequest.objects.filter(pk=row.pk).update(amount=2 * DOLLAR.amount)
    pay(response, row, DOLLAR * 2)
    call = {"id": "call_1", "name": "delivery", "arguments": "{}"}
    Response.objects.filter(pk=response.pk).update(
        status="in_progress",
        output=[{"type": "tool_call", "tool_call": call}],
        cancel_requested_at=timezone.now(),
    )
    ToolCall.objects.create(
        response=response,
        call_id="call_1",
        kind="long",
        name="delivery",
        status="running" if attempts else "queued",
        attempts=attempts,
        deadline=timezone.now() + timedelta(minutes=5),
    )
