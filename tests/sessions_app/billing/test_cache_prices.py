"""Input that is not counted yet is reserved at the highest price that it may have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import uamp
from agents_app.pricing import Pricing
from agents_app.providers import scripts
from agents_app.selectors import AgentSpec
from sessions_app.billing.meter import Meter
from sessions_app.billing.usage import reservation
from tests.client import TERMINAL
from tests.sessions_app.billing.paid_agents import clean, earned, pay, priced, rich, usd
from upp.conversation.turn import TokenUsage
from upp.providers.scripted import Pause, Step, Text, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.live_server import Dial, Person
    from upp import LLMRequest

WORDS = "word " * 8_000
READ = 10_000
WRITES: dict[str, Any] = {"input_per_1k": "1", "cache_write_per_1k": "1.25"}
READS: dict[str, Any] = {"input_per_1k": "1", "cache_read_per_1k": "1.5"}
CACHED = {
    "written": (WRITES, TokenUsage(cache_write_tokens=READ), "12.5"),
    "read": (READS, TokenUsage(cache_read_tokens=READ), "15"),
}


@pytest.mark.parametrize("kind", CACHED)
def test_what_a_vendor_caches_is_reserved_before_the_answer(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    prices, cached, cost = CACHED[kind]

    async def cacher(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        yield Text("The whole answer.")
        yield Usage(TokenUsage(input_tokens=READ, total_tokens=READ) + cached)

    monkeypatch.setitem(scripts.SCRIPTS, "cacher", cacher)
    agent = priced("paid", "cacher", **prices)
    client = dial(rich(alice, "50"))
    client.create_session(agent="paid")
    client.ask(WORDS)
    demand = client.until("payment.required")[-1]
    assert usd(demand["requirements"]["amount"]) >= usd(cost)
    pay(client, demand)
    assert client.until("payment.required", *TERMINAL)[-1]["type"] == "response.done"
    client.until("payment.balance")
    assert usd(earned(agent)) == usd(cost)
    assert clean()


def test_what_is_held_for_a_cache_pays_no_output(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def writer(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        for _ in range(40):
            yield Text("漢字" * 5)
        yield Pause(60)

    monkeypatch.setitem(scripts.SCRIPTS, "writer", writer)
    agent = priced("paid", "writer", **WRITES, output_per_1k="1")
    client = dial(rich(alice, "50"))
    client.create_session(agent="paid")
    client.send("input.text", text=WORDS)
    client.send("response.create", response={"max_tokens": 100})
    demand = client.until("payment.required")[-1]
    pay(client, demand)
    frames = client.until("payment.required", *TERMINAL)
    texts = [f["delta"].get("text") or "" for f in frames if f["type"] == "response.delta"]
    assert (frames[-1]["type"], len("".join(texts))) == ("payment.required", 100)
    client.send("response.cancel")
    client.until("payment.balance")
    # A step that was never counted is charged as plain input.
    assert usd(earned(agent)) < usd(demand["requirements"]["amount"]) - usd("2.4")
    assert clean()


@pytest.mark.parametrize(
    ("prices", "amount"),
    [
        ({"input_per_1k": "1"}, "10"),
        ({"input_per_1k": "1", "cache_read_per_1k": "0.1"}, "10"),
        (WRITES, "12.5"),
        (READS, "15"),
        ({"cache_write_per_1k": "2"}, "20"),
        ({"input_per_1k": "1", "audio_input_per_1k": "3"}, "18"),
        # A vendor may count sound as other input.
        ({"input_per_1k": "1", "audio_input_per_1k": "0.5"}, "10"),
        ({**READS, "audio_input_per_1k": "1.2"}, "15"),
        ({"output_per_1k": "1"}, "5"),
        ({"output_per_1k": "1", "audio_output_per_1k": "2"}, "9"),
        ({"output_per_1k": "1", "audio_output_per_1k": "0.5"}, "5"),
    ],
)
@pytest.mark.parametrize("provider", ["anthropic", "openai_compat"])
def test_a_step_is_reserved_at_the_highest_price(
    provider: str, prices: dict[str, Any], amount: str
) -> None:
    spec = AgentSpec(id="a", name="a", provider=provider, pricing=Pricing(**prices))
    step = uamp.UsageStats(
        input_tokens=10_000,
        output_tokens=5_000,
        audio=uamp.AudioUsage(input_tokens=4_000, output_tokens=4_000),
    )
    assert reservation(spec, step) == usd(amount)
    meter = Meter(spec)
    assert meter.bill(more=step).total == usd(amount)
    meter.add(uamp.events.UsageDelta(response_id="r", delta=step))
    assert meter.bill().total == meter.due().total <= usd(amount)
