"""Reasoning that a provider bills and does not show is reserved, or asked for before the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agents_app.pricing import Pricing
from agents_app.providers import scripts
from agents_app.providers.clients import close_providers
from agents_app.providers.output_limits import output_bound
from agents_app.runtime.agent_run import AgentError, RunRequest, run_agent
from agents_app.selectors import AgentSpec
from payments_app.models import Transfer
from sessions_app.billing.weights import step_usage
from sessions_app.models import Response
from tests.agents_app.run_context import Broker, Media
from tests.client import TERMINAL
from tests.sessions_app.billing.paid_agents import clean, earned, pay, priced, rich, usd, wallet
from tests.upp.wire_server import Exchange, serve
from uamp.types.content import Message
from upp.conversation.turn import TokenUsage
from upp.providers.scripted import Step, Text, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pytest_django import Settings

    from agents_app.models import Agent
    from tests.live_server import Dial, Person
    from upp import LLMRequest

PRICES = {"per_answer": "0.25", "output_per_1k": "1"}
BILLED = 3_000


@pytest.fixture
def ponderer(demo: object, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """Give an agent that says a word and bills 3,000 tokens."""

    async def ponder(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        yield Text("Yes.")
        yield Usage(TokenUsage(input_tokens=1, output_tokens=BILLED, total_tokens=BILLED + 1))

    monkeypatch.setitem(scripts.SCRIPTS, "ponder", ponder)
    return priced("paid", "ponder", **PRICES)


def test_hidden_reasoning_is_reserved(dial: Dial, alice: Person, ponderer: Agent) -> None:
    ponderer.options = {"script": "ponder", "reasoning_tokens": BILLED}
    ponderer.save()
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Is it so?")
    demand = client.until("payment.required")[-1]
    # The price of an answer, 512 tokens of text, and what it may reason.
    assert demand["requirements"]["amount"] == "3.762"
    pay(client, demand)
    assert client.until("payment.required", *TERMINAL)[-1]["type"] == "response.done"
    assert earned(ponderer) == "3.25"
    assert clean()


def test_what_is_counted_beyond_the_reservation_is_asked_for_before_the_end(
    dial: Dial, alice: Person, ponderer: Agent
) -> None:
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Is it so?")
    pay(client, client.until("payment.required")[-1])
    more = client.until("payment.required", *TERMINAL)[-1]
    assert more["extra"] == {"action": "topup"}
    assert usd(more["requirements"]["amount"]) == usd("3.25") - usd("0.762")
    pay(client, more)
    assert client.until(*TERMINAL)[-1]["type"] == "response.done"
    assert earned(ponderer) == "3.25"
    assert clean()


def test_a_payer_who_does_not_pay_the_rest_has_paid_the_hold(
    dial: Dial, alice: Person, ponderer: Agent, settings: Settings
) -> None:
    settings.UAMP_PAYMENT_SECONDS = 1
    settings.UAMP_SWEEP_SECONDS = 0.3
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Is it so?")
    pay(client, client.until("payment.required")[-1])
    ended = client.until(*TERMINAL)[-1]
    assert ended["error"]["code"] == "payment_timeout"
    assert earned(ponderer) == "0.762"
    usage = Response.objects.get().usage
    assert usage is not None
    assert (usage["cost"]["total_cost"], usage["output_tokens"]) == (0.762, BILLED)
    # The parts are what the hold paid, of which the price of the answer comes first.
    assert (usage["cost"]["answer_cost"], usage["cost"]["output_cost"]) == (0.25, 0.512)
    assert wallet(alice).available == usd("10") - usd("0.762")
    assert Transfer.objects.filter(kind="answer").count() == 1
    assert clean()


@pytest.mark.parametrize(
    ("provider", "params", "overrides", "bound"),
    [
        ("openai_compat", {}, {}, 512),
        ("openai_compat", {}, {"max_tokens": 100}, 100),
        ("openai_compat", {"max_completion_tokens": 9_000}, {}, 9_000),
        # The request's limit replaces that of the parameters, whatever its name.
        ("openai_compat", {"max_completion_tokens": 9_000}, {"max_tokens": 1}, 1),
        ("openai_compat", {"reasoning_effort": "high"}, {}, 512 + 32_768),
        ("openai_compat", {"reasoning_effort": "high"}, {"reasoning_effort": "low"}, 512 + 4_096),
        ("openai_compat", {}, {"reasoning_effort": "xhigh"}, 512 + 65_536),
        ("openai_compat", {}, {"reasoning_effort": "medium"}, 512 + 8_192),
        ("openai_compat", {}, {"reasoning_effort": "none"}, 512),
        ("openai_compat", {"reasoning": {"effort": "high"}}, {}, 512 + 32_768),
        ("openai_compat", {"reasoning": {"max_tokens": 2_000}}, {}, 2_512),
        ("openai_compat", {"reasoning": {"enabled": False}}, {}, 512),
        ("openai_compat", {"thinking": {"type": "enabled"}}, {}, 512 + 8_192),
        ("openai_compat", {"reasoning_effort": "high"}, {"max_tokens": 700}, 700),
        ("anthropic", {"thinking": {"type": "enabled", "budget_tokens": 8_000}}, {}, 8_512),
        ("anthropic", {"thinking": {"type": "adaptive"}}, {}, 512 + 8_192),
        ("anthropic", {"thinking": {"type": "disabled"}}, {}, 512),
        ("anthropic", {}, {"reasoning_effort": "high"}, 512 + 16_384),
        ("google", {"generationConfig": {"maxOutputTokens": 2_000}}, {}, 2_000),
        ("google", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 64}}}, {}, 576),
        ("google", {"generationConfig": {"thinkingConfig": {"thinkingBudget": -1}}}, {}, 8_704),
        ("google", {"generationConfig": {"thinkingConfig": {"thinkingLevel": "high"}}}, {}, 8_704),
        ("google", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}, {}, 512),
        ("google", {}, {"reasoning_effort": "high"}, 512 + 16_384),
        ("google", {}, {"max_tokens": 30}, 30),
    ],
)
def test_a_step_is_bounded_by_what_its_vendor_is_asked_for(
    provider: str, params: dict[str, Any], overrides: dict[str, Any], bound: int
) -> None:
    options = {"params": params}
    spec = AgentSpec(id="a", name="a", provider=provider, model="m", options=options)
    assert output_bound(spec, overrides, visible=512, hidden=4_096) == bound
    more = AgentSpec(
        id="a", name="a", provider=provider, model="m", options={**options, "reasoning_tokens": 5}
    )
    assert output_bound(more, overrides, visible=512, hidden=4_096) == bound + 5


@pytest.mark.parametrize(
    ("provider", "params", "overrides"),
    [
        ("openai_compat", {}, {"reasoning_effort": "low"}),
        ("openai_compat", {}, {"reasoning_effort": "xhigh"}),
        ("openai_compat", {}, {"extensions": {"openai": {"reasoning_effort": "high"}}}),
        ("openai_compat", {"reasoning_effort": "medium"}, {}),
        ("openai_compat", {"reasoning": {"effort": "high"}}, {}),
        ("anthropic", {"thinking": {"type": "adaptive"}}, {}),
        ("anthropic", {}, {"extensions": {"anthropic": {"thinking": {"type": "adaptive"}}}}),
        ("google", {"generationConfig": {"thinkingConfig": {"thinkingBudget": -1}}}, {}),
    ],
)
async def test_a_vendor_is_sent_what_is_reserved_for_reasoning_as_its_limit(
    provider: str, params: dict[str, Any], overrides: dict[str, Any]
) -> None:
    body, reserved = await _sent(provider, params, overrides, output_per_1k="0.1")
    assert _limits_in(body) == [reserved]
    more = {"reasoning_tokens": 9_000}
    body, with_more = await _sent(provider, params, overrides, more, output_per_1k="0.1")
    assert _limits_in(body) == [with_more] == [reserved + 9_000]
    body, _ = await _sent(provider, params, overrides, input_per_1k="0.1")
    # Anthropic's API requires a limit.
    assert _limits_in(body) == ([8_192] if provider == "anthropic" else [])


@pytest.mark.parametrize(
    ("provider", "params", "overrides", "limits"),
    [
        ("openai_compat", {}, {}, []),
        ("openai_compat", {}, {"reasoning_effort": "none"}, []),
        ("openai_compat", {}, {"reasoning_effort": "high", "max_tokens": 700}, [700]),
        ("openai_compat", {"max_completion_tokens": 900}, {"reasoning_effort": "high"}, [900]),
        ("anthropic", {}, {"reasoning_effort": "low"}, [8_192 + 2_048]),
        ("google", {}, {"reasoning_effort": "low"}, []),
    ],
)
async def test_a_model_that_cannot_reason_beyond_a_budget_gets_no_other_limit(
    provider: str, params: dict[str, Any], overrides: dict[str, Any], limits: list[int]
) -> None:
    """Visible text is paid before it is shown, so answers may be long."""
    body, _ = await _sent(provider, params, overrides, output_per_1k="0.1")
    assert _limits_in(body) == limits


async def _sent(
    provider: str,
    params: dict[str, Any],
    overrides: dict[str, Any],
    more: dict[str, Any] | None = None,
    **pricing: Any,
) -> tuple[dict[str, Any], int]:
    """Return the request that a vendor receives for an answer, and the output reserved for it."""
    bodies: list[dict[str, Any]] = []

    async def refuse(exchange: Exchange) -> None:
        bodies.append(exchange.body)
        await exchange.refuse("400 Bad Request", b'{"error": {"message": "no"}}')

    async with serve(refuse) as wire:
        spec = AgentSpec(
            id="a",
            name="a",
            provider=provider,
            model="m",
            options={"base_url": wire.url, "params": params, **(more or {})},
            pricing=Pricing(**pricing),
        )
        history = [Message(role="user", content="Prove it")]
        request = RunRequest(response_id="r1", history=history, params=overrides)
        try:
            with pytest.raises(AgentError):
                await run_agent(spec, request, lambda _: None, broker=Broker(), media=Media())
        finally:
            await close_providers()
    return bodies[0], step_usage(spec, request).output_tokens or 0


def _limits_in(body: dict[str, Any]) -> list[int]:
    config = body.get("generationConfig", {})
    limits = (
        body.get("max_tokens"),
        body.get("max_completion_tokens"),
        config.get("maxOutputTokens"),
    )
    return [limit for limit in limits if limit is not None]
