"""A visitor does not spend the operator's key: which public agents are for people only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agents_app.models import ModelProvider
from tests import factories
from tests.sessions_app.turn.delegation import answer_frames, answer_text, doer, task_for
from tests.sessions_app.turn.team_tools import order

if TYPE_CHECKING:
    import httpx
    from pytest_django import Settings

    from tests.live_server import Dial, Person

pytestmark = pytest.mark.django_db(transaction=True)

PRICES: dict[str, dict[str, Any]] = {
    "free": {},
    "tools": {"tools": {"csv_report": "0.05"}},
    "zeros": {"per_answer": "0", "input_per_1k": "0.000", "output_per_1k": "0.0"},
    "answers": {"per_answer": "0.02"},
    "tokens": {"output_per_1k": "0.01"},
}


@pytest.fixture(autouse=True)
def _models(web: httpx.Client, settings: Settings) -> None:
    del web
    settings.UAMP_ANONYMOUS_MODELS = False
    of_model = {"provider": ModelProvider.OPENAI_COMPAT, "model": "m", "options": {}}
    for name, pricing in PRICES.items():
        factories.agent(name, pricing=pricing, **of_model)


def opens(dial: Dial, agent: str, who: Person | None = None) -> bool:
    """Return whether a session with the agent can be opened."""
    client = dial(who)
    client.send("session.create", uamp_version="1.0", session={}, agent=agent)
    return bool(client.receive()["type"] == "session.created")


def listed(web: httpx.Client, who: Person | None = None) -> set[str]:
    agents = web.get("/info", headers=who.headers if who else {}).json()["agents"]
    return {agent["name"] for agent in agents} & {"echo", *PRICES}


def test_a_visitor_opens_no_session_with_a_model_that_the_operator_pays(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    assert [name for name in ("echo", *PRICES) if opens(dial, name)] == [
        "echo",
        "answers",
        "tokens",
    ]
    assert listed(web) == {"echo", "answers", "tokens"}
    assert web.get("/agents/free/info").status_code == 404
    assert all(opens(dial, name, alice) for name in PRICES)
    assert listed(web, alice) == {"echo", *PRICES}


def test_the_operator_may_let_visitors_use_models(
    dial: Dial, web: httpx.Client, settings: Settings
) -> None:
    settings.UAMP_ANONYMOUS_MODELS = True
    assert all(opens(dial, name) for name in PRICES)
    assert listed(web) == {"echo", *PRICES}


def test_visitors_may_use_a_model_at_an_address_of_the_operator(
    dial: Dial, web: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_model = {"provider": ModelProvider.OPENAI_COMPAT, "model": "m"}
    factories.agent("inside", options={"base_url": "http://127.0.0.1:11434/v1"}, **of_model)
    factories.agent("outside", options={"base_url": "https://models.example/v1"}, **of_model)
    names = ("inside", "outside", "free")
    assert [name for name in names if opens(dial, name)] == ["inside"]
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1")
    assert [name for name in ("inside", "outside", "free") if opens(dial, name)] == [
        "inside",
        "free",
    ]
    monkeypatch.setenv("OPENAI_BASE_URL", "https://models.example/v1")
    assert not opens(dial, "free")
    assert web.get("/agents/free/info").status_code == 404


def test_a_visitor_reaches_no_closed_model_through_another_agent(
    dial: Dial, alice: Person, bob: Person, settings: Settings
) -> None:
    fields: dict[str, Any] = {"owner": bob.user, "is_public": False}
    doer("hidden", **fields)
    of_model = {"provider": ModelProvider.OPENAI_COMPAT, "model": "m", "options": {}}
    factories.agent("secret", **fields, **of_model)
    names = ("free", "zeros", "secret", "hidden")
    doer("boss", *names, owner=bob.user)

    def refused(who: Person | None) -> list[str]:
        task = order(say="done")
        answers = {
            name: answer_text(answer_frames(dial(who), "boss", task_for(name, task)))
            for name in names
        }
        return [name for name in names if "is not available to" in answers[name]]

    # The owner of the agent agreed to what their private ones do for others.
    assert refused(None) == ["free", "zeros", "secret"]
    assert refused(alice) == []
    settings.UAMP_ANONYMOUS_MODELS = True
    assert refused(None) == []


def test_the_form_drops_prices_of_nothing() -> None:
    pricing = {"input_per_1k": "0.01", "cache_read_per_1k": "0"}
    agent = factories.agent(
        "tidy", pricing={**pricing, "per_answer": "0", "output_per_1k": "0.0", "tools": {"x": "0"}}
    )
    agent.full_clean()
    assert agent.pricing == pricing
    agent.pricing = PRICES["zeros"]
    agent.full_clean()
    assert agent.pricing == {}
