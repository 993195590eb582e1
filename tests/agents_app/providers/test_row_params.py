"""The `params` that an owner writes: refused when they are saved, and harmless in the run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest

from agents_app.providers.clients import build_model, vendor_params, with_token_limit
from agents_app.providers.options import problem_of, problem_of_new
from agents_app.providers.output_limits import enforced_limit, output_bound, with_reserved_limit
from agents_app.providers.row_params import _DIALECTS, row_params
from agents_app.remote.models import remote_model
from agents_app.remote.parameters import params_of
from agents_app.remote.protocols.uamp_requests import response_create
from agents_app.runtime.prompt_texts import first_texts
from agents_app.runtime.run_request import RunRequest
from agents_app.runtime.tool_choice import refused_options
from agents_app.selectors import AgentSpec
from upp import ErrorCode, LLMRequest, Model, UPPError, UserMessage
from upp.providers import anthropic_request, google_request, openai_request
from upp.providers.realtime.request import events_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_django import Settings

HOSTED: Final = ("openai_compat", "anthropic", "google", "openai_realtime")
REQUESTED: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"max_tokens": 20, "reasoning_effort": "low", "temperature": 0.5},
    {"extensions": {"anthropic": {"thinking": True}, "google": {"topK": 5}}},
    {"speech": {"format": "pcm16"}},
)
REFUSED: Final[list[tuple[str, Any, str]]] = [
    # Lists and texts for objects.
    ("google", [], "params"),
    ("google", None, "params"),
    ("google", {"generationConfig": []}, "params.generationConfig"),
    ("google", {"generationConfig": "short"}, "params.generationConfig"),
    ("google", {"generationConfig": {"thinkingConfig": []}}, "generationConfig.thinkingConfig"),
    ("google", {"toolConfig": ["ANY"]}, "params.toolConfig"),
    ("google", {"tools": {"googleSearch": {}}}, "params.tools"),
    ("google", {"tools": ["googleSearch"]}, "params.tools[0]"),
    ("google", {"safetySettings": {}}, "params.safetySettings"),
    ("google", {"systemInstruction": "Be short."}, "params.systemInstruction"),
    ("anthropic", {"thinking": True}, "params.thinking"),
    ("anthropic", {"thinking": ["enabled"]}, "params.thinking"),
    ("anthropic", {"tools": {"type": "web_search"}}, "params.tools"),
    ("anthropic", {"tool_choice": "any"}, "params.tool_choice"),
    ("anthropic", {"system": {"text": "Be short."}}, "params.system"),
    ("openai_compat", {"stream_options": [1]}, "params.stream_options"),
    ("openai_compat", {"response_format": "json"}, "params.response_format"),
    ("openai_compat", {"tools": 5}, "params.tools"),
    ("openai_compat", {"tool_choice": []}, "params.tool_choice"),
    ("openai_compat", {"logit_bias": [1]}, "params.logit_bias"),
    ("openai_realtime", {"speech": "alloy"}, "params.speech"),
    # Texts for numbers, numbers for texts, and numbers out of bounds.
    ("google", {"generationConfig": {"maxOutputTokens": "9"}}, "maxOutputTokens"),
    ("google", {"generationConfig": {"maxOutputTokens": 0}}, "maxOutputTokens"),
    ("google", {"generationConfig": {"stopSequences": "end"}}, "stopSequences"),
    (
        "google",
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": "low"}}},
        "thinkingConfig.thinkingBudget",
    ),
    ("anthropic", {"thinking": {"type": "enabled", "budget_tokens": "9"}}, "budget_tokens"),
    ("anthropic", {"thinking": {"type": 1}}, "params.thinking.type"),
    ("anthropic", {"stop_sequences": "end"}, "params.stop_sequences"),
    ("openai_compat", {"max_tokens": "9"}, "params.max_tokens"),
    ("openai_compat", {"max_tokens": 1.5}, "params.max_tokens"),
    ("openai_compat", {"max_completion_tokens": -1}, "params.max_completion_tokens"),
    ("openai_compat", {"temperature": "0.2"}, "params.temperature"),
    ("openai_compat", {"temperature": True}, "params.temperature"),
    ("openai_compat", {"stop": 5}, "params.stop"),
    ("openai_compat", {"reasoning_effort": 3}, "params.reasoning_effort"),
    ("openai_realtime", {"max_tokens": "inf"}, "params.max_tokens"),
    # Remote agents, by protocol.
    ("remote_completions", {"stream_options": [1]}, "params.stream_options"),
    ("remote_responses", {"max_tokens": {}}, "params.max_tokens"),
    ("remote_uamp", {"temperature": "hot"}, "params.temperature"),
    ("remote_uamp_http", {"messages": {}}, "params.messages"),
    ("remote_uamp", {"stop": 5}, "params.stop"),
    ("remote_a2a", ["x"], "params"),
]
NULLS: Final[list[tuple[str, dict[str, Any], str]]] = [
    ("google", {"generationConfig": None}, "generationConfig"),
    ("google", {"toolConfig": None}, "toolConfig"),
    ("google", {"tools": None}, "tools"),
    ("google", {"generationConfig": {"maxOutputTokens": None}}, "generationConfig.maxOutputTokens"),
    (
        "google",
        {"generationConfig": {"thinkingConfig": None}},
        "generationConfig.thinkingConfig",
    ),
    (
        "google",
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": None}}},
        "generationConfig.thinkingConfig.thinkingBudget",
    ),
    ("anthropic", {"thinking": None}, "thinking"),
    ("anthropic", {"thinking": {"type": "enabled", "budget_tokens": None}}, "budget_tokens"),
    ("anthropic", {"max_tokens": None}, "max_tokens"),
    ("anthropic", {"system": None}, "system"),
    ("openai_compat", {"max_tokens": None}, "max_tokens"),
    ("openai_compat", {"max_completion_tokens": None}, "max_completion_tokens"),
    ("openai_compat", {"response_format": None}, "response_format"),
    ("openai_compat", {"stream_options": None}, "stream_options"),
    ("openai_compat", {"tools": None}, "tools"),
    ("openai_realtime", {"max_tokens": None}, "max_tokens"),
    ("remote_uamp", {"max_tokens": None}, "max_tokens"),
    ("remote_responses", {"tool_choice": None}, "tool_choice"),
]


def spec_of(provider: str, params: Any, **more: Any) -> AgentSpec:
    """Return an agent with these `params`, as a run reads it."""
    kind, _, protocol = provider.partition("_")
    if kind == "remote":
        more |= {"kind": "remote", "protocol": protocol}
        provider = "openai_compat" if protocol == "completions" else provider
    return AgentSpec(
        id="a", name="far", provider=provider, model="m", options={"params": params}, **more
    )


def body_of(provider: str, params: Mapping[str, Any]) -> Any:
    """Return what a vendor is sent."""
    request = LLMRequest(
        messages=(UserMessage(content="hi"),), params=params, structure={"type": "object"}
    )
    match provider:
        case "anthropic":
            return anthropic_request.request_body("m", request, provider=provider)
        case "google":
            return google_request.request_body(request, provider=provider)
        case "openai_realtime":
            return list(events_of(request, provider=provider))
        case _:
            return openai_request.request_body("m", request, provider=provider)


def run(agent: AgentSpec, requested: dict[str, Any]) -> Any:
    """Do with an agent's parameters what a run does, and return what its vendor is sent."""
    request = RunRequest(response_id="r", history=(), params=requested)
    list(first_texts(agent, request))
    refused_options(agent, request)
    output_bound(agent, requested, visible=512, hidden=4_096)
    enforced_limit(agent, requested)
    params = with_reserved_limit(agent, vendor_params(agent, requested))
    return body_of(agent.provider, with_token_limit(params, 7))


def model_of(agent: AgentSpec) -> Model:
    """Return the model of an agent for one run."""
    if agent.kind == "remote":
        return remote_model(agent, response_id="r", servers=0, give=_unused)
    return build_model(agent)


async def _unused(_event: object) -> None:
    raise AssertionError


def nulls_in(value: Any) -> Iterator[Any]:
    """Yield each null in a value, also within objects and lists."""
    if isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from nulls_in(member)
    elif value is None:
        yield value


@pytest.mark.parametrize(("provider", "params", "path"), REFUSED)
def test_params_of_the_wrong_form_are_refused_and_never_reach_a_vendor(
    provider: str, params: Any, path: str, settings: Settings
) -> None:
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:*"]
    problem = problem_of_new(provider, {"params": params})
    assert problem is not None
    assert f"{path}`" in problem
    assert "null`, got" not in problem
    # The row was written without the form.
    agent = spec_of(provider, params, url="http://127.0.0.1:9/")
    with pytest.raises(UPPError, match="its options are wrong") as refused:
        model_of(agent)
    assert refused.value.code == ErrorCode.INVALID_REQUEST
    assert row_params(agent.provider, agent.options) == {}
    for requested in REQUESTED:
        if agent.kind == "remote":
            with_token_limit(params_of(agent, requested), 7)
        else:
            run(agent, requested)


@pytest.mark.parametrize(("provider", "params", "path"), NULLS)
def test_a_null_is_refused_in_the_form_and_left_out_of_requests(
    provider: str, params: dict[str, Any], path: str
) -> None:
    before = json.dumps(params)
    problem = problem_of_new(provider, {"params": params})
    assert problem is not None
    assert f"{path}` is null." in problem
    # Rows that were saved before still answer.
    assert problem_of(provider, {"params": params}) is None
    agent = spec_of(provider, params)
    for requested in REQUESTED:
        if agent.kind == "remote":
            sent: Any = with_token_limit(params_of(agent, requested), 7)
        else:
            sent = run(agent, requested)
        assert not list(nulls_in(sent)) or provider == "openai_realtime"
    assert json.dumps(params) == before


@pytest.mark.parametrize("provider", HOSTED)
def test_no_value_of_a_known_member_breaks_a_run(provider: str) -> None:
    """A value either has a problem, or a request can be made of it."""
    values: list[Any] = [None, True, -1, 0, 1, 1.5, 10**30, "", "x", [], [None], [{}], [[]], {}]
    values += [{"type": None}, {"maxOutputTokens": []}, {"thinkingConfig": {"thinkingBudget": {}}}]
    names = [field.encode_name for field in msgspec.structs.fields(_DIALECTS[provider])]
    for name in names:
        for value in values:
            agent = spec_of(provider, {name: value}, max_output_tokens=100)
            for requested in REQUESTED:
                msgspec.json.encode(run(agent, requested))


@pytest.mark.parametrize("protocol", ["completions", "responses", "uamp", "uamp_http", "a2a"])
def test_no_params_break_a_request_to_a_remote_agent(protocol: str) -> None:
    for params in (
        {"generationConfig": None, "thinking": {"budget_tokens": None}, "max_tokens": None},
        {"generationConfig": [], "thinking": {"budget_tokens": "x"}, "max_tokens": "x"},
        {"generationConfig": {"maxOutputTokens": None}, "max_completion_tokens": []},
        {"temperature": "hot", "messages": 5, "stream_options": [1]},
    ):
        agent = spec_of(f"remote_{protocol}", params, max_output_tokens=100)
        sent = params_of(agent, {})
        bounded = with_token_limit(sent, 7)
        if protocol.startswith("uamp"):
            response_create(LLMRequest(messages=(UserMessage(content="hi"),), params=bounded))


def test_members_without_a_known_form_are_passed_on_unchanged() -> None:
    params = {
        "extra_body": {"top_k": None},
        "service_tier": None,
        "thinking": True,
        "temperature": 1,
        "tools": [{"type": "web_search", "filters": None}],
    }
    assert problem_of_new("openai_compat", {"params": params}) is None
    assert row_params("openai_compat", {"params": params}) == params
