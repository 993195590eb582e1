"""Generation options for one answer, named as in Chat Completions, for every vendor.

Every number and list is bounded. Options that cost more without being part of an answer's price,
such as ``n`` and ``service_tier``, are left out.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from uamp.types.bounds import Bias, Penalty, Seed, Share, Temperature, Tokens

StopWord: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
"""A stop sequence; the answer ends before it."""

StopWords: TypeAlias = StopWord | Annotated[tuple[StopWord, ...], msgspec.Meta(max_length=16)]

ReasoningEffort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh"]

Verbosity: TypeAlias = Literal["low", "medium", "high"]

_TokenId: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,9}$")]
_Biases: TypeAlias = Annotated[dict[_TokenId, Bias], msgspec.Meta(max_length=300)]
_ToolName: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class ChosenFunction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The name of the function that a model must call."""

    name: _ToolName


class ToolChoice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The one tool that a model must call, in the shape of Chat Completions."""

    type: Literal["function"] = msgspec.field(default_factory=lambda: "function")
    function: ChosenFunction


class GenerationOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The options for generating one answer; None defers to the session, then to the agent.

    The server passes each option on under its name at the vendor of the answering model. An option
    that the vendor does not have is refused (unsupported_parameter). ``tool_choice`` binds the
    model until it has called a tool; after that it may call tools or answer.
    """

    temperature: Temperature | None = None
    max_tokens: Tokens | None = None
    top_p: Share | None = None
    stop: StopWords | None = None
    seed: Seed | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    logit_bias: _Biases | None = None
    reasoning_effort: ReasoningEffort | None = None
    verbosity: Verbosity | None = None
    tool_choice: Literal["none", "auto", "required"] | ToolChoice | None = None
    parallel_tool_calls: bool | None = None


class ModelOptions(GenerationOptions, frozen=True, kw_only=True, omit_defaults=True):
    """The model options that a session's ``extensions`` may hold (UAMP §5.1)."""

    model: str | None = None
    max_completion_tokens: Tokens | None = None
    max_output_tokens: Tokens | None = None
    client_tools: Literal["wait", "end"] | None = None
