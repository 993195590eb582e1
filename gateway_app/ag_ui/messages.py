"""The messages of a thread in AG-UI's format: MESSAGES_SNAPSHOT.

The run writer produces an answer's events, which are folded as a client folds them. Its messages
thus have the same ids and order as those that a client received while the answer was streamed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import uamp
from gateway_app.ag_ui.write import RunEvent, RunWriter
from uamp import events_of_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gateway_app.ag_ui.read import RunInput

ThreadEntry: TypeAlias = "dict[str, Any]"
"""A message in its wire format."""

_KINDS = {"image": "image", "audio": "audio", "video": "video", "file": "document"}


def messages_snapshot(
    messages: Iterable[uamp.ChatMessage], run: RunInput, *, link: Callable[[str], str]
) -> RunEvent:
    """Return the snapshot of a thread; `link` returns the address of a medium."""
    entries = [entry for message in messages for entry in _entries(message, run, link)]
    return {"type": "MESSAGES_SNAPSHOT", "messages": entries}


def _entries(
    message: uamp.ChatMessage, run: RunInput, link: Callable[[str], str]
) -> list[ThreadEntry]:
    items = message.content_items or (uamp.TextContent(text=message.content),)
    if message.role == "assistant":
        entries = _folded(events_of_output(message.response_id or message.id, items), run)
    else:
        parts = [_part(item, link) for item in items]
        plain = all(part["type"] == "text" for part in parts)
        content = message.content if plain else parts
        entries = [{"id": message.id, "role": message.role, "content": content}]
    if message.name:
        for entry in entries:
            if entry["role"] not in {"tool", "reasoning"}:
                entry["name"] = message.name
    return entries


def _part(item: uamp.ContentItem, link: Callable[[str], str]) -> dict[str, Any]:
    if isinstance(item, uamp.TextContent):
        return {"type": "text", "text": item.text}
    kind = str(type(item).__struct_config__.tag)
    medium = getattr(item, kind, None)
    url = link(medium.url) if isinstance(medium, uamp.MediaUrl) else ""
    if kind not in _KINDS or not url:
        return {"type": "text", "text": uamp.text_of((item,))}
    return {"type": _KINDS[kind], "source": {"type": "url", "value": url}}


def _folded(events: Iterable[uamp.Event], run: RunInput) -> list[ThreadEntry]:
    """Return the messages that a client builds from the events of an answer."""
    writer = RunWriter(run)
    entries: dict[str, ThreadEntry] = {}
    calls: dict[str, dict[str, Any]] = {}
    for made in (run_event for event in events for run_event in writer.feed(event)):
        match made:
            case {"type": "TEXT_MESSAGE_START", "messageId": id_}:
                entries[id_] = {"id": id_, "role": "assistant", "content": ""}
            case {"type": "REASONING_MESSAGE_START", "messageId": id_}:
                entries[id_] = {"id": id_, "role": "reasoning", "content": ""}
            case {
                "type": "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT",
                "messageId": id_,
                "delta": text,
            }:
                entries[id_]["content"] += text
            case {"type": "TOOL_CALL_START", "toolCallId": id_, "toolCallName": name}:
                call = {"id": id_, "type": "function", "function": {"name": name, "arguments": ""}}
                calls[id_] = call["function"]
                holder: str = made.get("parentMessageId") or id_
                entry = entries.setdefault(holder, {"id": holder, "role": "assistant"})
                entry.setdefault("toolCalls", []).append(call)
            case {"type": "TOOL_CALL_ARGS", "toolCallId": id_, "delta": text}:
                calls[id_]["arguments"] += text
            case {"type": "TOOL_CALL_RESULT", "messageId": id_, "content": content}:
                answered = {"toolCallId": made["toolCallId"], "content": content}
                entries[id_] = {"id": id_, "role": "tool", **answered}
    return list(entries.values())
