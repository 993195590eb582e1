"""The options of a request that are sent to a remote agent, by protocol (docs/agents.md)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from agents_app.providers.row_params import row_params
from agents_app.selectors import AgentSpec
from uamp.types.generation import GenerationOptions

_OPTIONS: Final = frozenset(GenerationOptions.__struct_fields__)
_KNOWN: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "uamp": _OPTIONS,
        "uamp_http": _OPTIONS,
        "responses": frozenset(
            {
                "max_tokens",
                "parallel_tool_calls",
                "reasoning_effort",
                "temperature",
                "tool_choice",
                "top_p",
            }
        ),
    }
)


def unknown_options(spec: AgentSpec, options: Mapping[str, Any]) -> list[str]:
    """Return those of these options that are not sent to a remote agent, sorted by name."""
    option_names = _KNOWN.get(spec.protocol, frozenset())
    return sorted(
        name
        for name, value in options.items()
        if name not in option_names and (name, value) != ("parallel_tool_calls", True)
    )


def params_of(spec: AgentSpec, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request's options: those of the row, overridden by the client's.

    The token limit never exceeds that of the agent.
    """
    option_names = _KNOWN.get(spec.protocol, frozenset())
    params = row_params(spec.provider, spec.options)
    params |= {n: v for n, v in overrides.items() if n in option_names and v is not None}
    if spec.max_output_tokens is not None and "max_tokens" in option_names:
        limits = (params.get("max_tokens"), spec.max_output_tokens)
        params["max_tokens"] = min(limit for limit in limits if limit is not None)
    return params
