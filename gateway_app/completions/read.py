"""The request of Chat Completions, and the turn that it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec

import uamp
from gateway_app.completions.messages import CompletionMessage, uamp_messages
from gateway_app.openai.errors import refused, unsupported
from gateway_app.openai.request import (
    Conversation,
    ModelName,
    TokenLimit,
    chat_inputs,
    chat_of,
    check_refused,
    token_limit,
)
from gateway_app.types.client_turn import ClientTurn

if TYPE_CHECKING:
    from gateway_app.openai.request import Refused

_Messages: TypeAlias = Annotated[
    tuple[CompletionMessage, ...],
    msgspec.Meta(min_length=1, max_length=uamp.DEFAULT_LIMITS.messages),
]


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a streamed answer."""

    include_usage: bool | None = None


class FunctionTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of the client."""

    type: Literal["function"]
    function: uamp.FunctionDefinition


class AnswerFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The format that an answer must have."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: uamp.JsonSchemaFormat | None = None


class CompletionRequest(uamp.GenerationOptions, frozen=True, kw_only=True):
    """The body of `POST /chat/completions`; docs/adapters.md documents each member.

    Members that are missing here are ignored.
    """

    model: ModelName | None = None
    messages: _Messages
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: TokenLimit | None = None
    max_completion_tokens: TokenLimit | None = None
    tools: tuple[FunctionTool, ...] | None = None
    functions: tuple[uamp.FunctionDefinition, ...] | None = None
    function_call: Literal["none", "auto"] | uamp.ChosenFunction | None = None
    response_format: AnswerFormat | None = None
    conversation: Conversation | None = None
    audio: Any = None
    logprobs: Any = None
    modalities: Any = None
    moderation: Any = None
    n: Any = None
    service_tier: Any = None
    top_logprobs: Any = None
    web_search_options: Any = None

    @property
    def chat(self) -> str | None:
        """The id of the chat in which the agent answers."""
        return chat_of(self.conversation)


_REFUSED: Final[Refused] = {
    "audio": ((), "Answers are text. Leave it out."),
    "logprobs": ((False,), "Answers have no log probabilities. Leave it out."),
    "modalities": (([], ["text"]), 'Answers are text. Leave it out, or send ["text"].'),
    "moderation": ((), "Requests are not moderated. Leave it out."),
    "n": ((1,), "Only one answer per request is supported. Send several requests."),
    "service_tier": (("auto", "default"), "There is one tier. Leave it out."),
    "top_logprobs": ((0,), "Answers have no log probabilities. Leave it out."),
    "web_search_options": ((), "Agents use their own tools. Leave it out."),
}


def turn_of(body: CompletionRequest, *, agent: str | None, chat: str | None) -> ClientTurn:
    """Return the turn that a request starts; raises RemoteProtocolError if it is refused.

    Without a chat, the messages are the whole conversation, and nothing of it is stored for later
    requests. In a chat, the chat stores the conversation, and receives the last user message.
    """
    check_refused(body, _REFUSED)
    options = {name: getattr(body, name) for name in uamp.GenerationOptions.__struct_fields__}
    options["max_tokens"] = token_limit(body.max_completion_tokens or body.max_tokens)
    options["tool_choice"] = body.tool_choice or _older_choice(body)
    messages = uamp_messages(body.messages)
    tools = _tools_of(body)
    if chat is not None and tools:
        raise unsupported(
            "tools" if body.tools else "functions",
            "Agents in a chat use their own tools. Omit the conversation, or use UAMP.",
        )
    config = uamp.ResponseConfig(
        messages=messages if chat is None else None,
        tools=tools or None,
        # Agents' options may let the client choose the model; without an agent in the path, `model`
        # names the agent.
        model=body.model if agent else None,
        client_tools="end",
        **options,
    )
    return ClientTurn(
        session=uamp.SessionCreate(agent=agent or body.model, chat=chat),
        inputs=() if chat is None else chat_inputs("messages", messages),
        response=uamp.ResponseCreate(response=config, response_format=_format_of(body)),
        thread="" if chat is None else "chat",
    )


def _older_choice(body: CompletionRequest) -> str | uamp.ToolChoice | None:
    """Convert `function_call`, the older form, to a tool choice."""
    chosen = body.function_call
    if not isinstance(chosen, uamp.ChosenFunction):
        return chosen
    return uamp.ToolChoice(function=chosen)


def _tools_of(body: CompletionRequest) -> tuple[uamp.ToolDefinition, ...]:
    functions = [*(tool.function for tool in body.tools or ()), *(body.functions or ())]
    return tuple(uamp.ToolDefinition(function=function) for function in functions)


def _format_of(body: CompletionRequest) -> uamp.ResponseFormat | None:
    response_format = body.response_format
    if response_format is None or response_format.type == "text":
        return None
    if response_format.type == "json_schema" and response_format.json_schema is None:
        raise refused("response_format.json_schema", "A json_schema format needs its schema here.")
    return uamp.ResponseFormat(type=response_format.type, json_schema=response_format.json_schema)
