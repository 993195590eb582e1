"""From an agent's row to its model."""

from typing import Any

import pytest

from agents_app.providers import build_model, close_providers, vendor_params
from agents_app.selectors import AgentSpec
from upp import ErrorCode, UPPError
from upp.providers.openai_compat import OpenAICompatModel
from upp.providers.scripted import ScriptedModel


def spec(**values: Any) -> AgentSpec:
    return AgentSpec(**{"id": "a", "name": "echo", **values})


def server_of(agent: AgentSpec, **more: Any) -> tuple[str, str, str | None]:
    """Return the model's name, its server and the key that the server is sent."""
    model = build_model(agent, **more)
    assert isinstance(model, OpenAICompatModel)
    return model.model_id, model.server.url, model.server._api_key


def test_a_scripted_agent_plays_its_script() -> None:
    model = build_model(spec(options={"script": "slow", "delay": 0.5}), model="gpt")
    assert isinstance(model, ScriptedModel)
    assert (model.model_id, model.delay) == ("slow", 0.5)
    assert build_model(spec()).model_id == "echo"


def test_an_agent_without_script_or_provider_has_no_model() -> None:
    for agent in (spec(name="nobody"), spec(provider="other")):
        with pytest.raises(UPPError) as caught:
            build_model(agent)
        assert caught.value.code == ErrorCode.MODEL_NOT_FOUND


def test_the_environment_says_where_the_model_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    agent = spec(provider="openai_compat", model="m1")
    assert server_of(agent) == ("m1", "https://api.openai.com/v1/chat/completions", "key")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    assert server_of(agent) == ("m1", "http://localhost:1/v1/chat/completions", "key")


def test_an_agents_own_server_gets_its_own_key_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("OTHER_KEY", "other")
    options = {"base_url": "http://other/v1"}
    agent = spec(provider="openai_compat", model="m1", options=options)
    assert server_of(agent)[1:] == ("http://other/v1/chat/completions", None)
    agent = spec(
        provider="openai_compat", model="m1", options={**options, "api_key_env": "OTHER_KEY"}
    )
    assert server_of(agent)[1:] == ("http://other/v1/chat/completions", "other")


def test_a_client_chooses_among_allowed_models_only() -> None:
    agent = spec(provider="openai_compat", model="m1", options={"models": ["m2"]})
    assert server_of(agent, model="m2")[0] == "m2"
    assert server_of(agent, model="expensive")[0] == "m1"
    assert server_of(agent)[0] == "m1"


def test_models_of_one_server_share_it() -> None:
    one, two = (
        build_model(spec(provider="openai_compat", model=name, options={"base_url": "http://b/v1"}))
        for name in ("m1", "m2")
    )
    assert isinstance(one, OpenAICompatModel)
    assert isinstance(two, OpenAICompatModel)
    assert one.server is two.server


async def test_the_end_of_the_process_closes_the_connections() -> None:
    model = build_model(
        spec(provider="openai_compat", model="m1", options={"base_url": "http://c/v1"})
    )
    assert isinstance(model, OpenAICompatModel)
    client = model.server.client()
    await close_providers()
    assert client.is_closed
    await close_providers()


def test_an_agent_without_a_model_is_refused() -> None:
    with pytest.raises(UPPError, match="names no model") as caught:
        build_model(spec(provider="openai_compat"))
    assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_a_request_overrides_the_agents_parameters() -> None:
    agent = spec(options={"params": {"temperature": 1, "top_p": 0.5}})
    overrides = {"temperature": 0, "max_tokens": 7, "model": "x", "other": 1}
    assert vendor_params(agent, overrides) == {"temperature": 0, "top_p": 0.5, "max_tokens": 7}
    assert vendor_params(agent, {"temperature": None}) == {"temperature": 1, "top_p": 0.5}
    assert agent.options == {"params": {"temperature": 1, "top_p": 0.5}}
