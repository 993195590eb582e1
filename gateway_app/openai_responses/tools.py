"""The tools of a request to OpenAI's Responses API: those that the client runs.

A model calls every tool as a function. `ClientTools` remembers which functions stand for a custom
tool or for a function of a namespace, so that their calls are shown in the form of the request.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec

import uamp
from gateway_app.openai.errors import refused, unsupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_Word: TypeAlias = Annotated[str, msgspec.Meta(max_length=64)]
_ToolName: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]

# What a custom tool takes, as a function: one text.
_CUSTOM_PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}
# Tools of OpenAI that a program offers alongside its own; agents have their own counterparts.
_LEFT_OUT: Final = ("web_search", "image_generation", "tool_search")


class CustomFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The form of a custom tool's input: any text, or text that matches a grammar."""

    type: Literal["text", "grammar"] = "text"
    syntax: _Word | None = None
    definition: str | None = None


class ResponsesTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of a request; only those that the client runs are accepted."""

    type: _Word
    name: _ToolName | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    format: CustomFormat | None = None
    tools: Annotated[tuple[ResponsesTool, ...], msgspec.Meta(max_length=128)] | None = None

    @property
    def is_left_out(self) -> bool:
        """Whether the tool runs at OpenAI, but is offered by programs that do not depend on it."""
        return self.type.startswith(_LEFT_OUT)

    def required_name(self, place: str) -> str:
        """Return the name; raises RemoteProtocolError without one."""
        if self.name is None:
            raise refused(f"{place}.name", f"A tool of type {self.type} needs a name.")
        return self.name


def function_name(name: str, namespace: str | None) -> str:
    """Return the name under which a model calls a function of a namespace."""
    if not namespace:
        return name
    return f"{namespace}{name}" if namespace.endswith("__") else f"{namespace}__{name}"


def definitions(
    tools: Sequence[ResponsesTool],
) -> tuple[tuple[uamp.ToolDefinition, ...], dict[str, Any]]:
    """Return the functions that tools become, and what `ClientTools` needs about them.

    Raises RemoteProtocolError for a tool that runs at OpenAI, unless it is one of several that
    programs offer anyway, alongside tools of their own.
    """
    can_leave_out = any(not tool.is_left_out for tool in tools)
    functions: list[uamp.FunctionDefinition] = []
    tool_data: dict[str, Any] = {}
    for index, tool in enumerate(tools):
        if tool.is_left_out and can_leave_out:
            continue
        place = f"tools[{index}]"
        if tool.type == "namespace":
            for number, inner in enumerate(tool.tools or ()):
                tool.required_name(place)
                _add(inner, f"{place}.tools[{number}]", functions, tool_data, tool)
        else:
            _add(tool, place, functions, tool_data, None)
    if len(functions) > uamp.DEFAULT_LIMITS.tools:
        raise refused("tools", f"A request may have at most {uamp.DEFAULT_LIMITS.tools} tools.")
    return tuple(uamp.ToolDefinition(function=function) for function in functions), tool_data


def _add(
    tool: ResponsesTool,
    place: str,
    functions: list[uamp.FunctionDefinition],
    tool_data: dict[str, Any],
    namespace: ResponsesTool | None,
) -> None:
    if tool.type not in {"function", "custom"}:
        raise unsupported(
            f"{place}.type",
            f"Tools of type {tool.type!r} are not supported. Agents use their own tools.",
        )
    name = function_name(tool.required_name(place), namespace.name if namespace else None)
    is_custom = tool.type == "custom"
    functions.append(
        uamp.FunctionDefinition(
            name=name,
            description=_custom_description(tool) if is_custom else tool.description,
            parameters=_CUSTOM_PARAMETERS if is_custom else tool.parameters,
            strict=None if is_custom else tool.strict,
        )
    )
    if is_custom or namespace is not None:
        around = (
            _KeptNamespace(name=namespace.name or "", description=namespace.description)
            if namespace
            else None
        )
        tool_kept = _KeptTool(
            name=tool.name,
            namespace=around,
            description=tool.description if is_custom else None,
            format=tool.format or CustomFormat() if is_custom else None,
        )
        tool_data[name] = msgspec.to_builtins(tool_kept)


def _custom_description(tool: ResponsesTool) -> str | None:
    """Return the description of a custom tool for models, which do not know of grammars."""
    form = tool.format
    if form is None or form.type == "text":
        return tool.description
    grammar = f"`input` has to match this grammar ({form.syntax}):\n{form.definition}"
    return f"{tool.description}\n\n{grammar}" if tool.description else grammar


class _KeptNamespace(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    description: str | None = None


class _KeptTool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The details of a tool that its function cannot express; a custom tool has a format."""

    name: str | None = None
    namespace: _KeptNamespace | None = None
    description: str | None = None
    format: CustomFormat | None = None


_FUNCTION: Final = _KeptTool()


class ClientTools:
    """The tools of a request, as its answer shows them; made of what `definitions` returned."""

    def __init__(self, tool_data: Any = None) -> None:
        try:
            self._stored = msgspec.convert(tool_data or {}, dict[str, _KeptTool])
        except msgspec.ValidationError:
            # Clients can write the extensions of their sessions; all tools are functions then.
            self._stored = {}

    def as_declared(self, functions: Iterable[uamp.FunctionDefinition]) -> list[dict[str, Any]]:
        """Return the tools as the request had them; those of a namespace are together."""
        tools: list[dict[str, Any]] = []
        namespaces: dict[str, list[dict[str, Any]]] = {}
        for function in functions:
            stored = self._stored.get(function.name, _FUNCTION)
            tool = _shown_tool(function, stored)
            around = stored.namespace
            if around is None:
                tools.append(tool)
            elif around.name in namespaces:
                namespaces[around.name].append(tool)
            else:
                inner = namespaces[around.name] = [tool]
                tools.append(
                    {
                        "type": "namespace",
                        "name": around.name,
                        "description": around.description,
                        "tools": inner,
                    }
                )
        return tools

    def choice(self, name: str) -> dict[str, Any]:
        """Return the choice of one tool as the request had it."""
        stored = self._stored.get(name, _FUNCTION)
        chosen = {"type": "custom" if stored.format else "function", "name": stored.name or name}
        return {**chosen, "namespace": stored.namespace.name} if stored.namespace else chosen

    def is_custom(self, call: uamp.ToolCallData) -> bool:
        """Whether a call is one of a custom tool."""
        return self._stored.get(call.name, _FUNCTION).format is not None

    def called(
        self, item_id: str, call: uamp.ToolCallData, status: str = "completed"
    ) -> dict[str, Any]:
        """Return the item of a call."""
        stored = self._stored.get(call.name, _FUNCTION)
        item = {"id": item_id, "type": "function_call", "status": status, "call_id": call.id}
        item["name"] = stored.name or call.name
        if stored.namespace is not None:
            item["namespace"] = stored.namespace.name
        if stored.format is not None:
            return {**item, "type": "custom_tool_call", "input": custom_input(call.arguments)}
        return {**item, "arguments": call.arguments}


def _shown_tool(function: uamp.FunctionDefinition, stored: _KeptTool) -> dict[str, Any]:
    name = stored.name or function.name
    if stored.format is not None:
        members = msgspec.to_builtins(stored.format)
        form = {member: value for member, value in members.items() if value is not None}
        return {"type": "custom", "name": name, "description": stored.description, "format": form}
    return {
        "type": "function",
        "name": name,
        "description": function.description,
        "parameters": function.parameters,
        "strict": function.strict,
    }


def custom_input(arguments: str) -> str:
    """Return the input of a custom tool from a model's arguments; all of them if malformed."""
    try:
        decoded = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    text = decoded.get("input") if isinstance(decoded, dict) else None
    return text if isinstance(text, str) else arguments


def custom_arguments(text: str) -> str:
    """Wrap a custom tool's input text as the JSON arguments of a function call."""
    return json.dumps({"input": text}, ensure_ascii=False)


def pieces(item: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the stream events between the beginning and the end of a call: their kinds and members.

    The arguments come in one piece.
    """
    if item["type"] == "custom_tool_call":
        kind, text, last = "custom_tool_call_input", item["input"], {"input": item["input"]}
    else:
        kind, text = "function_call_arguments", item["arguments"]
        last = {"name": item["name"], "arguments": text}
    yield f"response.{kind}.delta", {"delta": text}
    yield f"response.{kind}.done", last


def in_progress_item(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the item of a call whose arguments have not come yet."""
    member = "input" if item["type"] == "custom_tool_call" else "arguments"
    return {**item, "status": "in_progress", member: ""}
