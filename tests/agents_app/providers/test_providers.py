"""From an agent's row to its model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.outbound.keys import encrypted_key
from agents_app.providers.clients import (
    build_model,
    close_providers,
    model_place,
    vendor_params,
    with_token_limit,
)
from agents_app.selectors import AgentSpec
from upp import ErrorCode, UPPError
from upp.providers.http.transport import HttpModel
from upp.providers.scripted import ScriptedModel

if TYPE_CHECKING:
    from pytest_django import Settings


def spec(**values: Any) -> AgentSpec:
    return AgentSpec(**{"id": "a", "name": "echo", **values})


async def server_of(agent: AgentSpec, **more: Any) -> tuple[str, str | None, str | None]:
    """Return the model's name, its server and the key that the server is sent."""
    model = http_model(agent, **more)
    config, key = await model.server.connection(None)
    return model.model_id, config.base_url, key


def http_model(agent: AgentSpec, **more: Any) -> HttpModel:
    model = build_model(agent, **more)
    assert isinstance(model, HttpModel)
    return model


def test_a_scripted_agent_plays_its_script() -> None:
    model = build_model(spec(options={"script": "slow", "delay": 0.5}), model="gpt")
    assert isinstance(model, ScriptedModel)
    assert (model.model_id, model.delay) == ("slow", 0.5)
    assert build_model(spec()).model_id == "echo"


def test_an_agent_without_script_or_provider_has_no_model() -> None:
    for agent in (spec(name="missing"), spec(provider="other", model="m")):
        with pytest.raises(UPPError) as caught:
            build_model(agent)
        assert caught.value.code == ErrorCode.MODEL_NOT_FOUND


@pytest.mark.parametrize(
    ("provider", "prefix", "address"),
    [
        ("openai_compat", "OPENAI", "https://api.openai.com/v1"),
        ("anthropic", "ANTHROPIC", "https://api.anthropic.com"),
        ("google", "GOOGLE", "https://generativelanguage.googleapis.com"),
    ],
)
async def test_the_environment_says_where_the_model_is(
    provider: str, prefix: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{prefix}_API_KEY", "key")
    monkeypatch.delenv(f"{prefix}_BASE_URL", raising=False)
    agent = spec(provider=provider, model="m1")
    assert await server_of(agent) == ("m1", address, "key")
    monkeypatch.setenv(f"{prefix}_BASE_URL", "http://localhost:1/v1")
    assert await server_of(agent) == ("m1", "http://localhost:1/v1", "key")


@pytest.fixture(autouse=True)
def hosts_of_the_operator(settings: Settings) -> None:
    """Allow the addresses of these tests."""
    settings.UAMP_MODEL_ALLOW_HOSTS = ["other:80", "b:80", "c:80"]


@pytest.mark.parametrize("provider", ["openai_compat", "anthropic", "google"])
async def test_an_agents_own_server_gets_its_own_key_only(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for prefix in ("OPENAI", "ANTHROPIC", "GOOGLE"):
        monkeypatch.setenv(f"{prefix}_API_KEY", "key")
    monkeypatch.setenv("OTHER_API_KEY", "other")
    options = {"base_url": "http://other/v1"}
    agent = spec(provider=provider, model="m1", options=options)
    assert await server_of(agent) == ("m1", "http://other/v1", None)
    agent = spec(provider=provider, model="m1", options={**options, "api_key_env": "OTHER_API_KEY"})
    assert await server_of(agent) == ("m1", "http://other/v1", "other")


@pytest.mark.parametrize(
    ("provider", "address"),
    [
        ("openai_compat", "https://api.openai.com/v1"),
        ("anthropic", "https://api.anthropic.com"),
        ("google", "https://generativelanguage.googleapis.com"),
    ],
)
async def test_a_stored_key_goes_to_the_place_it_was_entered_for(
    provider: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for prefix in ("OPENAI", "ANTHROPIC", "GOOGLE"):
        monkeypatch.delenv(f"{prefix}_API_KEY", raising=False)
        monkeypatch.delenv(f"{prefix}_BASE_URL", raising=False)
    secret = encrypted_key("stored", model_place(provider, None))
    agent = spec(provider=provider, model="m1", secret=secret)
    assert await server_of(agent) == ("m1", address, "stored")
    moved = spec(provider=provider, model="m1", secret=secret, options={"base_url": "http://b/v1"})
    assert await server_of(moved) == ("m1", "http://b/v1", None)
    local = spec(
        provider=provider,
        model="m1",
        secret=encrypted_key("local", "http://b:80"),
        options={"base_url": "http://b/v1"},
    )
    assert await server_of(local) == ("m1", "http://b/v1", "local")


def test_a_stored_key_that_cannot_be_decrypted_is_not_replaced(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    secret = encrypted_key("stored", model_place("openai_compat", None))
    settings.SECRET_KEY = "another one"
    with pytest.raises(UPPError, match="enter the key again") as caught:
        build_model(spec(provider="openai_compat", model="m1", secret=secret))
    assert caught.value.code == ErrorCode.AUTHENTICATION_FAILED


def test_a_key_that_is_missing_is_not_replaced_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.delenv("OTHER_API_KEY", raising=False)
    agent = spec(provider="openai_compat", model="m1", options={"api_key_env": "OTHER_API_KEY"})
    with pytest.raises(UPPError, match="OTHER_API_KEY is not set") as caught:
        build_model(agent)
    assert caught.value.code == ErrorCode.AUTHENTICATION_FAILED


async def test_a_client_chooses_among_allowed_models_only() -> None:
    agent = spec(provider="openai_compat", model="m1", options={"models": ["m2"]})
    assert http_model(agent, model="m2").model_id == "m2"
    assert http_model(agent, model="expensive").model_id == "m1"
    assert http_model(agent).model_id == "m1"


def test_models_of_one_server_share_it() -> None:
    first, second, other = (
        http_model(spec(provider=provider, model="m", options={"base_url": "http://b/v1"}))
        for provider in ("openai_compat", "openai_compat", "anthropic")
    )
    assert first.server is second.server
    assert other.server is not first.server


def test_the_version_of_an_api_is_an_option_and_requests_are_retried() -> None:
    agent = spec(provider="anthropic", model="m", options={"api_version": "2026-10-21"})
    config = http_model(agent).server.config
    assert config.api_version == "2026-10-21"
    assert config.retry is not None
    slow = UPPError("slow down", code=ErrorCode.RATE_LIMITED, retry_after=2)
    assert config.retry.on_retry(slow, 1) == 2
    assert config.retry.on_retry(slow, 3) is None


async def test_the_end_of_the_process_closes_the_connections() -> None:
    agent = spec(provider="openai_compat", model="m1", options={"base_url": "http://c/v1"})
    server = http_model(agent).server
    session = server.session(server.config)
    await close_providers()
    assert session.client.closed
    await close_providers()


def test_an_agent_without_a_model_is_refused() -> None:
    with pytest.raises(UPPError, match="has no model") as caught:
        build_model(spec(provider="openai_compat"))
    assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_a_request_overrides_the_agents_parameters() -> None:
    agent = spec(options={"params": {"temperature": 1, "top_p": 0.5}})
    overrides = {"temperature": 0, "max_tokens": 7, "model": "x", "other": 1}
    assert vendor_params(agent, overrides) == {"temperature": 0, "top_p": 0.5, "max_tokens": 7}
    assert vendor_params(agent, {"temperature": None}) == {"temperature": 1, "top_p": 0.5}
    assert agent.options == {"params": {"temperature": 1, "top_p": 0.5}}


def test_googles_parameters_have_googles_names() -> None:
    params = {"safetySettings": [], "generationConfig": {"topP": 0.5, "temperature": 1}}
    agent = spec(provider="google", options={"params": params})
    assert vendor_params(agent, {"temperature": 0, "max_tokens": 7}) == {
        "safetySettings": [],
        "generationConfig": {"topP": 0.5, "temperature": 0, "maxOutputTokens": 7},
    }
    assert vendor_params(agent, {}) == params
    assert vendor_params(spec(provider="google"), {}) == {}


def test_an_effort_of_reasoning_is_what_the_model_may_think_with() -> None:
    configured = {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "high"}}
    agent = spec(provider="google", options={"params": {"generationConfig": configured}})
    thinking = {"includeThoughts": True, "thinkingBudget": 2048}
    effort = {"reasoning_effort": "low"}
    assert vendor_params(agent, effort) == {"generationConfig": {"thinkingConfig": thinking}}
    assert vendor_params(spec(provider="anthropic"), {**effort, "max_tokens": 1500}) == {
        "max_tokens": 1500,
        "thinking": {"type": "enabled", "budget_tokens": 1499},
    }


@pytest.mark.parametrize(
    ("provider", "params", "request_params", "expected"),
    [
        ("openai_compat", {}, {}, {"max_tokens": 100}),
        ("openai_compat", {"max_tokens": 50}, {}, {"max_tokens": 50}),
        ("openai_compat", {"max_tokens": 50}, {"max_tokens": 70}, {"max_tokens": 70}),
        ("openai_compat", {"max_tokens": 500}, {"max_tokens": 700}, {"max_tokens": 100}),
        (
            "openai_compat",
            {"max_completion_tokens": 500},
            {},
            {"max_completion_tokens": 100},
        ),
        (
            "openai_compat",
            {"max_completion_tokens": 500},
            {"max_tokens": 70},
            {"max_completion_tokens": 70},
        ),
        ("anthropic", {}, {"max_tokens": 500}, {"max_tokens": 100}),
        (
            "google",
            {"generationConfig": {"maxOutputTokens": 500, "topP": 0.5}},
            {},
            {"generationConfig": {"maxOutputTokens": 100, "topP": 0.5}},
        ),
    ],
)
def test_no_request_asks_for_more_tokens_than_the_agent_may_write(
    provider: str, params: dict[str, Any], request_params: dict[str, Any], expected: dict[str, Any]
) -> None:
    agent = spec(provider=provider, options={"params": params}, max_output_tokens=100)
    assert vendor_params(agent, request_params) == expected


def test_a_request_is_limited_under_the_name_of_the_agents_parameters() -> None:
    agent = spec(provider="openai_compat", options={"params": {"max_completion_tokens": 100}})
    assert vendor_params(agent, {}) == {"max_completion_tokens": 100}
    assert vendor_params(agent, {"max_tokens": 50}) == {"max_completion_tokens": 50}
    extension = {"extensions": {"openai": {"max_tokens": 40}}}
    assert vendor_params(agent, extension) == {"max_completion_tokens": 40}
    both = {"params": {"max_completion_tokens": 100, "max_tokens": 200}}
    assert vendor_params(spec(provider="openai_compat", options=both), {}) == {
        "max_completion_tokens": 100
    }


@pytest.mark.parametrize(
    ("params", "bounded"),
    [
        ({}, {}),
        ({"max_tokens": 100, "temperature": 1}, {"max_tokens": 7, "temperature": 1}),
        ({"max_tokens": 5}, {"max_tokens": 5}),
        ({"max_completion_tokens": 100}, {"max_completion_tokens": 7}),
        (
            {"generationConfig": {"maxOutputTokens": 100, "topP": 0.5}},
            {"generationConfig": {"maxOutputTokens": 7, "topP": 0.5}},
        ),
        ({"generationConfig": {"topP": 0.5}}, {"generationConfig": {"topP": 0.5}}),
        (
            {"max_tokens": 100, "thinking": {"type": "enabled", "budget_tokens": 50}},
            {"max_tokens": 51, "thinking": {"type": "enabled", "budget_tokens": 50}},
        ),
    ],
)
def test_parameters_are_bounded_under_each_vendors_name(
    params: dict[str, Any], bounded: dict[str, Any]
) -> None:
    before = json.dumps(params)
    assert with_token_limit(params, 7) == bounded
    assert json.dumps(params) == before


@pytest.mark.parametrize(
    "options", [{"timeout": "x"}, {"models": 7}, {"params": []}, {"base_url": 7}, {"delay": None}]
)
def test_options_that_were_written_past_the_form_are_refused(options: dict[str, Any]) -> None:
    provider = "scripted" if "delay" in options else "openai_compat"
    agent = spec(provider=provider, model="m1", name="echo", options=options)
    with pytest.raises(UPPError, match="its options are wrong") as refused:
        build_model(agent)
    assert refused.value.code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("variable", ["SECRET_KEY", "DATABASE_URL", "_API_KEY", "my_api_key", 7])
def test_a_secret_of_the_server_is_never_sent_as_a_providers_key(
    variable: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor of agents chooses the address, too."""
    monkeypatch.setenv(str(variable), "secret")
    agent = spec(provider="openai_compat", model="m1", options={"api_key_env": variable})
    with pytest.raises(UPPError, match="not the name of a key"):
        build_model(agent)


@pytest.mark.parametrize(
    ("provider", "extensions", "expected"),
    [
        ("anthropic", {"thinking": True}, {"thinking": {"type": "enabled", "budget_tokens": 4096}}),
        ("anthropic", {"thinking": False}, {"thinking": {"type": "disabled"}}),
        (
            "anthropic",
            {"thinking": True, "max_tokens": 2000},
            {"thinking": {"type": "enabled", "budget_tokens": 1999}, "max_tokens": 2000},
        ),
        ("anthropic", {"thinking": True, "max_tokens": 500}, {"max_tokens": 500}),
        (
            "anthropic",
            {"thinking": {"type": "adaptive"}, "max_tokens": 500},
            {"thinking": {"type": "adaptive"}, "max_tokens": 500},
        ),
        ("google", {"topK": 5, "seed": 1}, {"generationConfig": {"topK": 5, "seed": 1}}),
        ("google", {"model": "x"}, {}),
        ("openai_compat", {"top_p": 0, "user": "eve"}, {"top_p": 0}),
        ("openai_compat", {"top_p": "kept before it had bounds"}, {}),
    ],
)
def test_options_by_vendor_have_the_vendors_names(
    provider: str, extensions: dict[str, Any], expected: dict[str, Any]
) -> None:
    vendor = {"openai_compat": "openai"}.get(provider, provider)
    request_params = {"extensions": {vendor: extensions, "other": {"top_p": 1}}}
    assert vendor_params(spec(provider=provider), request_params) == expected
