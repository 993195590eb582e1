"""The request of Anthropic's Messages API, and the turn that it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec

import uamp
from gateway_app.anthropic.blocks import MessageParam, TextBlockParam, messages_of
from gateway_app.openai.errors import refused, unsupported
from gateway_app.openai.request import ModelName, TokenLimit, chat_inputs, token_limit
from gateway_app.types.client_turn import ClientTurn
from uamp.types.bounds import Share, Temperature
from uamp.types.generation import ReasoningEffort, StopWord

if TYPE_CHECKING:
    from gateway_app.openai.request import Refused

_Word: TypeAlias = Annotated[str, msgspec.Meta(max_length=64)]
_Name: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=1, max_length=uamp.DEFAULT_LIMITS.tool_name_chars)
]
SCHEMA_NAME: Final = "answer"


class ToolParam(msgspec.Struct, frozen=True, kw_only=True):
    """A tool; only those with the client's own schema are accepted: others run at Anthropic."""

    name: _Name
    type: _Word | None = None
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    strict: bool | None = None

    def definition(self, place: str) -> uamp.ToolDefinition:
        """Convert the tool to UAMP; raises RemoteProtocolError for Anthropic's own tools."""
        if self.type not in {None, "custom"}:
            raise unsupported(
                f"{place}.type",
                f"{self.type!r} is a tool hosted by Anthropic. Agents use their own tools.",
            )
        if self.input_schema is None:
            raise refused(f"{place}.input_schema", "A tool needs an input schema.")
        return uamp.ToolDefinition(
            function=uamp.FunctionDefinition(
                name=self.name,
                description=self.description,
                parameters=self.input_schema,
                strict=self.strict,
            )
        )


class ToolChoiceParam(msgspec.Struct, frozen=True, kw_only=True):
    """The model's choice of tools: whether it has to call one, and which."""

    type: Literal["auto", "any", "tool", "none"]
    name: _Name | None = None
    disable_parallel_tool_use: bool | None = None


class ThinkingParam(msgspec.Struct, frozen=True, kw_only=True):
    """The client's wish to be shown thoughts; the amount of thinking is decided elsewhere."""

    type: Literal["enabled", "disabled", "adaptive", "between_tools"]
    budget_tokens: TokenLimit | None = None
    display: Literal["summarized", "omitted"] | None = None


class FormatParam(msgspec.Struct, frozen=True, kw_only=True):
    """The format that an answer must have."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputParam(msgspec.Struct, frozen=True, kw_only=True):
    """The effort that an answer takes, and its format."""

    effort: ReasoningEffort | Literal["max"] | None = None
    format: FormatParam | None = None


class CountRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /v1/messages/count_tokens`; docs/anthropic.md documents each member.

    Members that are missing here are ignored.
    """

    model: ModelName
    messages: Annotated[
        tuple[MessageParam, ...],
        msgspec.Meta(min_length=1, max_length=uamp.DEFAULT_LIMITS.messages),
    ]
    system: str | tuple[TextBlockParam, ...] | None = None
    tools: tuple[ToolParam, ...] | None = None
    tool_choice: ToolChoiceParam | None = None
    thinking: ThinkingParam | None = None
    output_config: OutputParam | None = None
    output_format: FormatParam | None = None
    container: Any = None
    mcp_servers: Any = None

    @property
    def shows_thoughts(self) -> bool:
        """Whether the answer contains thoughts."""
        thinking = self.thinking
        return (
            thinking is not None and thinking.type != "disabled" and thinking.display != "omitted"
        )


class MessagesRequest(CountRequest, frozen=True, kw_only=True):
    """The body of `POST /v1/messages`."""

    max_tokens: TokenLimit
    stream: bool | None = None
    stop_sequences: Annotated[tuple[StopWord, ...], msgspec.Meta(max_length=16)] | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    top_k: Any = None
    service_tier: Any = None
    speed: Any = None


_REFUSED: Final[Refused] = {
    "container": ((), "Agents use their own tools. Leave it out."),
    "mcp_servers": (([],), "Agents use their own tools. Leave it out."),
    "service_tier": (("auto", "standard_only"), "There is one tier. Leave it out."),
    "speed": (("standard",), "There is one speed. Leave it out."),
    "top_k": ((), "No agent supports it. Use temperature or top_p."),
}


def turn_of(body: CountRequest, *, agent: str | None, chat: str | None) -> ClientTurn:
    """Return the turn that a request starts; raises RemoteProtocolError if it is refused.

    Without a chat, the messages are the whole conversation, and nothing of it is stored for later
    requests. In a chat, the chat stores the conversation, and receives the last user message.
    """
    for name, (accepted, message) in _REFUSED.items():
        value = getattr(body, name, None)
        if value is not None and value not in accepted:
            raise unsupported(name, message)
    messages = messages_of(body.messages)
    tools = tuple(tool.definition(f"tools.{index}") for index, tool in enumerate(body.tools or ()))
    if chat is not None and tools:
        raise unsupported("tools", "Agents in a chat use their own tools. Omit `tools`.")
    config = uamp.ResponseConfig(
        messages=messages if chat is None else None,
        instructions=_system(body),
        tools=tools or None,
        # Agents' options may let the client choose the model; without an agent in the path, `model`
        # names the agent.
        model=body.model if agent else None,
        client_tools="end",
        **_options(body),
    )
    return ClientTurn(
        session=uamp.SessionCreate(agent=agent or body.model, chat=chat),
        inputs=() if chat is None else chat_inputs("messages", messages),
        response=uamp.ResponseCreate(response=config, response_format=_format_of(body)),
        thread="" if chat is None else "chat",
    )


def _system(body: CountRequest) -> str | None:
    if body.system is None or isinstance(body.system, str):
        return body.system
    return "\n\n".join(block.text for block in body.system)


def _options(body: CountRequest) -> dict[str, Any]:
    """Return the options of the model that a request sets."""
    options: dict[str, Any] = {}
    effort = body.output_config.effort if body.output_config else None
    if effort is not None:
        options["reasoning_effort"] = "xhigh" if effort == "max" else effort
    if (choice := body.tool_choice) is not None and body.tools:
        options["tool_choice"] = _choice(choice)
        if choice.disable_parallel_tool_use:
            options["parallel_tool_calls"] = False
    if isinstance(body, MessagesRequest):
        options["temperature"], options["top_p"] = body.temperature, body.top_p
        options["stop"] = body.stop_sequences or None
        options["max_tokens"] = token_limit(body.max_tokens)
    return options


def _choice(choice: ToolChoiceParam) -> str | uamp.ToolChoice:
    if choice.type != "tool":
        return {"any": "required"}.get(choice.type, choice.type)
    if choice.name is None:
        raise refused("tool_choice.name", "A choice of one tool needs its name.")
    return uamp.ToolChoice(function=uamp.ChosenFunction(name=choice.name))


def _format_of(body: CountRequest) -> uamp.ResponseFormat | None:
    output_format = (body.output_config and body.output_config.format) or body.output_format
    if output_format is None:
        return None
    schema = uamp.JsonSchemaFormat(name=SCHEMA_NAME, schema=output_format.schema, strict=True)
    return uamp.ResponseFormat(type="json_schema", json_schema=schema)
