"""The agents of a new server."""

import pytest

from agents_app.demo import prepare_agents
from agents_app.models import Agent
from agents_app.providers.scripts import SCRIPTS
from agents_app.selectors import list_agents
from agents_app.tools.registry import server_tools

pytestmark = pytest.mark.django_db

NAMES = [
    "echo",
    "paid-echo",
    "slow",
    "tool-user",
    "thinker",
    "fail",
    "report",
    "studio",
    "darkroom",
    "careful",
    "checklist",
    "assistant",
]


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for vendor in ("OPENAI", "ANTHROPIC", "GOOGLE"):
        for name in ("API_KEY", "BASE_URL", "MODEL"):
            monkeypatch.delenv(f"{vendor}_{name}", raising=False)


def assistant() -> Agent:
    return Agent.objects.get(name="assistant")


def test_a_new_server_gets_its_agents_once() -> None:
    assert prepare_agents() == NAMES
    before = list(Agent.objects.values())
    assert prepare_agents() == []
    assert list(Agent.objects.values()) == before
    assert sorted(spec.name for spec in list_agents(None)) == sorted(NAMES)


def test_every_demo_agent_is_valid_and_can_run() -> None:
    prepare_agents()
    for agent in Agent.objects.all():
        agent.full_clean()
        assert agent.options["script"] in SCRIPTS
        assert set(agent.tools) <= {*server_tools(), "present", "set_state"}
        assert "cript" in agent.description


def test_an_agent_that_an_operator_changed_stays() -> None:
    Agent.objects.create(name="Echo", description="mine")
    assert "echo" not in prepare_agents()
    assert Agent.objects.get(name="Echo").description == "mine"


def test_the_assistant_takes_a_model_when_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare_agents()
    assert (assistant().provider, assistant().options) == ("scripted", {"script": "guide"})
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    monkeypatch.setenv("OPENAI_MODEL", "llama")
    assert prepare_agents() == []
    assert (assistant().provider, assistant().model) == ("openai_compat", "llama")
    assert assistant().tools == ["csv_report", "fetch_page", "search_chat"]
    assert set(assistant().tools) <= set(server_tools())
    assistant().full_clean()
    monkeypatch.delenv("OPENAI_MODEL")
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    prepare_agents()
    assert assistant().model == "gpt-4o-mini"
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    monkeypatch.setenv("ANTHROPIC_MODEL", "claude")
    prepare_agents()
    assert (assistant().provider, assistant().model) == ("anthropic", "claude")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.delenv("ANTHROPIC_MODEL")
    # Another shell, in which an operator only asks for the keys of the demo.
    prepare_agents()
    assert (assistant().provider, assistant().model) == ("anthropic", "claude")
    prepare_agents(is_starting=True)
    assert assistant().provider == "scripted"


def test_an_assistant_that_an_operator_changed_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare_agents()
    Agent.objects.filter(name="assistant").update(description="ours")
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    prepare_agents()
    assert assistant().provider == "scripted"
