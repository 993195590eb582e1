"""The updates that an ACP client receives while a prompt is being answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import uamp
from gateway_app.types.appended_text import AppendedText, TextReplacedError
from uamp import events as ev
from uamp.digital_source import AI_MADE
from uamp.types.content import media_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from uamp.events import Event

ALLOW: Final = "allow"
REPLACED: Final = "The answer was interrupted and is being rewritten."
_OPTIONS: Final = [
    {"optionId": ALLOW, "name": "Allow", "kind": "allow_once"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
]
_STOP_REASONS: Final = {"length": "max_tokens", "content_filter": "refusal"}
_PLAN_STATES: Final = {"in_progress": "in_progress", "pending": "pending"}


class PromptWriter:
    """Converts the events of one response to updates of its session (`session/update`).

    The chunks of a message share a `messageId`. Chunks can only be appended, so a rewritten answer
    is announced in a thought and sent in full as a further message. `link` returns the address of a
    medium for the client.
    """

    def __init__(self, message_id: str, *, link: Callable[[str], str]) -> None:
        self._message_id = message_id
        self._link = link
        self._text = AppendedText()
        self._rewritten = 0
        self._has_thought = False
        self._plan: dict[str, str] = {}
        self._shown: set[str] = set()

    def feed(self, event: Event) -> Iterator[dict[str, Any]]:
        """Yield the updates for an event."""
        match event:
            case ev.ResponseDelta():
                yield from self._delta(event)
            case ev.Thinking(redacted=False, content=thought):
                # A whole thought is sent only if none was streamed.
                if thought and (event.is_delta or not self._has_thought):
                    self._has_thought = True
                    yield _chunk("agent_thought_chunk", thought)
            case ev.Progress(target="tool", target_id=str() as call_id):
                yield _call_update(call_id, "in_progress", _progress_text(event))
            case ev.Progress(target="response", message=str() as step, stage=stage):
                self._plan[step] = _PLAN_STATES.get(stage or "", "completed")
                entries = [
                    {"content": text, "priority": "medium", "status": status}
                    for text, status in self._plan.items()
                ]
                yield {"sessionUpdate": "plan", "entries": entries}
            case ev.ResponseDone(response=ev.ResponseOutput(output=output)):
                yield from self.output(output)

    def output(self, items: Iterable[uamp.ContentItem]) -> Iterator[dict[str, Any]]:
        """Yield the output that no earlier event contained."""
        for event in uamp.events_of_output(self._message_id, items):
            if not isinstance(event, ev.Thinking) or not self._has_thought:
                yield from self.feed(event)

    def _delta(self, event: ev.ResponseDelta) -> Iterator[dict[str, Any]]:
        match event.delta:
            case ev.Delta(type="text", text=text):
                yield from self._write(text or "", event.offset)
            case ev.Delta(tool_call=uamp.ToolCallData() as call):
                yield from self.call(call.id, call.name, call.arguments)
            case ev.Delta(tool_result=uamp.ToolResultData() as result):
                if f"{result.call_id} result" not in self._shown:
                    self._shown.add(f"{result.call_id} result")
                    status = "failed" if result.is_error else "completed"
                    yield _call_update(result.call_id, status, result.result)
            case ev.Delta(type="image" | "video" | "file" as kind) as delta:
                label = delta.filename or delta.alt_text or delta.description or kind
                yield from self._medium(getattr(delta, kind), label)

    def _write(self, text: str, offset: int | None) -> Iterator[dict[str, Any]]:
        try:
            new = self._text.append(text, offset)
        except TextReplacedError:
            new = self._text.replace(text, offset)
            self._rewritten += 1
            yield _chunk("agent_thought_chunk", REPLACED)
        if new:
            yield self._chunk({"type": "text", "text": new})

    def _medium(self, medium: Any, label: str) -> Iterator[dict[str, Any]]:
        if isinstance(medium, uamp.MediaUrl) and medium.url not in self._shown:
            self._shown.add(medium.url)
            yield self._chunk(_resource_link(self._link(medium.url), label))

    def _chunk(self, content: dict[str, Any]) -> dict[str, Any]:
        number = f"-{self._rewritten}" if self._rewritten else ""
        message_id = f"{self._message_id}{number}"
        return {
            "sessionUpdate": "agent_message_chunk",
            "content": content,
            "messageId": message_id,
        }

    def call(self, call_id: str, name: str, arguments: str) -> Iterator[dict[str, Any]]:
        """Yield a call unless it was sent; `arguments` is JSON text."""
        if call_id not in self._shown:
            self._shown.add(call_id)
            yield {
                "sessionUpdate": "tool_call",
                "toolCallId": call_id,
                "title": name,
                "kind": "other",
                "status": "pending",
                "rawInput": arguments,
            }


def history_updates(
    messages: Iterable[uamp.Message], *, link: Callable[[str], str]
) -> Iterator[dict[str, Any]]:
    """Yield the messages of a session as updates that replay it to a client."""
    for number, message in enumerate(messages):
        message_id = f"message_{number}"
        items = message.content_items or (uamp.TextContent(text=message.content or ""),)
        if message.role == "assistant":
            yield from PromptWriter(message_id, link=link).output(items)
            continue
        for item in items:
            if (content := _user_content(item, link)) is not None:
                yield {
                    "sessionUpdate": "user_message_chunk",
                    "content": content,
                    "messageId": message_id,
                }


def _user_content(item: uamp.ContentItem, link: Callable[[str], str]) -> dict[str, Any] | None:
    if isinstance(item, uamp.TextContent):
        return {"type": "text", "text": item.text} if item.text else None
    medium = media_of(item)
    if not isinstance(medium, uamp.MediaUrl):
        return None
    return _resource_link(link(medium.url), getattr(item, "filename", None) or _kind_of(item))


def _kind_of(item: uamp.ContentItem) -> str:
    """Return the type of an item, such as `image`."""
    return str(type(item).__struct_config__.tag)


def _resource_link(uri: str, name: str) -> dict[str, Any]:
    return {"type": "resource_link", "uri": uri, "name": name}


def update(session_id: str, content: dict[str, Any]) -> dict[str, Any]:
    """Return the notification that carries an update."""
    return notification("session/update", {"sessionId": session_id, "update": content})


def notification(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return a notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def success(request_id: Any, result: dict[str, Any]) -> dict[str, Any]:
    """Return the response to a request."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def failure(request_id: Any, error: dict[str, Any]) -> dict[str, Any]:
    """Return the refusal of a request; `error` is a JSON-RPC error."""
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


def session_lost(session_id: str, error: dict[str, Any]) -> dict[str, Any]:
    """Return the notification of a session that the server ended; ACP itself defines none."""
    return notification("_session/error", {"sessionId": session_id, "error": error})


def permission_request(question: ev.ToolApprovalRequired, session_id: str) -> dict[str, Any]:
    """Return the request for a person's permission, with an id that `decision_of` can read."""
    params = {
        "sessionId": session_id,
        "toolCall": {
            "toolCallId": question.call_id,
            "title": question.name,
            "kind": "other",
            "status": "pending",
            "rawInput": question.arguments,
        },
        "options": _OPTIONS,
    }
    return {
        "jsonrpc": "2.0",
        "id": f"{session_id}/{question.response_id}/{question.call_id}",
        "method": "session/request_permission",
        "params": params,
    }


def signed(signature: str | None) -> dict[str, Any]:
    """Return the `_meta` of a result: the mark of AI content, and the answer's signature."""
    ours = {} if signature is None else {"uamp_signature": signature}
    return {"_meta": {"digitalSourceType": AI_MADE, **ours}}


def stop_reason(output: ev.ResponseOutput) -> str:
    """Return why a turn ended."""
    return _STOP_REASONS.get(output.finish_reason or "", "end_turn")


def usage(used: uamp.UsageStats | None) -> dict[str, int] | None:
    """Return the tokens of a turn; None if unknown."""
    if used is None or used.input_tokens is None or used.output_tokens is None:
        return None
    tokens = {
        "inputTokens": used.input_tokens,
        "outputTokens": used.output_tokens,
        "totalTokens": used.total_tokens or used.input_tokens + used.output_tokens,
    }
    return tokens | ({"cachedReadTokens": used.cached_tokens} if used.cached_tokens else {})


def _chunk(kind: str, text: str) -> dict[str, Any]:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def _call_update(call_id: str, status: str, text: str) -> dict[str, Any]:
    content = {"type": "content", "content": {"type": "text", "text": text}}
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call_id,
        "status": status,
        "content": [content],
    }


def _progress_text(event: ev.Progress) -> str:
    parts = (event.stage, event.message, None if event.percent is None else f"{event.percent:g} %")
    return " · ".join(part for part in parts if part)
