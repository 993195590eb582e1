"""The contract of server tools, and the table of the tools on this server.

A tool is a plain function of its arguments and a ToolContext. It knows neither the process it runs
in nor where contents are stored, and reports failures in words for people. Arguments come from a
model: a function wrapped by `tool` only sees arguments that match its annotations.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Protocol, get_type_hints, overload

import msgspec
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from uamp.types.content import ContentItem


class ToolError(Exception):
    """A tool cannot do its job; the message says what to do, and users may read it.

    `cause` is its kind for operators, who may not read the message.
    """

    def __init__(self, *words: str, cause: str = "reported an error") -> None:
        super().__init__(*words)
        self.cause = cause


class ToolCancelled(Exception):
    """The call was cancelled or taken over by another process: stop and write nothing."""


@dataclass(frozen=True, kw_only=True)
class ToolOutcome:
    """The result of a tool: text for the model and for people, and media.

    `result` is plain text, serialised as JSON on the wire (UAMP §8.4.2); the result of a client's
    tool is the client's own JSON text. `is_presented` results are shown in the answer itself. A
    call that `is_refused` was not approved by a person and did not run. `cause` names the kind
    of a failure; it never quotes a person or a tool.
    """

    result: str
    is_error: bool = False
    content_items: tuple[ContentItem, ...] = ()
    is_presented: bool = False
    is_refused: bool = False
    cause: str = ""


@dataclass(frozen=True, kw_only=True)
class ReadContent:
    """A stored content and its data."""

    data: bytes
    mime_type: str
    filename: str


@dataclass(frozen=True, kw_only=True)
class FoundMessage:
    """A message of the chat found by a search; `name` is the sender's."""

    at: datetime
    role: str
    name: str
    text: str


class ToolContext(Protocol):
    """The context of a running tool."""

    call_id: str

    def progress(
        self,
        *,
        percent: float | None = None,
        step: int | None = None,
        total_steps: int | None = None,
        stage: str | None = None,
        message: str | None = None,
    ) -> None:
        """Report progress (UAMP §6.12); `percent` is 0-100.

        Raises ToolCancelled if the call was cancelled or another process took it over.
        """

    def read_content(self, content_id: str) -> ReadContent:
        """Return a stored content; raises ToolError if it does not exist or may not be read."""

    def write_content(self, data: bytes, *, mime_type: str, filename: str) -> ContentItem:
        """Store a content for the chat and return an item that shows it; raises ToolCancelled."""

    def search_messages(self, words: Sequence[str], *, limit: int) -> Sequence[FoundMessage]:
        """Return messages of this chat that contain all of the words, newest first.

        Case is ignored. The message that is being answered is left out.
        """


@dataclass(frozen=True, kw_only=True)
class ServerTool:
    """A tool of this server; `parameters` is a JSON Schema object.

    `run` is called in a thread. A long-running tool gets a worker process, reports its progress to
    the chat, and survives the process that called it. A short one runs where the agent runs and
    cannot read or write contents.

    A process may die while it runs a tool. An idempotent tool is then run again; any other is not,
    and its call ends as "outcome unknown". This needs a row, so a tool that must not run twice has
    to be a long one.

    A long tool that runs `in_worker` gets no process of its own: its work is done elsewhere, and it
    stops when a method of its context raises.

    A tool that `needs_approval` waits until a person in the chat allows the call. The wait is a
    row, so only long-running tools can have it.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[ToolContext, dict[str, Any]], ToolOutcome]
    long_running: bool = True
    idempotent: bool = True
    needs_approval: bool = False
    in_worker: bool = False

    def __post_init__(self) -> None:
        if self.needs_approval and not self.long_running:
            raise TypeError(f"The tool {self.name} needs approval, so it has to be a long tool.")
        if not self.idempotent and not self.long_running:
            raise TypeError(
                f"The tool {self.name} must not run twice, so it has to be a long tool."
            )


# --- Tools made of functions ---


@overload
def tool(function: Callable[..., Any], /) -> ServerTool: ...


@overload
def tool(
    *,
    name: str | None = None,
    long_running: bool = True,
    idempotent: bool = True,
    needs_approval: bool = False,
) -> Callable[[Callable[..., Any]], ServerTool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    long_running: bool = True,
    idempotent: bool = True,
    needs_approval: bool = False,
) -> ServerTool | Callable[[Callable[..., Any]], ServerTool]:
    """Turn a function into a ServerTool, with a schema from its annotations.

    The first line of the docstring is the description. A first parameter annotated `ToolContext`
    receives the context; all others are arguments, which `Annotated[..., msgspec.Meta(...)]`
    describes and bounds. Invalid arguments are answered with an error that names the problem,
    without calling the function. The function returns text, a ToolOutcome, or a value to encode as
    JSON.

    Raises TypeError if no schema can be made from the function.
    """

    def make(function: Callable[..., Any]) -> ServerTool:
        return _made(
            function,
            name or function.__name__,
            long_running=long_running,
            idempotent=idempotent,
            needs_approval=needs_approval,
        )

    return make if function is None else make(function)


def _made(
    function: Callable[..., Any],
    name: str,
    *,
    long_running: bool,
    idempotent: bool,
    needs_approval: bool,
) -> ServerTool:
    description = (inspect.getdoc(function) or "").partition("\n")[0]
    if not description:
        raise TypeError(f"The tool {name} needs a docstring: models read it.")
    hints = get_type_hints(function, include_extras=True)
    parameters = list(inspect.signature(function).parameters.values())
    takes_context = bool(parameters) and hints.get(parameters[0].name) is ToolContext
    expected = _arguments_type(name, parameters[takes_context:], hints)

    def run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
        try:
            call_arguments = msgspec.convert(arguments, expected)
        except msgspec.ValidationError as error:
            return ToolOutcome(
                result=f"{name} was not run. {error}.", is_error=True, cause="invalid arguments"
            )
        values = {field: getattr(call_arguments, field) for field in expected.__struct_fields__}
        return _outcome(function(context, **values) if takes_context else function(**values))

    return ServerTool(
        name=name,
        description=description,
        parameters=schema_of(expected),
        run=run,
        long_running=long_running,
        idempotent=idempotent,
        needs_approval=needs_approval,
    )


def _arguments_type(
    name: str, parameters: Sequence[inspect.Parameter], hints: Mapping[str, Any]
) -> type[msgspec.Struct]:
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in parameters:
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise TypeError(f"The tool {name} can take arguments by name only: {parameter}.")
        if parameter.name not in hints:
            raise TypeError(f"The tool {name} has to annotate its parameter {parameter.name}.")
        field = (parameter.name, hints[parameter.name])
        fields.append(
            field if parameter.default is parameter.empty else (*field, parameter.default)
        )
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)


def schema_of(expected: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments, with references in its own `$defs`."""
    _, parts = msgspec.json.schema_components([expected], ref_template="#/$defs/{name}")
    schema = {key: value for key, value in parts.pop(expected.__name__).items() if key != "title"}
    return {**schema, "$defs": parts} if parts else schema


def _outcome(value: Any) -> ToolOutcome:
    if isinstance(value, ToolOutcome):
        return value
    # A value that cannot be encoded raises TypeError: the tool is broken, and its caller says so.
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return ToolOutcome(result=text)


# --- The table ---


def server_tools() -> Mapping[str, ServerTool]:
    """Return the tools named in `settings.UAMP_SERVER_TOOLS`, by name.

    Raises ImproperlyConfigured for a path that is not a ServerTool, and for duplicate names.
    """
    return _load(tuple(settings.UAMP_SERVER_TOOLS))


@lru_cache(maxsize=8)
def _load(paths: tuple[str, ...]) -> Mapping[str, ServerTool]:
    tools: dict[str, ServerTool] = {}
    for path in paths:
        try:
            tool = import_string(path)
        except ImportError as error:
            raise ImproperlyConfigured(f"UAMP_SERVER_TOOLS: {error}") from error
        if not isinstance(tool, ServerTool):
            raise ImproperlyConfigured(f"UAMP_SERVER_TOOLS: {path} is not a ServerTool.")
        if tool.name in tools:
            raise ImproperlyConfigured(f"UAMP_SERVER_TOOLS: two tools are named {tool.name}.")
        tools[tool.name] = tool
    return MappingProxyType(tools)
