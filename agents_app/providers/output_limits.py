"""The output tokens that one inference may bill, and the limit that keeps its vendor to them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.conf import settings

from agents_app.providers.clients import counts_are_trusted, vendor_params
from agents_app.providers.options import problem_of
from agents_app.selectors import AgentSpec
from upp.providers.parameters import BUDGETS


def output_bound(
    spec: AgentSpec, overrides: Mapping[str, Any], *, visible: int, hidden: int
) -> int:
    """Return the most output tokens one inference may bill, including hidden reasoning.

    A vendor's limit includes reasoning. Without a limit, the bound is `visible` tokens of text plus
    reasoning: its budget or, if it is on without one, at least `hidden` and twice what its effort
    is for vendors with budgets; `with_reserved_limit` sends that bound. The option
    `reasoning_tokens` is always added.
    """
    if problem_of(spec.provider, spec.options) is not None:
        # Such an agent cannot answer: see build_model.
        return visible
    params = vendor_params(spec, overrides)
    named = _limits(spec.provider, params)
    if spec.provider == "scripted":
        max_tokens = overrides.get("max_tokens") or spec.max_output_tokens
        named = [max_tokens] if max_tokens else []
    bound = max(named) if named else visible + _reasoning(spec.provider, params, hidden).tokens
    return bound + int(spec.options.get("reasoning_tokens") or 0)


def with_reserved_limit(spec: AgentSpec, params: dict[str, Any]) -> dict[str, Any]:
    """Return a model's parameters with the tokens that are reserved as the vendor's limit.

    Only where output has a price, and reasoning has neither a limit nor a budget: such a model
    could bill any number of hidden tokens. Visible text needs no limit, because the run
    pauses before it shows text that is not paid. A remote agent's tokens are bounded by its bytes.
    """
    if spec.kind == "remote" or spec.pricing.writes_free or _limits(spec.provider, params):
        return params
    reasoning = _reasoning(spec.provider, params, settings.UAMP_RESERVE_REASONING_TOKENS)
    if reasoning.is_budget:
        return params
    of_agent = int(spec.options.get("reasoning_tokens") or 0)
    limit = settings.UAMP_RESERVE_TOKENS + reasoning.tokens + of_agent
    if spec.provider == "google":
        config = {**params.get("generationConfig", {}), "maxOutputTokens": limit}
        return {**params, "generationConfig": config}
    name = "max_tokens" if spec.provider == "anthropic" else "max_completion_tokens"
    return {**params, name: limit}


def enforced_limit(spec: AgentSpec, overrides: Mapping[str, Any]) -> int | None:
    """Return the most output tokens one inference can bill, if its vendor is sent that limit.

    None for models whose counts are not trusted: their servers may ignore limits as well.
    """
    is_hosted = spec.kind not in {"remote", "connected"} and spec.provider != "scripted"
    if not is_hosted or problem_of(spec.provider, spec.options) is not None:
        return None
    if not counts_are_trusted(spec):
        return None
    params = with_reserved_limit(spec, vendor_params(spec, overrides))
    limits = _limits(spec.provider, params)
    if not limits or (spec.provider == "openai_realtime" and "max_tokens" not in params):
        # Realtime APIs are sent no other name.
        return None
    return max(limits) + int(spec.options.get("reasoning_tokens") or 0)


def _limits(provider: str, params: Mapping[str, Any]) -> list[int]:
    """Return the token limits in a vendor's parameters."""
    config = params.get("generationConfig", {}) if provider == "google" else {}
    limits = (
        params.get("max_tokens"),
        params.get("max_completion_tokens"),
        config.get("maxOutputTokens"),
    )
    return [limit for limit in limits if limit is not None]


class _Reasoning(NamedTuple):
    """The tokens that are expected for reasoning, and whether the vendor takes them as a budget."""

    tokens: int
    is_budget: bool = True


def _reasoning(provider: str, params: Mapping[str, Any], hidden: int) -> _Reasoning:
    """Return the number of tokens for reasoning that a model's parameters allow, if they do."""
    config = params.get("generationConfig", {}) if provider == "google" else {}
    reasoning = params.get("reasoning")
    for setting, budget in (
        (params.get("thinking"), "budget_tokens"),
        (config.get("thinkingConfig"), "thinkingBudget"),
        (reasoning, "max_tokens"),
    ):
        if not isinstance(setting, dict):
            continue
        if setting.get("type") == "disabled" or setting.get("enabled") is False:
            return _Reasoning(0)
        tokens = setting.get(budget)
        if isinstance(tokens, int) and tokens >= 0:
            return _Reasoning(tokens)
        if setting is not reasoning:
            return _Reasoning(max(hidden, 2 * BUDGETS["medium"]), is_budget=False)
    effort = params.get("reasoning_effort")
    if effort is None and isinstance(reasoning, dict):
        effort = reasoning.get("effort", "medium")
    if effort == "none" or not (effort or reasoning):
        return _Reasoning(0)
    expected = BUDGETS.get(str(effort), BUDGETS["medium"])
    return _Reasoning(max(hidden, 2 * expected), is_budget=False)
