"""The output items of the Responses API, and the request fields that its objects echo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import uamp
from gateway_app.openai_responses.tools import ClientTools
from gateway_app.types.answer_writer import open_calls
from gateway_app.types.token_counts import counts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gateway_app.types.stored_response import StoredResponse
    from uamp.types.content import Media

    JsonObject: TypeAlias = dict[str, Any]

_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
}


def item_id(kind: str, response_id: str, place: int | str) -> str:
    """Return the id of an item, which encodes the id of its response."""
    prefix = _PREFIXES.get(kind, "item")
    return f"{prefix}_{response_id.removeprefix('resp_')}_{place}"


def response_of(item: str) -> str:
    """Return the id of the response that an item of an answer belongs to."""
    return f"resp_{item.partition('_')[2].rpartition('_')[0]}"


def text_part(text: str) -> JsonObject:
    """Return a content part with text of an answer."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def opened(kind: str, id_: str) -> JsonObject:
    """Return a message or a thought without any text yet."""
    if kind == "reasoning":
        return {"id": id_, "type": "reasoning", "summary": []}
    return {
        "id": id_,
        "type": "message",
        "status": "in_progress",
        "role": "assistant",
        "content": [],
    }


def closed(item: JsonObject, text: str, status: str) -> JsonObject:
    """Return a message or a thought with its text; `status` applies to messages only."""
    if item["type"] == "reasoning":
        return {**item, "summary": [{"type": "summary_text", "text": text}]}
    return {**item, "status": status, "content": [text_part(text)]}


def usage_of(used: uamp.UsageStats | None) -> JsonObject:
    """Return the tokens used; thoughts are not counted separately."""
    counts = counts_of(used)
    return {
        "input_tokens": counts.input,
        "input_tokens_details": {
            "cached_tokens": counts.read or 0,
            "cache_write_tokens": counts.written,
        },
        "output_tokens": counts.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": counts.total,
    }


def request_echo(create: uamp.ResponseCreate, extension: Mapping[str, Any]) -> JsonObject:
    """Return the request fields that a response object echoes.

    `extension` is that of its session.
    """
    config = create.response or uamp.ResponseConfig()
    chosen = config.tool_choice
    client_tools = ClientTools(extension.get("tools"))
    if isinstance(chosen, uamp.ToolChoice):
        shown_choice: Any = client_tools.choice(chosen.function.name)
    else:
        shown_choice = chosen or "auto"
    return {
        "background": extension.get("background", False),
        "conversation": extension.get("conversation"),
        "instructions": config.instructions,
        "max_output_tokens": config.max_tokens,
        "max_tool_calls": None,
        "metadata": extension.get("metadata", {}),
        "model": extension.get("model", ""),
        "parallel_tool_calls": config.parallel_tool_calls is not False,
        "previous_response_id": extension.get("previous_response_id"),
        "reasoning": {"effort": config.reasoning_effort, "summary": extension.get("summary")},
        "service_tier": "default",
        "store": extension.get("store", True),
        "temperature": config.temperature,
        "text": {
            "format": _format_object(create.response_format),
            "verbosity": config.verbosity,
        },
        "tool_choice": shown_choice,
        "tools": client_tools.as_declared(
            tool.function for tool in config.tools or () if tool.function
        ),
        "top_logprobs": 0,
        "top_p": config.top_p,
        "truncation": "disabled",
        "user": None,
    }


def _format_object(response_format: uamp.ResponseFormat | None) -> JsonObject:
    if response_format is None or response_format.json_schema is None:
        return {"type": "text" if response_format is None else response_format.type}
    schema = response_format.json_schema
    return {
        "type": response_format.type,
        "name": schema.name,
        "schema": schema.schema,
        "strict": schema.strict,
        "description": schema.description,
    }


def input_items(stored: StoredResponse, link: Callable[[str], str]) -> list[JsonObject]:
    """Return the input items of a response, oldest first: its conversation, then its question."""
    config = stored.request.response
    tools = ClientTools(stored.extension.get("tools"))
    messages = list(config.messages or ()) if config else []
    if stored.question:
        messages.append(uamp.Message(role="user", content_items=stored.question))
    items: list[JsonObject] = []
    custom: set[str] = set()
    for place, message in enumerate(messages):
        for item in items_of(message, item_id("message", stored.id, f"in{place}"), link, tools):
            if item["type"] == "custom_tool_call":
                custom.add(item["call_id"])
            elif item["type"] == "function_call_output" and item["call_id"] in custom:
                item["type"] = "custom_tool_call_output"
            items.append(item)
    return items


def items_of(
    message: uamp.Message,
    id_: str,
    link: Callable[[str], str],
    tools: ClientTools | None = None,
) -> Iterator[JsonObject]:
    """Yield the items of a message: itself and its open calls.

    Calls that have a result were to the server's own tools, not to functions of the client, and are
    left out.
    """
    tools = tools or ClientTools()
    items = message.content_items or (uamp.TextContent(text=message.content or ""),)
    if message.role == "tool":
        yield {
            "id": f"fco_{message.tool_call_id}",
            "type": "function_call_output",
            "status": "completed",
            "call_id": message.tool_call_id,
            "output": message.content or "",
        }
        return
    parts = [part for item in items for part in _parts_of(item, message.role, link)]
    calls = [*(message.tool_calls or ()), *open_calls(items)]
    if parts or not calls:
        yield {
            "id": id_,
            "type": "message",
            "status": "completed",
            "role": message.role,
            "content": parts,
        }
    for call in calls:
        yield tools.called(f"fc_{call.id}", call)


def _parts_of(
    item: uamp.ContentItem, role: str, link: Callable[[str], str]
) -> Iterator[JsonObject]:
    match item:
        case uamp.TextContent() if role == "assistant":
            yield text_part(item.text)
        case uamp.TextContent():
            yield {"type": "input_text", "text": item.text}
        case uamp.ImageContent():
            url = _address(item.image, link)
            yield {"type": "input_image", "detail": item.detail or "auto", "image_url": url}
        case uamp.FileContent():
            url = _address(item.file, link)
            yield {"type": "input_file", "filename": item.filename, "file_url": url}


def _address(medium: Media | None, link: Callable[[str], str]) -> str | None:
    return link(medium.url) if isinstance(medium, uamp.MediaUrl) else None
