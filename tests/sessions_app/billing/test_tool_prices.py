"""The price of a tool is for what the agent runs; a client's tool of that name changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agents_app.providers import scripts
from agents_app.runtime.agent_run import RunRequest
from agents_app.runtime.offered_tools import run_by_client
from agents_app.selectors import get_spec
from sessions_app.billing.meter import Meter
from tests.client import TERMINAL, Frame, UampClient
from tests.sessions_app.billing.paid_agents import clean, earned, pay, priced, rich
from uamp import ToolCallContent, ToolCallData, ToolDefinition, ToolResultContent, ToolResultData
from upp import LLMRequest, ToolResultMessage
from upp.providers.scripted import Call, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pytest_django import Settings

    from agents_app.models import Agent
    from agents_app.selectors import AgentSpec
    from tests.live_server import Dial, Person

WEIGH = "tests.sessions_app.billing.test_token_payments.weigh"
DECLARED: dict[str, Any] = {"type": "function", "function": {"name": "weigh"}}


async def weigher(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Call the tool `weigh`, and say what it found."""
    last = request.messages[-1]
    if isinstance(last, ToolResultMessage):
        yield Text(str(last.results[0].result))
    else:
        yield Call(name="weigh", arguments={"query": "words"})


@pytest.fixture
def agent(demo: object, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """Give an agent that has a price for `weigh`."""
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, WEIGH]
    monkeypatch.setitem(scripts.SCRIPTS, "weigher", weigher)
    return priced("paid", "weigher", per_answer="0.1", tools={"weigh": "0.25"})


def ask_and_pay(client: UampClient, *, ends: str = "wait") -> list[Frame]:
    """Declare `weigh`, ask, and pay what is asked for; return the frames up to the end."""
    client.create_session(agent="paid", session={"tools": [DECLARED]})
    client.send("input.text", text="Weigh")
    client.send("response.create", response={"client_tools": ends})
    frames: list[Frame] = []
    while not frames or frames[-1]["type"] not in TERMINAL:
        frames += client.until("payment.required", "tool.call", *TERMINAL)
        if frames[-1]["type"] == "payment.required":
            pay(client, frames[-1])
        elif frames[-1]["type"] == "tool.call" and ends == "wait":
            client.send("tool.result", call_id=frames[-1]["call_id"], result='"mine"')
    client.until("payment.balance")
    return frames


def demands(frames: list[Frame]) -> list[str]:
    """Return the amounts that were asked for."""
    return [f["requirements"]["amount"] for f in frames if f["type"] == "payment.required"]


def test_a_client_that_declares_a_priced_server_tool_neither_runs_it_nor_has_it_free(
    dial: Dial, alice: Person, agent: Agent
) -> None:
    agent.tools = ["weigh"]
    agent.save()
    frames = ask_and_pay(dial(rich(alice)))
    assert frames[-1]["response"]["output"][-1]["text"] == "5 grams"
    assert "tool.call" not in [frame["type"] for frame in frames]
    assert demands(frames) == ["0.1", "0.25"]
    assert earned(agent) == "0.35"
    assert clean()


@pytest.mark.parametrize("ends", ["wait", "end"])
def test_a_tool_that_the_client_runs_has_no_price(
    dial: Dial, alice: Person, agent: Agent, ends: str
) -> None:
    frames = ask_and_pay(dial(rich(alice)), ends=ends)
    assert "tool.call" in [frame["type"] for frame in frames]
    assert demands(frames) == ["0.1"]
    assert earned(agent) == "0.1"
    assert clean()


@pytest.mark.parametrize(("tools", "charged"), [((), 0), (("weigh",), 1)])
def test_a_process_that_takes_an_answer_over_charges_the_same_tools(
    agent: Agent, tools: tuple[str, ...], charged: int
) -> None:
    agent.tools = list(tools)
    agent.save()
    spec = get_spec(agent.pk)
    declared = msgspec.convert(DECLARED, ToolDefinition)
    request = RunRequest(response_id="r", history=[], tools=[declared])
    meter = Meter(spec, client_tools=run_by_client(spec, request))
    call = ToolCallData(id="call_1", name="weigh", arguments="{}")
    result = ToolResultData(call_id="call_1", result="1")
    meter.resume(None, [ToolCallContent(tool_call=call), ToolResultContent(tool_result=result)])
    assert meter.tools["weigh"] == charged
