"""Requests to Anthropic's Messages API, built from upp messages.

A pure function of the request; the caller's parameters are passed through. A schema becomes a tool
that the model must call, and that call becomes the answer's text again (UAMP §8.3). Data that only
this API understands (signatures, redacted thinking) is restored from the message's metadata, in its
original position.
"""

import base64
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from upp.conversation.messages import (
    AssistantMessage,
    Base64Source,
    BytesSource,
    DocumentBlock,
    ImageBlock,
    Message,
    ReasoningBlock,
    TextBlock,
    TextSource,
    UrlSource,
    UserContent,
    UserMessage,
)
from upp.errors import ErrorCode, UPPError
from upp.model import LLMRequest, layout_of, wants_any_object
from upp.tools import Tool, ToolCall

DEFAULT_MAX_TOKENS = 8192
"""The API requires a number; the thinking budget is added to it."""
ANSWER_TOOL = "json_answer"
"""The tool that stands for structured output; never visible outside this provider."""
NAMESPACE = "anthropic"
_ANSWER_DESCRIPTION = "Gives the final answer. Call it once, with the whole answer."
_ANY_OBJECT = "Answer with one valid JSON object and nothing else: no prose and no code fence."
STRUCTURE_TEXTS = (ANSWER_TOOL, _ANSWER_DESCRIPTION, _ANY_OBJECT)
"""The words that a request with a schema may contain besides the schema."""


def request_body(model_id: str, request: LLMRequest, *, provider: str) -> dict[str, Any]:
    """Build the JSON body; raises UPPError INVALID_REQUEST for unsupported media."""
    params = request.params
    thinking = params.get("thinking") or {}
    body: dict[str, Any] = {
        "max_tokens": DEFAULT_MAX_TOKENS + (thinking.get("budget_tokens") or 0),
        **params,
        "model": model_id,
        "messages": _turns(request.messages, provider),
        "stream": True,
    }
    system = _system(request)
    if system:
        body["system"] = system
    tools = [*(params.get("tools") or ()), *(_tool(tool) for tool in request.tools)]
    if answers_by_tool(request):
        schema = request.structure
        answer = {"name": ANSWER_TOOL, "description": _ANSWER_DESCRIPTION, "input_schema": schema}
        # Thinking and a forced tool are mutually exclusive; other tools may have to run first.
        forced = {"type": "any"} if tools else {"type": "tool", "name": ANSWER_TOOL}
        thinks = thinking.get("type", "disabled") != "disabled"
        body.setdefault("tool_choice", {"type": "auto"} if thinks else forced)
        tools.append(answer)
    if tools:
        body["tools"] = tools
    return body


def answers_by_tool(request: LLMRequest) -> bool:
    """Return whether the answer arrives as a call of the schema's tool."""
    return request.structure is not None and not wants_any_object(request.structure)


def _system(request: LLMRequest) -> str | list[Any]:
    system: str | list[Any] = request.system or request.params.get("system") or ""
    if request.structure is None or answers_by_tool(request):
        return system
    if isinstance(system, list):
        return [*system, {"type": "text", "text": _ANY_OBJECT}]
    return f"{system}\n\n{_ANY_OBJECT}".lstrip()


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.parameters,
        **tool.metadata.get(NAMESPACE, {}),
    }


def _turns(messages: Sequence[Message], provider: str) -> list[dict[str, Any]]:
    """Return messages with alternating roles; results and the text after them form one turn."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        content = _content(message, provider)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += content
        elif content:
            turns.append({"role": role, "content": content})
    return turns


def _content(message: Message, provider: str) -> list[dict[str, Any]]:
    if isinstance(message, UserMessage):
        return _without_empty_text(_block(block, provider) for block in message.content)
    if isinstance(message, AssistantMessage):
        return _assistant_content(message)
    return [
        {
            "type": "tool_result",
            "tool_use_id": result.tool_call_id,
            "content": result.result if isinstance(result.result, str) else _json(result.result),
            **({"is_error": True} if result.is_error else {}),
        }
        for result in message.results
    ]


def _assistant_content(message: AssistantMessage) -> list[dict[str, Any]]:
    """Return a model's message, in its original layout if that is known."""
    thoughts = iter([block for block in message.content if isinstance(block, ReasoningBlock)])
    texts = iter([block for block in message.content if isinstance(block, TextBlock)])
    calls = iter(message.tool_calls)
    blocks: list[dict[str, Any]] = []
    for part in layout_of(message, NAMESPACE):
        kind = part.get("type")
        if kind == "thinking" and (thought := next(thoughts, None)):
            # The API rejects thinking without a signature, which is worthless to the model.
            if signature := part.get("signature"):
                blocks.append({"type": kind, "thinking": thought.text, "signature": signature})
        elif kind == "redacted_thinking" and (data := part.get("data")):
            blocks.append({"type": kind, "data": data})
        elif kind == "text" and (text := next(texts, None)):
            blocks.append({"type": kind, "text": text.text})
        elif kind == "tool_use" and (call := next(calls, None)):
            blocks.append(_call(call))
    blocks += [{"type": "text", "text": text.text} for text in texts]
    blocks += [_call(call) for call in calls]
    return _without_empty_text(blocks)


def _without_empty_text(blocks: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drop empty text blocks, which the API rejects."""
    return [block for block in blocks if block["type"] != "text" or block["text"].strip()]


def _call(call: ToolCall) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": call.tool_call_id,
        "name": call.tool_name,
        "input": call.arguments,
    }


def _block(block: UserContent, provider: str) -> dict[str, Any]:
    match block:
        case TextBlock(text=text):
            return {"type": "text", "text": text}
        case ImageBlock():
            return {"type": "image", "source": _source(block.source, block.mime_type)}
        case DocumentBlock():
            document = {"type": "document", "source": _source(block.source, block.mime_type)}
            return document | ({"title": block.title} if block.title else {})
        case _:
            raise UPPError(
                f"A {type(block).__name__} of type {block.mime_type} cannot be sent this way.",
                code=ErrorCode.INVALID_REQUEST,
                provider=provider,
            )


def _source(
    source: Base64Source | UrlSource | BytesSource | TextSource, mime_type: str
) -> dict[str, Any]:
    match source:
        case UrlSource(url=url):
            return {"type": "url", "url": url}
        case TextSource(data=text):
            return {"type": "text", "media_type": "text/plain", "data": text}
        case BytesSource(data=data):
            encoded = base64.b64encode(data).decode()
            return {"type": "base64", "media_type": mime_type, "data": encoded}
        case _:
            return {"type": "base64", "media_type": mime_type, "data": source.data}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
