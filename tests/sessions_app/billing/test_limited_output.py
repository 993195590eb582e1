"""A vendor that is sent a token limit bills no more than that, however its text is weighed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agents_app.conversation.text_weights import max_weight
from agents_app.pricing import Pricing
from agents_app.providers.output_limits import enforced_limit
from agents_app.selectors import AgentSpec
from sessions_app.billing.meter import Meter
from tests.client import TERMINAL, wait_until
from tests.sessions_app.billing.paid_agents import clean, earned, pay, rich
from tests.sessions_app.model_server import model_server, text_chunks

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.live_server import Dial, Person

LIMIT = 100
# About 100 tokens for the vendors, and 240 if each mark and digit is counted as one.
JSON = '{"a1":[7,"it"]},' * 20
USAGE = {"prompt_tokens": 7, "completion_tokens": LIMIT}


@pytest.mark.parametrize("is_trusted", [True, False])
def test_only_a_trusted_limit_bounds_what_has_to_be_held(
    dial: Dial,
    alice: Person,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_trusted: bool,
) -> None:
    answer = [*text_chunks(JSON, "length")[:-1], {"id": "1", "choices": [], "usage": USAGE}]
    with model_server(answer) as model:
        if is_trusted:
            monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        settings.UAMP_MODEL_ALLOW_HOSTS = ["127.0.0.1:*"]
        agent = model.agent("paid", max_output_tokens=LIMIT, pricing={"output_per_1k": "1"})
        rich(alice)
        client = dial(alice)
        client.create_session(agent="paid")
        client.ask("List them")
        demand = client.until("payment.required")[-1]
        assert demand["requirements"]["amount"] == "0.1"
        pay(client, demand)
        event = client.until("payment.required", *TERMINAL)[-1]
        if not is_trusted:
            assert (event["type"], event["extra"]) == ("payment.required", {"action": "topup"})
            client.send("response.cancel", response_id=event["response_id"])
            client.until(*TERMINAL)
            wait_until(clean)
            return
        assert event["type"] == "response.done"
        wait_until(clean)
        assert earned(agent) == "0.1"


def test_inferences_that_are_not_counted_have_a_limit_each() -> None:
    spec = AgentSpec(id="a", name="a", pricing=Pricing(output_per_1k="1"))
    meter = Meter(spec, limit=LIMIT)
    weighs = max_weight(JSON)
    assert weighs > 2 * 4 * LIMIT
    for count in (1, 2):
        meter.mark_sent()
        assert str(meter.bill(ahead=weighs).total) == f"0.{count}"


@pytest.mark.parametrize(
    ("fields", "options", "overrides", "limit"),
    [
        ({}, {}, {}, None),
        ({}, {}, {"max_tokens": 30}, 30),
        ({}, {"reasoning_tokens": 5}, {"max_tokens": 30}, 35),
        ({"max_output_tokens": 20}, {}, {"max_tokens": 30}, 20),
        # Reserved for reasoning, and sent.
        ({}, {}, {"reasoning_effort": "low"}, 512 + 4_096),
        ({}, {"base_url": "https://api.groq.com/openai/v1"}, {"max_tokens": 30}, 30),
        ({}, {"base_url": "https://models.example/v1"}, {"max_tokens": 30}, None),
        ({"kind": "remote"}, {}, {"max_tokens": 30}, None),
        ({"kind": "connected"}, {}, {"max_tokens": 30}, None),
        ({"provider": "scripted"}, {}, {"max_tokens": 30}, None),
        ({"provider": "openai_realtime"}, {}, {"max_tokens": 30}, 30),
        (
            {"provider": "openai_realtime"},
            {"params": {"max_completion_tokens": 30}},
            {},
            None,
        ),
    ],
)
def test_a_limit_is_enforced_by_vendors_that_are_sent_it(
    fields: dict[str, Any],
    options: dict[str, Any],
    overrides: dict[str, Any],
    limit: int | None,
) -> None:
    spec = AgentSpec(
        id="a",
        name="a",
        model="m",
        options=options,
        pricing=Pricing(output_per_1k="1"),
        **{"provider": "openai_compat", **fields},
    )
    assert enforced_limit(spec, overrides) == limit
