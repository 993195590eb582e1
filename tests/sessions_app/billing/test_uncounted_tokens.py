"""Tokens that a provider does not count are charged by estimate, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agents_app.providers import scripts
from payments_app.spending import approvals
from tests.client import TERMINAL, wait_until
from tests.sessions_app.billing.paid_agents import clean, earned, priced, rich, usd
from upp import ToolResultMessage
from upp.conversation.turn import TokenUsage
from upp.providers.scripted import Call, Reasoning, Step, Text, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_app.selectors import AgentSpec
    from tests.live_server import Dial, Person
    from upp import LLMRequest

SEARCH = {
    "type": "function",
    "function": {"name": "search", "parameters": {"type": "object", "properties": {}}},
}
TEXT, THOUGHT, ARGUMENTS = "t" * 2_000, "r" * 1_200, "a" * 800


def talker(first: TokenUsage) -> object:
    """Return a script of two steps: the first is counted so, the second in full."""

    async def talks(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
        if isinstance(request.messages[-1], ToolResultMessage):
            yield Text("Done.")
            yield Usage(TokenUsage(input_tokens=10_000, output_tokens=10_000))
            return
        yield Reasoning(THOUGHT)
        yield Text(TEXT)
        yield Call(name="search", arguments={"a": ARGUMENTS})
        yield Usage(first)

    return talks


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("counted", "prices", "least", "limit"),
    [
        # Text, thought and call are 4,000 characters and a few.
        (TokenUsage(), {"output_per_1k": "1"}, 11.0, 11.01),
        (TokenUsage(input_tokens=10), {"output_per_1k": "1"}, 11.0, 11.01),
        (TokenUsage(output_tokens=-7), {"output_per_1k": "1"}, 11.0, 11.01),
        (TokenUsage(output_tokens=500), {"output_per_1k": "1"}, 10.5, 10.5),
        (TokenUsage(output_tokens=500), {"input_per_1k": "1"}, 10.001, 10.2),
        (TokenUsage(input_tokens=-1), {"input_per_1k": "1"}, 10.001, 10.2),
        (TokenUsage(input_tokens=500), {"input_per_1k": "1"}, 10.5, 10.5),
        (TokenUsage(cache_read_tokens=500), {"input_per_1k": "1"}, 10.5, 10.5),
    ],
)
def test_a_step_that_its_provider_does_not_count_is_charged_by_estimate(
    dial: Dial,
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
    counted: TokenUsage,
    prices: dict[str, str],
    least: float,
    limit: float,
) -> None:
    monkeypatch.setitem(scripts.SCRIPTS, "talker", talker(counted))
    agent = priced("paid", "talker", **prices)
    approvals.approve(rich(alice, "100").user.pk, agent.pk, usd("90"))
    client = dial(alice)
    client.create_session(agent="paid", session={"tools": [SEARCH]})
    client.ask("Hello")
    call = client.until("tool.call", *TERMINAL)[-1]
    client.send("tool.result", call_id=call["call_id"], result="1")
    assert client.until(*TERMINAL)[-1]["type"] == "response.done"
    wait_until(clean)
    assert least <= float(earned(agent)) <= limit
