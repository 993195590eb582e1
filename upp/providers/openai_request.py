"""Requests to OpenAI-compatible servers, built from upp messages.

A pure function of the request. The caller's parameters are passed through; only the members that
the protocol depends on (model, messages, stream) cannot be overridden.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from upp.conversation.messages import (
    AssistantMessage,
    AudioBlock,
    Base64Source,
    BytesSource,
    DocumentBlock,
    ImageBlock,
    Message,
    TextBlock,
    TextSource,
    UrlSource,
    UserContent,
    UserMessage,
)
from upp.errors import ErrorCode, UPPError
from upp.model import LLMRequest, metadata_entry, wants_any_object
from upp.tools import Tool

NAMESPACE = "openai"
_AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}


def request_body(model_id: str, request: LLMRequest, *, provider: str) -> dict[str, Any]:
    """Build the JSON body; raises UPPError INVALID_REQUEST for unsupported media."""
    messages: list[dict[str, Any]] = []
    if request.system:
        messages.append({"role": "system", "content": request.system})
    question_index = max(
        (i for i, m in enumerate(request.messages) if isinstance(m, UserMessage)), default=-1
    )
    for index, message in enumerate(request.messages):
        messages.extend(_messages(message, provider, thinking=index > question_index))
    body: dict[str, Any] = {
        **request.params,
        "model": model_id,
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True, **(request.params.get("stream_options") or {})},
    }
    tools = [*(request.params.get("tools") or ()), *_tools(request.tools)]
    if tools:
        body["tools"] = tools
    if request.structure is not None:
        body.setdefault("response_format", _response_format(request.structure))
    return body


def _response_format(structure: Mapping[str, Any]) -> dict[str, Any]:
    if wants_any_object(structure):
        return {"type": "json_object"}
    strict = {"strict": True} if _is_strict(structure) else {}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": structure, **strict}}


_STRICT_WORDS = frozenset(
    {
        "$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum",
        "exclusiveMaximum", "exclusiveMinimum", "items", "maxItems", "maximum", "minItems",
        "minimum", "multipleOf", "pattern", "properties", "required", "title", "type",
    }
)  # fmt: skip


def _is_strict(structure: Mapping[str, Any]) -> bool:
    """Return whether the API can enforce a schema; it rejects others in strict mode."""
    return structure.get("type") == "object" and _is_closed(structure)


def _is_closed(schema: Any) -> bool:
    """Return whether every object in a schema is closed and uses only supported keywords."""
    if not isinstance(schema, Mapping) or not schema.keys() <= _STRICT_WORDS:
        return False
    properties, definitions = schema.get("properties", {}), schema.get("$defs", {})
    choices = schema.get("anyOf", ())
    if not isinstance(properties, Mapping) or not isinstance(definitions, Mapping):
        return False
    kind = schema.get("type")
    if properties or kind == "object" or (isinstance(kind, list) and "object" in kind):
        required = schema.get("required", ())
        if schema.get("additionalProperties") is not False or {*required} != {*properties}:
            return False
    inner = [*properties.values(), *definitions.values(), *choices]
    return all(map(_is_closed, [*inner, schema["items"]] if "items" in schema else inner))


def _tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                **tool.metadata.get(NAMESPACE, {}),
            },
        }
        for tool in tools
    ]


def _messages(message: Message, provider: str, *, thinking: bool) -> list[dict[str, Any]]:
    if isinstance(message, UserMessage):
        return [{"role": "user", "content": _user_content(message.content, provider)}]
    if isinstance(message, AssistantMessage):
        shape: dict[str, Any] = {"role": "assistant", "content": message.text or None}
        if message.tool_calls:
            shape["tool_calls"] = [
                {
                    "id": call.tool_call_id,
                    "type": "function",
                    "function": {"name": call.tool_name, "arguments": _json(call.arguments)},
                }
                for call in message.tool_calls
            ]
            if thinking:
                shape |= _thoughts(message)
        # A message with nothing but thoughts means nothing to the server.
        return [shape] if message.text or message.tool_calls else []
    return [
        {
            "role": "tool",
            "tool_call_id": result.tool_call_id,
            "content": result.result if isinstance(result.result, str) else _json(result.result),
        }
        for result in message.results
    ]


def _thoughts(message: AssistantMessage) -> dict[str, Any]:
    """Return the thoughts before a call, as the server sent them.

    Servers that think between calls need them back until the question is answered; some reject them
    afterwards.
    """
    entry = metadata_entry(message, NAMESPACE)
    thoughts: dict[str, Any] = {}
    if isinstance(name := entry.get("reasoning_field"), str):
        thoughts[name] = "".join(block.text for block in message.reasoning)
    if details := entry.get("reasoning_details"):
        thoughts["reasoning_details"] = details
    return thoughts


def _user_content(content: Sequence[UserContent], provider: str) -> str | list[dict[str, Any]]:
    if len(content) == 1 and isinstance(content[0], TextBlock):
        return content[0].text
    return [_part(block, provider) for block in content]


def _part(block: UserContent, provider: str) -> dict[str, Any]:
    match block:
        case TextBlock(text=text):
            return {"type": "text", "text": text}
        case ImageBlock():
            return {"type": "image_url", "image_url": {"url": _url(block.source, block.mime_type)}}
        case DocumentBlock(source=TextSource(data=text)):
            title = f"{block.title}:\n" if block.title else ""
            return {"type": "text", "text": title + text}
        case DocumentBlock(source=Base64Source() as source):
            name = block.title or "document.pdf"
            data = _url(source, block.mime_type)
            return {"type": "file", "file": {"filename": name, "file_data": data}}
        case AudioBlock() if block.mime_type in _AUDIO_FORMATS:
            data = base64.b64encode(block.data).decode()
            return {
                "type": "input_audio",
                "input_audio": {"data": data, "format": _AUDIO_FORMATS[block.mime_type]},
            }
        case _:
            raise UPPError(
                f"A {type(block).__name__} of type {block.mime_type} cannot be sent this way.",
                code=ErrorCode.INVALID_REQUEST,
                provider=provider,
            )


def _url(source: Base64Source | UrlSource | BytesSource, mime_type: str) -> str:
    if isinstance(source, UrlSource):
        return source.url
    data = source.data
    if isinstance(data, bytes):
        data = base64.b64encode(data).decode()
    return f"data:{mime_type};base64,{data}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
