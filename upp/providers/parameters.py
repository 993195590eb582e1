"""Inference parameters in Chat Completions terms, translated to each vendor's names.

Callers use them for models of any vendor; the result goes into `LLMRequest.params`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

_EVERYWHERE: Final = frozenset({"temperature", "max_tokens", "top_p", "stop"})
_OPENAI: Final = _EVERYWHERE | {
    "frequency_penalty",
    "logit_bias",
    "parallel_tool_calls",
    "presence_penalty",
    "reasoning_effort",
    "seed",
    "tool_choice",
    "verbosity",
}
_KNOWN: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "openai_compat": _OPENAI,
        "anthropic": _EVERYWHERE | {"parallel_tool_calls", "reasoning_effort", "tool_choice"},
        "google": _OPENAI - {"logit_bias", "parallel_tool_calls", "verbosity"},
        # The API no longer has a temperature, but every client may still send one.
        "openai_realtime": frozenset({"temperature", "max_tokens", "tool_choice"}),
    }
)
_NAMES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "anthropic": MappingProxyType({"stop": "stop_sequences"}),
        "google": MappingProxyType(
            {
                "max_tokens": "maxOutputTokens",
                "top_p": "topP",
                "stop": "stopSequences",
                "frequency_penalty": "frequencyPenalty",
                "presence_penalty": "presencePenalty",
            }
        ),
    }
)
_ABOUT_TOOLS: Final = frozenset({"tool_choice", "parallel_tool_calls"})
_NO_THOUGHT: Final[Mapping[str, Any]] = {"type": "disabled"}
_TOKEN_LIMITS: Final = ("max_tokens", "max_completion_tokens", "maxOutputTokens")
BUDGETS: Final[Mapping[str, int]] = MappingProxyType(
    {"minimal": 1024, "low": 2048, "medium": 4096, "high": 16_384, "xhigh": 32_768}
)
"""The thinking budget per effort, for vendors that count tokens."""


def unknown_parameters(provider: str, parameters: Mapping[str, Any]) -> list[str]:
    """Return those of these parameters that a vendor does not support, sorted by name.

    A provider outside this library supports none. Parallel calls are every vendor's default.
    """
    supported = _KNOWN.get(provider, frozenset())
    return sorted(
        name
        for name, value in parameters.items()
        if name not in supported and (name, value) != ("parallel_tool_calls", True)
    )


def vendor_parameters(provider: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters under a vendor's names, without those of tools and unknown ones.

    Google's belong in its `generationConfig`.
    """
    supported, names = _KNOWN.get(provider, frozenset()), _NAMES.get(provider, {})
    translated = {
        names.get(name, name): value
        for name, value in parameters.items()
        if name in supported and name not in _ABOUT_TOOLS
    }
    if provider == "openai_compat":
        return translated
    if provider == "google" and "seed" in translated:
        translated["seed"] = _int32(translated["seed"])
    stops = names.get("stop", "stop")
    if isinstance(translated.get(stops), str):
        translated[stops] = [translated[stops]]
    effort = translated.pop("reasoning_effort", None)
    return translated | ({} if effort is None else _thinking(provider, BUDGETS.get(effort, 0)))


def option_names(provider: str, own: Mapping[str, Any]) -> frozenset[str]:
    """Return the parameters that may override a model's `own`, in every request of an answer.

    Choices of tools hold for single requests. A budget of thinking has to fit the token limit, and
    Anthropic's API accepts no temperature together with one.
    """
    names = _KNOWN.get(provider, frozenset()) - _ABOUT_TOOLS
    if provider == "openai_compat":
        return names
    if provider == "anthropic" and own.get("thinking", _NO_THOUGHT) != _NO_THOUGHT:
        return names & {"stop"}
    return names - {"reasoning_effort"}


def overridden(provider: str, own: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a vendor's parameters with those `options` that are in `option_names`.

    Options that are None change nothing, and the own token limit is the most.
    """
    names = option_names(provider, own)
    kept = {name: options[name] for name in sorted(names) if options.get(name) is not None}
    params = vendor_parameters(provider, kept)
    if not params:
        return dict(own)
    if provider != "google":
        return _merged(own, params)
    config = own.get("generationConfig") or {}
    return {**own, "generationConfig": _merged(config, params)}


def _merged(own: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**own, **params}
    if "max_completion_tokens" in own and "max_tokens" in params:
        # Models that use this name refuse the other one.
        merged["max_completion_tokens"] = merged.pop("max_tokens")
    for name in _TOKEN_LIMITS:
        if own.get(name) is not None:
            merged[name] = min(own[name], merged[name])
    return merged


def _int32(seed: int) -> int:
    """Map a seed to the 32 bits that Google accepts; equal seeds stay equal."""
    return (seed + 2**31) % 2**32 - 2**31


def tool_parameters(
    provider: str, *, choice: str | Mapping[str, Any] | None, parallel: bool | None
) -> dict[str, Any]:
    """Return the parameters that control how a model calls the tools of one request.

    `choice` is none, auto, required or `{"function": {"name": …}}`; auto is every vendor's default.
    APIs reject them in a request without tools.
    """
    name = choice["function"]["name"] if isinstance(choice, Mapping) else None
    match provider:
        case "openai_compat":
            chosen = None if choice == "auto" else choice
            options = {"tool_choice": chosen, "parallel_tool_calls": parallel}
            return {key: value for key, value in options.items() if value is not None}
        case "openai_realtime" if choice is not None:
            return {"tool_choice": choice if name is None else {"type": "function", "name": name}}
        case "anthropic":
            return _anthropic_choice(choice, name, one_at_a_time=parallel is False)
        case "google" if choice not in (None, "auto"):
            config: dict[str, Any] = {"mode": "NONE" if choice == "none" else "ANY"}
            if name is not None:
                config["allowedFunctionNames"] = [name]
            return {"toolConfig": {"functionCallingConfig": config}}
    return {}


def _anthropic_choice(
    choice: str | Mapping[str, Any] | None, name: str | None, *, one_at_a_time: bool
) -> dict[str, Any]:
    if choice == "none":
        return {"tool_choice": {"type": "none"}}
    serial = {"disable_parallel_tool_use": True} if one_at_a_time else {}
    if name is not None:
        return {"tool_choice": {"type": "tool", "name": name, **serial}}
    if choice == "required":
        return {"tool_choice": {"type": "any", **serial}}
    return {"tool_choice": {"type": "auto", **serial}} if serial else {}


def _thinking(provider: str, tokens: int) -> dict[str, Any]:
    if provider == "google":
        return {"thinkingConfig": {"thinkingBudget": tokens}}
    if not tokens:
        return {"thinking": {"type": "disabled"}}
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}
