"""An answer is charged for what it delivered, whatever ended it, and for nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agents_app.providers import scripts
from payments_app.spending import approvals
from sessions_app import database
from sessions_app.models import Response
from sessions_app.store import responses
from tests.client import TERMINAL, wait_until
from tests.sessions_app.billing.interrupted_payments import (
    asked_for,
    asker_balance,
    left_behind,
    pay,
    process,
    state,
    sweep,
)
from tests.sessions_app.billing.paid_agents import clean, earned, priced, rich, usd
from uamp import AudioUsage, TextContent, ThinkingContent, UsageStats
from upp import ErrorCode as ProviderErrorCode
from upp import ToolResultMessage, UPPError
from upp.conversation.turn import TokenUsage
from upp.providers.scripted import Call, Fail, Pause, Reasoning, Step, Text, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pytest_django import Settings

    from agents_app.selectors import AgentSpec
    from sessions_app.process.registry import Process
    from tests.live_server import Dial, Person
    from upp import LLMRequest

__all__ = ["process"]

SEARCH = {
    "type": "function",
    "function": {"name": "search", "parameters": {"type": "object", "properties": {}}},
}
TEXT = "Nearly all of it. "
FAILURE = Fail(UPPError("It is down.", code=ProviderErrorCode.PROVIDER_ERROR))
COUNTED = Usage(TokenUsage(input_tokens=100, output_tokens=100, total_tokens=200))
PER_TOKEN = {"input_per_1k": "1", "output_per_1k": "1"}
BY_SHARE = {"per_answer": "1", "unfinished": "share", "expected_tokens": 10}


def script(first: list[Step], second: list[Step]) -> Any:
    """Return a script that plays its second part after a result of a tool."""

    async def play(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
        has_result = any(isinstance(message, ToolResultMessage) for message in request.messages)
        for step in second if has_result else first:
            yield step

    return play


CALL = Call(name="search", arguments={})
ENDINGS: dict[str, tuple[list[Step], list[Step]]] = {
    "time-out in the first step": ([Text(TEXT), Pause(60)], []),
    "time-out in a later step": ([Text(TEXT), COUNTED, CALL], [Pause(60)]),
    "error in the first step": ([Text(TEXT), FAILURE], []),
    "error in a later step": ([Text(TEXT), COUNTED, CALL], [FAILURE]),
    "error after thoughts": ([Reasoning(TEXT), FAILURE], []),
    "error before anything": ([FAILURE], []),
    "time-out before anything": ([Pause(60)], []),
}
# Four characters are a token: TEXT has five, and the input of a step is not known exactly.
DUE = [
    ("time-out in the first step", {"per_answer": "1"}, "1", "1"),
    ("time-out in the first step", {"output_per_1k": "1"}, "0.005", "0.005"),
    ("time-out in the first step", BY_SHARE, "0.5", "0.5"),
    ("time-out in a later step", {"per_answer": "1"}, "1", "1"),
    ("time-out in a later step", PER_TOKEN, "0.2", "0.2"),
    ("error in the first step", {"per_answer": "1"}, "1", "1"),
    ("error in the first step", {"output_per_1k": "1"}, "0.005", "0.005"),
    ("error in the first step", BY_SHARE, "0.5", "0.5"),
    ("error in a later step", {"per_answer": "1"}, "1", "1"),
    ("error in a later step", PER_TOKEN, "0.2", "0.2"),
    ("error after thoughts", {"per_answer": "1"}, "1", "1"),
    ("error before anything", {"per_answer": "1", **PER_TOKEN}, "0", "0"),
    ("time-out before anything", {"per_answer": "1", **PER_TOKEN}, "0", "0"),
]


@pytest.mark.parametrize(("ending", "pricing", "least", "limit"), DUE)
def test_what_was_delivered_is_charged_whatever_ended_it(
    dial: Dial,
    alice: Person,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    ending: str,
    pricing: dict[str, Any],
    least: str,
    limit: str,
) -> None:
    if "time-out" in ending:
        settings.UAMP_RESPONSE_SECONDS = 1
    monkeypatch.setitem(scripts.SCRIPTS, "cut", script(*ENDINGS[ending]))
    agent = priced("paid", "cut", **pricing)
    approvals.approve(rich(alice).user.pk, agent.pk, usd("9"))
    client = dial(alice)
    client.create_session(agent="paid", session={"tools": [SEARCH]})
    client.ask("Hello")
    frame = client.until("tool.call", *TERMINAL)[-1]
    if frame["type"] == "tool.call":
        client.send("tool.result", call_id=frame["call_id"], result="1")
        frame = client.until(*TERMINAL)[-1]
    assert frame["error"]["code"] == ("timeout" if "time-out" in ending else "provider_error")
    wait_until(clean)
    assert usd(least) <= usd(earned(agent)) <= usd(limit)


KILLED = [
    ({"per_answer": "1"}, (TextContent(text=TEXT),), None, "4"),
    ({"per_answer": "1"}, (ThinkingContent(thinking=TEXT),), None, "4"),
    ({"per_answer": "1"}, (), None, "5"),
    (
        {"output_per_1k": "100"},
        (TextContent(text=TEXT),),
        UsageStats(input_tokens=7, output_tokens=5),
        "4.5",
    ),
    (
        {"output_per_1k": "100"},
        (),
        UsageStats(output_tokens=5, audio=AudioUsage(output_tokens=5)),
        "4.5",
    ),
]


@pytest.mark.parametrize(("pricing", "output", "under_way", "left"), KILLED)
async def test_what_a_process_delivered_before_it_died_is_charged(
    process: Process,
    pricing: dict[str, str],
    output: tuple[Any, ...],
    under_way: UsageStats | None,
    left: str,
) -> None:
    response = await database.run(_cut_off, pricing, output, under_way)
    await sweep(process)
    await database.run(wait_until, lambda: state(response) == ("failed", "interrupted"))
    assert await database.run(asker_balance, response) == left
    assert await database.run(clean)


def _cut_off(
    pricing: dict[str, str], output: tuple[Any, ...], under_way: UsageStats | None
) -> Response:
    """Return a paid response whose process died after it had flushed this."""
    response = left_behind("waiting", pricing)
    pay(response, asked_for(response))
    Response.objects.filter(pk=response.pk).update(status="in_progress")
    flush = responses.Flush(response_id=response.pk, fence=1, output=output, under_way=under_way)
    responses.flush_responses([flush])
    return response
