"""Requests to Google's Gemini API, built from upp messages.

A pure function of the request; the caller's parameters (`generationConfig`, `toolConfig`,
`safetySettings`) are passed through. Thought signatures and the API's own call ids are restored
from the message's metadata, in their original positions.
"""

import base64
from collections.abc import Sequence
from typing import Any

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
    ToolResultMessage,
    UrlSource,
    UserContent,
    UserMessage,
    VideoBlock,
)
from upp.errors import ErrorCode, UPPError
from upp.model import LLMRequest, layout_of, wants_any_object
from upp.tools import Tool, ToolCall

NAMESPACE = "google"


def request_body(request: LLMRequest, *, provider: str) -> dict[str, Any]:
    """Build the JSON body; raises UPPError INVALID_REQUEST for unsupported media."""
    params = request.params
    body: dict[str, Any] = {**params, "contents": _contents(request.messages, provider)}
    if request.system:
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    tools = list(params.get("tools") or ())
    if request.tools:
        tools.append({"functionDeclarations": [_tool(tool) for tool in request.tools]})
    if tools:
        body["tools"] = tools
    if request.structure is not None:
        generation: dict[str, Any] = {"responseMimeType": "application/json"}
        if not wants_any_object(request.structure):
            generation["responseJsonSchema"] = request.structure
        body["generationConfig"] = generation | (params.get("generationConfig") or {})
    return body


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parametersJsonSchema": tool.parameters,
        **tool.metadata.get(NAMESPACE, {}),
    }


def _contents(messages: Sequence[Message], provider: str) -> list[dict[str, Any]]:
    """Return contents with alternating roles."""
    contents: list[dict[str, Any]] = []
    calls: dict[str, _CallName] = {}
    for message in messages:
        role = "model" if isinstance(message, AssistantMessage) else "user"
        if isinstance(message, AssistantMessage):
            parts = _model_parts(message, calls)
        elif isinstance(message, UserMessage):
            parts = [_part(block, provider) for block in message.content]
        else:
            parts = _results(message, calls)
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"] += parts
        elif parts:
            contents.append({"role": role, "parts": parts})
    return contents


# A call's name, and the id that the API itself assigned.
_CallName = tuple[str, str | None]


def _results(message: ToolResultMessage, calls: dict[str, _CallName]) -> list[dict[str, Any]]:
    parts = []
    for result in message.results:
        name, call_id = calls.get(result.tool_call_id, ("unknown", None))
        response = {"error" if result.is_error else "result": result.result}
        parts.append({"functionResponse": _function_name(name, call_id) | {"response": response}})
    return parts


def _model_parts(
    message: AssistantMessage, call_names: dict[str, _CallName]
) -> list[dict[str, Any]]:
    """Return a model's message without thoughts, in its original layout if that is known."""
    texts = iter([block for block in message.content if isinstance(block, TextBlock)])
    calls = iter(message.tool_calls)
    parts: list[dict[str, Any]] = []
    for layout_part in layout_of(message, NAMESPACE):
        kind = layout_part.get("type")
        part: dict[str, Any] = {}
        if kind == "text" and (text := next(texts, None)):
            part = {"text": text.text}
        elif kind == "call" and (call := next(calls, None)):
            part = _call(call, layout_part.get("id"), call_names)
        elif kind == "signature":
            part = {"text": ""}
        if part:
            signature = layout_part.get("signature")
            parts.append(part | ({"thoughtSignature": signature} if signature else {}))
    parts += [{"text": text.text} for text in texts]
    parts += [_call(call, None, call_names) for call in calls]
    return parts


def _call(call: ToolCall, call_id: str | None, call_names: dict[str, _CallName]) -> dict[str, Any]:
    call_names[call.tool_call_id] = (call.tool_name, call_id)
    return {"functionCall": _function_name(call.tool_name, call_id) | {"args": call.arguments}}


def _function_name(name: str, call_id: str | None) -> dict[str, Any]:
    return {"name": name} | ({"id": call_id} if call_id else {})


def _part(block: UserContent, provider: str) -> dict[str, Any]:
    match block:
        case TextBlock(text=text) | DocumentBlock(source=TextSource(data=text), title=None):
            return {"text": text}
        case DocumentBlock(source=TextSource(data=text), title=title):
            return {"text": f"{title}:\n{text}"}
        case ImageBlock(source=UrlSource(url=url)) | DocumentBlock(source=UrlSource(url=url)):
            return {"fileData": {"mimeType": block.mime_type, "fileUri": url}}
        case ImageBlock(source=BytesSource(data=data)):
            return _inline(block.mime_type, base64.b64encode(data).decode())
        case (
            ImageBlock(source=Base64Source(data=text))
            | DocumentBlock(source=Base64Source(data=text))
        ):
            return _inline(block.mime_type, text)
        case AudioBlock() | VideoBlock():
            return _inline(block.mime_type, base64.b64encode(block.data).decode())
        case _:
            raise UPPError(
                f"A {type(block).__name__} of type {block.mime_type} cannot be sent this way.",
                code=ErrorCode.INVALID_REQUEST,
                provider=provider,
            )


def _inline(mime_type: str, data: str) -> dict[str, Any]:
    return {"inlineData": {"mimeType": mime_type, "data": data}}
