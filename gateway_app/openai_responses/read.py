"""The request of OpenAI's Responses API, and the turn that it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec

import uamp
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
from gateway_app.openai_responses.items import InputItem, ItemId, check_results, messages_of
from gateway_app.openai_responses.tools import ResponsesTool, definitions, function_name
from gateway_app.types.client_turn import ClientTurn
from uamp.types.bounds import Share, Temperature
from uamp.types.generation import ReasoningEffort, Verbosity

if TYPE_CHECKING:
    from gateway_app.openai.request import Refused
    from gateway_app.types.stored_response import StoredResponse

EXTENSION: Final = "openai_responses"
"""The session extension with the request fields that a response object echoes."""

_Items: TypeAlias = Annotated[
    tuple[InputItem, ...], msgspec.Meta(max_length=uamp.DEFAULT_LIMITS.messages)
]
_MetadataKey: TypeAlias = Annotated[str, msgspec.Meta(max_length=64)]
_MetadataValue: TypeAlias = Annotated[str, msgspec.Meta(max_length=512)]
Metadata: TypeAlias = Annotated[dict[_MetadataKey, _MetadataValue], msgspec.Meta(max_length=16)]
_Word: TypeAlias = Annotated[str, msgspec.Meta(max_length=64)]


class ResponsesToolChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The tool that the model has to call, which must be one that the client runs."""

    type: _Word
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=128)] | None = None
    namespace: _Word | None = None


class TextFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The format that an answer must have."""

    type: Literal["text", "json_object", "json_schema"]
    name: Annotated[str, msgspec.Meta(max_length=128)] | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None
    description: str | None = None


class TextOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for the text of an answer."""

    format: TextFormat | None = None
    verbosity: Verbosity | None = None


class ReasoningOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for reasoning. Thoughts are shown as they arrive, whatever `summary` requests."""

    effort: ReasoningEffort | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    generate_summary: Literal["auto", "concise", "detailed"] | None = None
    mode: Any = None
    context: Any = None


class ResponsesRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /responses`; docs/adapters.md documents each member.

    Members that are missing here are ignored.
    """

    input: str | _Items | None = None
    model: ModelName | None = None
    instructions: str | None = None
    previous_response_id: ItemId | None = None
    conversation: Conversation | None = None
    stream: bool | None = None
    background: bool | None = None
    store: bool | None = None
    tools: Annotated[tuple[ResponsesTool, ...], msgspec.Meta(max_length=128)] | None = None
    tool_choice: Literal["none", "auto", "required"] | ResponsesToolChoice | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: TokenLimit | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    metadata: Metadata | None = None
    include: Annotated[tuple[_Word, ...], msgspec.Meta(max_length=20)] | None = None
    prompt_cache_options: Any = None
    access_programs: Any = None
    background_options: Any = None
    context_management: Any = None
    max_tool_calls: Any = None
    moderation: Any = None
    prompt: Any = None
    service_tier: Any = None
    top_logprobs: Any = None
    truncation: Any = None

    @property
    def chat(self) -> str | None:
        """The id of the chat in which the agent answers."""
        return chat_of(self.conversation)

    @property
    def is_stored(self) -> bool:
        """Whether the response can be retrieved later."""
        return self.store is not False

    @property
    def items(self) -> tuple[InputItem, ...]:
        """The input as a sequence of items."""
        if isinstance(self.input, str):
            return (InputItem(role="user", content=self.input),)
        return self.input or ()


_REFUSED: Final[Refused] = {
    "access_programs": ((), "Access programs are not supported. Omit this field."),
    "background_options": (
        ({}, {"completion_window": "soonest"}),
        "Background work starts at once. Leave it out.",
    ),
    "context_management": (
        ([],),
        "Nothing is compacted during an answer. Use POST /responses/compact.",
    ),
    "max_tool_calls": ((), "An agent has its own limit of steps. Leave it out."),
    "moderation": ((), "Requests are not moderated. Leave it out."),
    "prompt": ((), "Prompt templates are not supported. Send instructions and input instead."),
    "service_tier": (("auto", "default"), "There is one tier. Leave it out."),
    "top_logprobs": ((0,), "Answers have no log probabilities. Leave it out."),
    "truncation": (("disabled",), "Conversations are not cut. Send less, or leave it out."),
}


def check(body: ResponsesRequest) -> None:
    """Raise RemoteProtocolError for options that no agent of this server supports."""
    check_refused(body, _REFUSED)
    if "message.output_text.logprobs" in (body.include or ()):
        raise unsupported("include", "Answers have no log probabilities. Leave them out.")
    cache = body.prompt_cache_options
    if isinstance(cache, dict) and cache.get("prewarm"):
        raise unsupported("prompt_cache_options", "Every request has an answer: omit prewarm.")
    thinking = body.reasoning or ReasoningOptions()
    if thinking.mode not in {None, "standard"} or thinking.context not in {None, "auto"}:
        raise unsupported("reasoning", "Use effort alone: mode and context have no other values.")
    if body.background and not body.is_stored:
        raise refused("background", "Background work is always stored: leave out `store`.")
    if body.input is None and body.previous_response_id is None:
        raise refused("input", "A request needs an input.")


def turn_of(
    body: ResponsesRequest,
    *,
    agent: str | None,
    chat: str | None,
    previous: StoredResponse | None,
    is_visitor: bool,
) -> ClientTurn:
    """Return the turn that a request starts; raises RemoteProtocolError if it is refused.

    After a `previous` response, the turn continues that conversation, which the client does not
    send again, and stays in its chat if the same agent answers. In a chat, the chat stores the
    conversation.
    """
    if previous is not None and chat is not None:
        raise refused(
            "previous_response_id", "Send either previous_response_id or conversation, not both."
        )
    before = _conversation_before(previous)
    messages, named_origins = messages_of(body.items, after=len(before))
    tools, kept_tools = definitions(body.tools or ())
    if chat is not None and tools:
        raise unsupported("tools", "Agents in a chat use their own tools. Omit the conversation.")
    if chat is None:
        # The calls to answer may be those of the previous answer.
        is_whole = previous is None or previous.status != "completed"
        check_results(before, messages if is_whole else (*before[-1:], *messages))
    named = agent or body.model
    joined = chat
    if previous is not None:
        named = named or previous.agent
        same = named.lower() == previous.agent.lower()
        # Visitors are not members of chats, so their conversation continues in a new one.
        joined = previous.chat_id if same and body.is_stored and not is_visitor else None
    origins = () if previous is None else previous.conversation_origins
    origins = (*origins, *named_origins)
    extension = _extension_of(body, chat, named or "") | (
        {"origins": origins} if origins and not chat else {}
    )
    extension |= {"tools": kept_tools} if kept_tools else {}
    session = uamp.SessionConfig(extensions={EXTENSION: extension})
    return ClientTurn(
        session=uamp.SessionCreate(agent=named, chat=joined, session=session),
        inputs=() if chat is None else chat_inputs("input", messages),
        response=uamp.ResponseCreate(
            response=_config_of(
                body,
                messages=None if chat is not None else (*before, *messages),
                tools=tools or None,
                model=body.model if agent else None,
            ),
            response_format=_format_of(body),
        ),
        # In a chat, all responses that cannot be retrieved share one session.
        thread="chat" if chat is not None and not body.is_stored else "",
        is_kept=body.is_stored,
        follows="" if previous is None else previous.thread,
    )


def _conversation_before(previous: StoredResponse | None) -> tuple[uamp.Message, ...]:
    """Return the messages up to the end of a response.

    Raises RemoteProtocolError if the conversation cannot be continued from there.
    """
    if previous is None:
        return ()
    if not previous.has_ended:
        raise refused("previous_response_id", "The previous response has not ended. Wait for it.")
    conversation = previous.conversation
    if conversation is None:
        raise refused(
            "previous_response_id",
            f"It belongs to a chat: send `conversation` {previous.chat_id!r} instead.",
        )
    return conversation


def _config_of(
    body: ResponsesRequest,
    *,
    messages: tuple[uamp.Message, ...] | None,
    tools: tuple[uamp.ToolDefinition, ...] | None,
    model: str | None,
) -> uamp.ResponseConfig:
    return uamp.ResponseConfig(
        instructions=body.instructions,
        messages=messages,
        tools=tools,
        # Agents' options may let the client choose the model; without an agent in the path, `model`
        # names the agent.
        model=model,
        client_tools="end",
        temperature=body.temperature,
        top_p=body.top_p,
        max_tokens=token_limit(body.max_output_tokens),
        reasoning_effort=body.reasoning.effort if body.reasoning else None,
        verbosity=body.text.verbosity if body.text else None,
        tool_choice=_choice_of(body),
        parallel_tool_calls=body.parallel_tool_calls,
    )


def _choice_of(body: ResponsesRequest) -> Any:
    chosen = body.tool_choice
    if not isinstance(chosen, ResponsesToolChoice):
        return chosen
    if chosen.type not in {"function", "custom"}:
        raise unsupported("tool_choice.type", f"{chosen.type!r} cannot be chosen here.")
    if chosen.name is None:
        raise refused("tool_choice.name", "A tool needs a name.")
    name = function_name(chosen.name, chosen.namespace)
    return uamp.ToolChoice(function=uamp.ChosenFunction(name=name))


def _format_of(body: ResponsesRequest) -> uamp.ResponseFormat | None:
    text_format = body.text.format if body.text else None
    if text_format is None or text_format.type == "text":
        return None
    if text_format.type == "json_object":
        return uamp.ResponseFormat(type="json_object")
    if text_format.schema is None or text_format.name is None:
        missing = "schema" if text_format.schema is None else "name"
        raise refused(f"text.format.{missing}", "A json_schema format needs a name and a schema.")
    return uamp.ResponseFormat(
        type="json_schema",
        json_schema=uamp.JsonSchemaFormat(
            name=text_format.name,
            schema=text_format.schema,
            strict=text_format.strict,
            description=text_format.description,
        ),
    )


def _extension_of(body: ResponsesRequest, chat: str | None, agent: str) -> dict[str, Any]:
    """Return the request fields to echo that the response itself does not store."""
    thinking = body.reasoning or ReasoningOptions()
    return {
        "model": body.model or agent,
        "metadata": body.metadata or {},
        "previous_response_id": body.previous_response_id,
        "conversation": None if chat is None else {"id": chat},
        "background": body.background is True,
        "store": body.is_stored,
        "summary": thinking.summary or thinking.generate_summary,
    }
