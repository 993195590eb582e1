"""The `params` of an agent's row: members of each request, under the vendor's own names.

A member that this server reads, or that has one form for all models of a vendor, is checked.
Others are passed on unchanged.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from uamp.events import ResponseConfig

_Tokens: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
_Object: TypeAlias = dict[str, Any]
_Choice: TypeAlias = str | _Object


class _GoogleThinking(msgspec.Struct, rename="camel"):
    thinking_budget: int | None = None
    thinking_level: str | None = None
    include_thoughts: bool | None = None


class _GenerationConfig(msgspec.Struct, rename="camel"):
    max_output_tokens: _Tokens | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: float | None = None
    seed: int | None = None
    stop_sequences: list[str] | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    response_mime_type: str | None = None
    thinking_config: _GoogleThinking | None = None


class _AnthropicThinking(msgspec.Struct):
    type: str | None = None
    budget_tokens: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] | None = None


class _Sampling(msgspec.Struct):
    temperature: float | None = None
    max_tokens: _Tokens | None = None
    tool_choice: _Choice | None = None


class _OpenAIParams(_Sampling):
    max_completion_tokens: _Tokens | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    logit_bias: dict[str, float] | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    response_format: _Object | None = None
    stream_options: _Object | None = None
    tools: list[_Object] | None = None


class _AnthropicParams(msgspec.Struct):
    temperature: float | None = None
    max_tokens: _Tokens | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop_sequences: list[str] | None = None
    system: str | list[_Object] | None = None
    thinking: _AnthropicThinking | None = None
    tool_choice: _Object | None = None
    tools: list[_Object] | None = None


class _GoogleParams(msgspec.Struct, rename="camel"):
    generation_config: _GenerationConfig | None = None
    safety_settings: list[_Object] | None = None
    system_instruction: _Object | None = None
    tool_config: _Object | None = None
    tools: list[_Object] | None = None


class _RealtimeParams(_Sampling):
    speech: _Object | None = None
    transcription: _Object | None = None


class _ResponsesParams(_Sampling):
    top_p: float | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: str | None = None


_DIALECTS: Final[Mapping[str, type[msgspec.Struct]]] = {
    "openai_compat": _OpenAIParams,
    "anthropic": _AnthropicParams,
    "google": _GoogleParams,
    "openai_realtime": _RealtimeParams,
    "remote_completions": _OpenAIParams,
    "remote_responses": _ResponsesParams,
    "remote_uamp": ResponseConfig,
    "remote_uamp_http": ResponseConfig,
}
# The members that have a form of their own, by their names in JSON.
_NESTED: Final[Mapping[type[msgspec.Struct], Mapping[str, type[msgspec.Struct]]]] = {
    _GoogleParams: {"generationConfig": _GenerationConfig},
    _GenerationConfig: {"thinkingConfig": _GoogleThinking},
    _AnthropicParams: {"thinking": _AnthropicThinking},
}


def row_params(provider: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `params` of a row without nulls, which mean the same as an absent member.

    Returns {} for params that `problem_of_params` refuses: such an agent does not answer.
    """
    params = options.get("params", {})
    if problem_of_params(provider, params) is not None:
        return {}
    return _without_nulls(params, _DIALECTS.get(provider))


def problem_of_params(provider: str, params: Any) -> str | None:
    """Return what is wrong with the `params` of a row, or None; known members may be null.

    `provider` is that of an AgentSpec: for remote agents it names their protocol.
    """
    if not isinstance(params, dict):
        return "Expected `object` - at `$.params`"
    kind = _DIALECTS.get(provider)
    if kind is None:
        return None
    try:
        msgspec.convert(_without_nulls(params, kind), kind)
    except msgspec.ValidationError as error:
        # A null is left out, and no new row has one: see `null_in_params`.
        return str(error).replace(" | null`", "`", 1).replace("`$", "`$.params", 1)
    return None


def null_in_params(provider: str, params: Mapping[str, Any]) -> str | None:
    """Return the path of the first known member that is null, or None."""
    kind = _DIALECTS.get(provider)
    return None if kind is None else next(_nulls(params, kind), None)


def _nulls(value: Mapping[str, Any], kind: type[msgspec.Struct]) -> Iterator[str]:
    for field in msgspec.structs.fields(kind):
        name = field.encode_name
        if name in value and value[name] is None:
            yield name
        nested = _NESTED.get(kind, {}).get(name)
        if nested is not None and isinstance(value.get(name), dict):
            yield from (f"{name}.{path}" for path in _nulls(value[name], nested))


def _without_nulls(value: Mapping[str, Any], kind: type[msgspec.Struct] | None) -> dict[str, Any]:
    """Return an object without the known members that are null."""
    if kind is None:
        return dict(value)
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    nested = _NESTED.get(kind, {})
    return {
        name: _without_nulls(member, nested[name])
        if name in nested and isinstance(member, dict)
        else member
        for name, member in value.items()
        if member is not None or name not in known
    }
