"""Tools for models, their calls and the results (UPP-1.3 §11).

Arguments come from a model and are not checked here: tools must treat them as untrusted.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from upp.json_values.frozen import freeze


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One call made by a model.

    `malformed` holds the text of arguments that are not a JSON object; `arguments` is then empty,
    and the tool loop answers the call with an error instead of running the tool.
    """

    tool_call_id: str
    tool_name: str
    arguments: dict[str, Any]
    malformed: str | None = None

    def __post_init__(self) -> None:
        value: Any = self.arguments
        if not isinstance(value, Mapping):
            kind = type(value).__name__
            raise TypeError(f"ToolCall.arguments must be a mapping, not {kind}.")
        force_setattr(self, "arguments", freeze(value))


class ToolResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The result of a call; `result` is any JSON value, or the text of an error."""

    tool_call_id: str
    result: Any
    is_error: bool = False

    def __post_init__(self) -> None:
        force_setattr(self, "result", freeze(self.result))


class ToolExecution(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The record of one executed call; `duration` is in milliseconds.

    `approved` is None if the tool has no approval handler.
    """

    tool_name: str
    tool_call_id: str
    arguments: dict[str, Any]
    result: Any
    is_error: bool
    duration: float
    approved: bool | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "arguments", freeze(self.arguments))


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool: its JSON Schema for the model, and the function that runs it.

    `run` takes the arguments, is sync (and gets a thread) or async, and returns a value that JSON
    can represent. Its errors become error results for the model (a UPPError only with its code),
    except UPPError CANCELLED, which ends the generation. `approval` decides whether a call may run;
    its errors end the generation (UPP-1.2 §10.4). `sequential` (finish before other tools begin)
    and `depends_on` (names of tools that must finish first) order the calls of one answer for
    agents (UAP §8.3); `llm()` itself runs all calls of an answer in parallel.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Callable[[dict[str, Any]], Any]
    approval: Callable[[dict[str, Any]], Any] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    sequential: bool = False
    depends_on: Sequence[str] = ()

    def __post_init__(self) -> None:
        if isinstance(self.depends_on, str):
            raise TypeError(f"Tool.depends_on must be a sequence of names: [{self.depends_on!r}].")


@dataclass(frozen=True, kw_only=True)
class BeforeCallResult:
    """The decision of `on_before_call`; `params` replace the call's arguments."""

    proceed: bool = True
    params: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class AfterCallResult:
    """The value with which `on_after_call` replaces a tool's result."""

    result: Any


_Answer = bool | BeforeCallResult
_Change = AfterCallResult | None


@dataclass(frozen=True, kw_only=True)
class ToolUseStrategy:
    """The strategy that runs tools, and its hooks (UPP-1.3 §11.3), each sync or async.

    `max_iterations` is the maximum number of tool rounds: None means no limit, 0 returns the calls
    unexecuted. If unset, the runner of the tools decides: 10 in `llm()`, no limit in an agent (UAP
    §2.4). Errors of `on_tool_call`, `on_before_call` and `on_after_call` are returned to the model
    like a tool's error and passed to `on_error`; errors of the other two hooks end the generation.
    """

    max_iterations: int | msgspec.UnsetType | None = msgspec.UNSET
    on_tool_call: Callable[[Tool, dict[str, Any]], Awaitable[None] | None] | None = None
    on_before_call: Callable[[Tool, dict[str, Any]], Awaitable[_Answer] | _Answer] | None = None
    on_after_call: Callable[[Tool, dict[str, Any], Any], Awaitable[_Change] | _Change] | None = None
    on_error: Callable[[Tool, dict[str, Any], Exception], Awaitable[None] | None] | None = None
    on_max_iterations: Callable[[int], Awaitable[None] | None] | None = None


current_tool_call: ContextVar[ToolCall] = ContextVar("current_tool_call")
"""The call that runs in this context, so that `Tool.run` needs only one argument."""


def parse_call(call_id: str, name: str, arguments_json: str) -> ToolCall:
    """Return a call with its arguments parsed; an empty text means no arguments."""
    try:
        arguments = msgspec.json.decode(arguments_json or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        arguments = None
    if isinstance(arguments, dict):
        # A value nested too deeply is of no use to a tool either.
        with suppress(TypeError):
            return ToolCall(tool_call_id=call_id, tool_name=name, arguments=arguments)
    return ToolCall(tool_call_id=call_id, tool_name=name, arguments={}, malformed=arguments_json)
