"""The event for a turn that a daemon receives: `input.text` with the whole conversation.

See UAMP §5.6 and §10.2. This server's contents are sent as signed URLs, relative to the address
that the daemon connected to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

import uamp
from agents_app.runtime.offered_tools import tool_definitions
from agents_app.runtime.step_hooks import recent
from chat_app.contents import references
from chat_app.contents.addresses import ContentReader
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_app.runtime.agent_run import RunRequest
    from agents_app.selectors import AgentSpec

_NO_TEXT: Final = "(no text)"


def input_of(
    spec: AgentSpec,
    request: RunRequest,
    *,
    name: str,
    base_url: str,
    caller: dict[str, Any],
    chat_id: str,
) -> ev.InputText:
    """Return the event of a turn; `name` is the daemon's name for the agent (synchronous).

    `text` is the last user message. `messages` are the instructions and the conversation. `context`
    has the response, its chat, the tools of the client and the agent, and the requested model
    options.
    """
    instructions = [text for text in (spec.instructions, request.instructions) if text]
    system = (
        [uamp.Message(role="system", content="\n\n".join(instructions))] if instructions else []
    )
    reader = ContentReader(chat_id=chat_id)
    messages = [_readable(message, base_url, reader) for message in recent(spec, request.history)]
    question = next((m for m in reversed(messages) if m.role == "user"), None)
    context: dict[str, Any] = {"chat_id": chat_id, "response_id": request.response_id}
    if tools := tool_definitions(spec, request):
        context["tools"] = [
            {
                "type": "function",
                "function": {"name": called, "description": about, "parameters": dict(parameters)},
            }
            for called, about, parameters in tools
        ]
    if request.response_format is not None:
        context["response_format"] = msgspec.to_builtins(request.response_format)
    if params := {key: value for key, value in request.params.items() if key != "extensions"}:
        context["params"] = params
    return ev.InputText(
        text=_text_of(question) or _NO_TEXT,
        messages=(*system, *messages),
        agent=name,
        caller=caller,
        context=context,
    )


def _text_of(message: uamp.Message | None) -> str:
    if message is None:
        return ""
    if message.content is not None:
        return message.content
    items = message.content_items or ()
    return "".join(item.text for item in items if isinstance(item, uamp.TextContent))


def _readable(message: uamp.Message, base_url: str, reader: ContentReader) -> uamp.Message:
    if not message.content_items:
        return message
    items = _absolute(message.content_items, base_url, reader)
    return msgspec.structs.replace(message, content_items=items)


def _absolute(
    items: Sequence[uamp.ContentItem], base_url: str, reader: ContentReader
) -> tuple[uamp.ContentItem, ...]:
    """Return items whose media can be read by programs without a key."""
    absolute_items: list[uamp.ContentItem] = []
    for item in items:
        if isinstance(item, uamp.ToolResultContent) and item.tool_result.content_items:
            inner = _absolute(item.tool_result.content_items, base_url, reader)
            result = msgspec.structs.replace(item.tool_result, content_items=inner)
            absolute_items.append(msgspec.structs.replace(item, tool_result=result))
            continue
        url = references.absolute_url(item, base_url=base_url, reader=reader) if base_url else None
        if url is not None:
            medium = {str(type(item).__struct_config__.tag): uamp.MediaUrl(url=url)}
            item = msgspec.structs.replace(item, **medium)  # noqa: PLW2901 the same item with its address
        absolute_items.append(item)
    return tuple(absolute_items)
