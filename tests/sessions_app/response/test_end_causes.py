"""An answer that ends with an error is charged by what caused the error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agents_app.providers import scripts
from agents_app.runtime import agent_run
from agents_app.tools.registry import ToolContext, ToolError, tool
from payments_app.spending import approvals
from sessions_app.billing.usage import CAUSES, Cause
from tests.client import TERMINAL, Frame, wait_until
from tests.sessions_app.billing.paid_agents import clean, earned, priced, rich, usd
from uamp import ERROR_CODES, ErrorCode
from upp import AssistantMessage, ToolResultMessage, UPPError
from upp import ErrorCode as ProviderErrorCode
from upp.providers.scripted import Call, Fail, Pause, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pytest_django import Settings

    from agents_app.models import Agent
    from agents_app.selectors import AgentSpec
    from tests.client import UampClient
    from tests.live_server import Dial, Person
    from upp import LLMRequest

SEARCH = {
    "type": "function",
    "function": {"name": "search", "parameters": {"type": "object", "properties": {}}},
}
STEPS = "tests.sessions_app.turn.team_tools.STEPS"
BROKEN = "tests.sessions_app.response.test_end_causes.broken"
MISFIT = {
    "type": "json_schema",
    "json_schema": {"name": "city", "schema": {"type": "object", "required": ["city"]}},
}
NO_SCHEMA = {"type": "json_schema", "json_schema": {"name": "city", "schema": {"type": "place"}}}


@tool(long_running=False)
def broken(_context: ToolContext) -> str:
    """Fail."""
    raise ToolError("It is broken.")


async def calling(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Say something and call the client's tool, in every step."""
    yield Text("Nearly all of it. ")
    yield Call(name="search", arguments={})


async def called_once(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Call the client's tool, and take too long after its result."""
    yield Text("Nearly all of it. ")
    if len(request.messages) == 1:
        yield Call(name="search", arguments={})
    else:
        yield Pause(60)
        yield Text("Too late")


async def refusing(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Call the client's tool and refuse its result; where that is fine, refuse the next request."""
    results = [
        str(message) for message in request.messages if isinstance(message, ToolResultMessage)
    ]
    if len(results) == 1 and "fine" in results[0]:
        yield Call(name="nothing", arguments={})
    elif results:
        yield Fail(UPPError("no such thing", code=ProviderErrorCode.INVALID_REQUEST))
    else:
        yield Text("Nearly all of it. ")
        yield Call(name="search", arguments={})


async def planned(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Plan to write nearly all of it and then to use a tool; make no second plan."""
    answers = [message for message in request.messages if isinstance(message, AssistantMessage)]
    if "steps" in (request.structure or {}).get("properties", {}):
        tool = agent.tools[0] if agent.tools else "search"
        steps = [
            {"id": "a", "description": "write"},
            {"id": "b", "description": "do", "tool": tool},
        ]
        yield Text("No." if answers else msgspec.json.encode({"steps": steps}).decode())
    elif len(answers) == 1:
        yield Text("Nearly all of it. ")
    elif len(answers) == 2:
        yield Call(name=request.tools[0].name, arguments={})
    else:
        yield Text("It did not work.")


async def picky(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Write a plan or a thought and the work; refuse tools, schemas and whatever comes last."""
    answers = [message for message in request.messages if isinstance(message, AssistantMessage)]
    if "steps" in (request.structure or {}).get("properties", {}):
        yield Text('{"steps": [{"id": "a", "description": "write"}]}')
    elif request.structure or request.tools or len(answers) > (agent.strategy == "plan"):
        yield Fail(UPPError("no such thing", code=ProviderErrorCode.INVALID_REQUEST))
    else:
        yield Text("Nearly all of it. ")


async def endless(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Write more than an answer may have."""
    for _ in range(20):
        yield Text("Nearly all of it. ")


@pytest.fixture
def ask(dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Ask an agent that plays a script, costs 1 an answer, and may take that without asking."""
    monkeypatch.setitem(scripts.SCRIPTS, "calling", calling)
    monkeypatch.setitem(scripts.SCRIPTS, "called-once", called_once)
    monkeypatch.setitem(scripts.SCRIPTS, "refusing", refusing)
    monkeypatch.setitem(scripts.SCRIPTS, "endless", endless)
    monkeypatch.setitem(scripts.SCRIPTS, "planned", planned)
    monkeypatch.setitem(scripts.SCRIPTS, "picky", picky)

    def _ask(
        script: str, *, row: dict[str, Any] | None = None, **session: Any
    ) -> tuple[Agent, UampClient]:
        agent = priced("paid", script, per_answer="1")
        for name, value in {"max_steps": 2, **(row or {})}.items():
            setattr(agent, name, value)
        agent.save()
        approvals.approve(rich(alice).user.pk, agent.pk, usd("5"))
        client = dial(alice)
        client.create_session(agent="paid", session=session)
        client.ask("Hello")
        return agent, client

    return _ask


def ended(agent: Agent, frames: list[Frame], code: str, charged: str) -> None:
    """Check how an answer ended, and what was charged."""
    assert frames[-1]["error"]["code"] == code
    wait_until(clean)
    assert earned(agent) == charged


def test_every_code_that_ends_a_response_has_a_cause() -> None:
    ends = {code for code in ErrorCode if "response.error" in ERROR_CODES[code].event}
    assert set(CAUSES) == ends
    assert CAUSES[ErrorCode.INVALID_OUTPUT] is Cause.ASKER
    assert CAUSES[ErrorCode.PROVIDER_ERROR] is Cause.SERVER


@pytest.mark.parametrize(("response_format", "charged"), [(MISFIT, "1"), (NO_SCHEMA, "0")])
def test_an_answer_that_fits_no_schema_is_charged_once_it_was_given(
    ask: Any, response_format: dict[str, Any], charged: str
) -> None:
    agent, client = ask("echo", response_format=response_format)
    ended(agent, client.until(*TERMINAL), "invalid_output", charged)


def test_an_answer_whose_client_gives_no_result_is_charged(ask: Any, settings: Settings) -> None:
    settings.UAMP_RESPONSE_SECONDS = 1
    agent, client = ask("calling", tools=[SEARCH])
    ended(agent, client.until(*TERMINAL), "timeout", "1")


@pytest.mark.parametrize(("seconds", "charged"), [(2.5, "1"), (0, "1")])
def test_a_timeout_of_the_provider_is_paid_like_that_of_a_client_that_took_most_of_the_time(
    ask: Any, settings: Settings, seconds: float, charged: str
) -> None:
    settings.UAMP_RESPONSE_SECONDS = 4
    agent, client = ask("called-once", tools=[SEARCH])
    call = client.until("tool.call")[-1]
    client.during(seconds)
    client.send("tool.result", call_id=call["call_id"], result="1")
    ended(agent, client.until(*TERMINAL), "timeout", charged)


def test_an_answer_that_used_all_its_steps_is_charged(ask: Any) -> None:
    agent, client = ask("calling", tools=[SEARCH])
    while (frame := client.until("tool.call", *TERMINAL)[-1])["type"] == "tool.call":
        client.send("tool.result", call_id=frame["call_id"], result="1")
    ended(agent, [frame], "too_many_steps", "1")


def test_an_answer_that_is_too_long_is_charged(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_run, "ANSWER_CHARS", 100)
    agent, client = ask("endless")
    ended(agent, client.until(*TERMINAL), "answer_too_long", "1")


@pytest.mark.parametrize(
    ("result", "code", "charged"),
    [("bad", "invalid_tool_result", "1"), ("fine", "provider_error", "1")],
)
def test_a_result_that_the_model_refuses_is_the_clients(
    ask: Any, result: str, code: str, charged: str
) -> None:
    agent, client = ask("refusing", tools=[SEARCH])
    call = client.until("tool.call")[-1]
    client.send("tool.result", call_id=call["call_id"], result=f'"{result}"')
    ended(agent, client.until(*TERMINAL), code, charged)


def planner(*, replans: bool = False, **fields: Any) -> dict[str, Any]:
    """Return an agent that plans."""
    return {
        "strategy": "plan",
        "strategy_options": {"allow_replan": replans},
        "max_steps": 9,
        **fields,
    }


@pytest.mark.parametrize("replans", [False, True])
def test_a_plan_that_fails_at_the_clients_tool_is_charged(
    ask: Any,
    replans: bool,  # noqa: FBT001 a parameter of the test
) -> None:
    agent, client = ask("planned", row=planner(replans=replans), tools=[SEARCH])
    call = client.until("tool.call")[-1]
    client.send("tool.result", call_id=call["call_id"], result='"no"', is_error=True)
    ended(agent, client.until(*TERMINAL), "step_refused", "1")


def test_a_plan_that_fails_at_what_a_person_did_not_allow_is_charged(
    ask: Any, settings: Settings
) -> None:
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, STEPS]
    agent, client = ask("planned", row=planner(tools=["steps"], approvals=["steps"]))
    question = client.until("tool.approval_required")[-1]
    reported = {"call_id": question["call_id"], "response_id": question["response_id"]}
    client.send("tool.approve", **reported, approved=False)
    ended(agent, client.until(*TERMINAL), "step_refused", "1")


def test_a_plan_that_fails_at_a_tool_of_the_agent_is_charged_for_what_was_delivered(
    ask: Any, settings: Settings
) -> None:
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, BROKEN]
    agent, client = ask("planned", row=planner(tools=["broken"]))
    ended(agent, client.until(*TERMINAL), "provider_error", "1")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("row", "session", "code", "charged"),
    [
        (planner(), {"response_format": MISFIT}, "request_refused", "1"),
        (planner(), {"tools": [SEARCH]}, "request_refused", "1"),
        ({"strategy": "react"}, {"response_format": MISFIT}, "request_refused", "1"),
        ({"strategy": "react"}, {}, "provider_error", "1"),
        ({}, {"tools": [SEARCH]}, "provider_error", "0"),
    ],
)
def test_what_the_client_sent_and_the_model_refuses_late_is_the_clients(
    ask: Any, row: dict[str, Any], session: dict[str, Any], code: str, charged: str
) -> None:
    agent, client = ask("picky", row=row, **session)
    ended(agent, client.until(*TERMINAL), code, charged)
