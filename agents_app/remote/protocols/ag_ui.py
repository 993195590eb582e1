"""Remote agents over AG-UI; each RunAgentInput is posted to the address."""

from typing import Any

import msgspec

from agents_app.remote.protocols.answers import RemoteAnswer, list_in, number_of, object_in, text_in
from agents_app.remote.protocols.conversations import base64_of, json_of, result_text
from agents_app.remote.protocols.server import RemoteCaller, RemoteServer
from upp import (
    AssistantMessage,
    DocumentBlock,
    ErrorCode,
    ImageBlock,
    LLMRequest,
    StreamEvent,
    TextBlock,
    UserMessage,
)
from upp import Message as ModelMessage
from upp.conversation.turn import TokenUsage
from upp.providers.http.failures import Failures

_CODES = {
    "unauthorized": ErrorCode.AUTHENTICATION_FAILED,
    "rate_limited": ErrorCode.RATE_LIMITED,
    "payment_required": ErrorCode.QUOTA_EXCEEDED,
    "context_length_exceeded": ErrorCode.CONTEXT_LENGTH_EXCEEDED,
    "content_filtered": ErrorCode.CONTENT_FILTERED,
}


class AgUiServer(RemoteServer):
    """Uses a new thread for each answer, with the whole conversation."""

    @property
    def path(self) -> str:
        """See RemoteServer. A path may end in a slash."""
        return str(self.called.target.url)

    def body(self, name: str, request: LLMRequest) -> Any:
        """See RemoteServer."""
        del name
        messages: list[dict[str, Any]] = []
        if request.system:
            messages.append({"id": "system", "role": "system", "content": request.system})
        for place, message in enumerate(request.messages):
            messages.extend(_messages(message, place))
        run_id = f"{self.called.response_id}-{len(request.messages)}"
        return {
            "threadId": run_id,
            "runId": run_id,
            "messages": messages,
            "tools": [
                {"name": t.name, "description": t.description, "parameters": t.parameters}
                for t in request.tools
            ],
            "context": [],
            "state": {},
            "forwardedProps": {},
        }

    def read(self, request: LLMRequest, failures: Failures) -> "AgUiAnswer":
        """See RemoteServer."""
        return AgUiAnswer(self, request, failures)


class AgUiAnswer(RemoteAnswer):
    """The events of one run."""

    def __init__(self, server: RemoteCaller, request: LLMRequest, failures: Failures) -> None:
        super().__init__(server, request, failures)
        self._began = False
        self._message_id: str | None = None
        # The open calls by id, with their names and the arguments so far.
        self._open: dict[str, tuple[str, list[str]]] = {}
        self._made: dict[str, tuple[str, list[str]]] = {}
        self._chunk_id = ""

    def add(self, data: bytes) -> list[StreamEvent]:
        """See Answer."""
        event = msgspec.json.decode(data, type=dict[str, Any])
        kind = text_in(event, "type")
        if kind == "RUN_STARTED":
            if self._began:
                raise self.invalid("a second beginning")
            self._began = True
            return []
        if kind == "RUN_ERROR":
            code = _CODES.get(text_in(event, "code"), ErrorCode.PROVIDER_ERROR)
            raise self.failed(text_in(event, "message"), code)
        if not self._began:
            raise self.invalid(f"{kind[:40]!r} before the beginning of its run")
        if kind.startswith("TOOL_CALL_"):
            return self._tool(kind, event)
        return self._finished(event) if kind == "RUN_FINISHED" else self._piece(kind, event)

    def _piece(self, kind: str, event: dict[str, Any]) -> list[StreamEvent]:
        match kind:
            case "TEXT_MESSAGE_CONTENT" | "TEXT_MESSAGE_CHUNK":
                return self._text(event)
            case (
                "REASONING_MESSAGE_CONTENT"
                | "REASONING_MESSAGE_CHUNK"
                | "THINKING_TEXT_MESSAGE_CONTENT"
            ):
                return self.think(text_in(event, "delta"))
            case "STEP_STARTED" | "STEP_FINISHED":
                stage = "in_progress" if kind == "STEP_STARTED" else "completed"
                return self.progress(text_in(event, "stepName"), stage=stage)
            case "ACTIVITY_SNAPSHOT":
                return self._activity(object_in(event, "content"))
            case "CUSTOM" if event.get("name") == "content_item":
                return self._medium(object_in(event, "value"))
        return []

    def _text(self, event: dict[str, Any]) -> list[StreamEvent]:
        text, message_id = text_in(event, "delta"), text_in(event, "messageId")
        is_next = text and message_id and self._message_id not in (None, message_id)
        self._message_id = message_id or self._message_id
        # Separate messages of a run become separate paragraphs.
        return self.say(f"\n\n{text}" if is_next and self.length else text)

    def _activity(self, content: dict[str, Any]) -> list[StreamEvent]:
        percent = content.get("percent")
        is_number = isinstance(percent, int | float) and 0 <= percent <= 100  # noqa: PLR2004 percent
        return self.progress(
            text_in(content, "message"),
            stage=text_in(content, "stage") or "working",
            percent=percent if is_number else None,
        )

    def _medium(self, value: dict[str, Any]) -> list[StreamEvent]:
        kind = text_in(value, "type")
        medium = value.get(kind)
        url = text_in(medium, "url") if isinstance(medium, dict) else medium
        label = text_in(value, "alt_text") or text_in(value, "filename") or kind
        return self.link(url, label, is_image=kind == "image")

    def _tool(self, kind: str, event: dict[str, Any]) -> list[StreamEvent]:
        call_id = text_in(event, "toolCallId")
        match kind:
            case "TOOL_CALL_START":
                self._open[call_id] = (text_in(event, "toolCallName"), [])
            case "TOOL_CALL_ARGS" if call_id in self._open:
                self._open[call_id][1].append(text_in(event, "delta"))
            case "TOOL_CALL_CHUNK":
                call_id = self._chunk_id = call_id or self._chunk_id
                name, pieces = self._open.setdefault(call_id, (text_in(event, "toolCallName"), []))
                pieces.append(text_in(event, "delta"))
                self._made[call_id] = (name, pieces)
            case "TOOL_CALL_END" if call_id in self._open:
                name, pieces = self._open.pop(call_id)
                self._made[call_id] = (name, pieces)
                if name not in self._names:
                    return self.progress(f"uses {name}", stage="working")
            case "TOOL_CALL_RESULT":
                # The agent ran one of its own tools.
                self._made.pop(call_id, None)
        return []

    @property
    def _names(self) -> set[str]:
        return {tool.name for tool in self.request.tools}

    def _finished(self, event: dict[str, Any]) -> list[StreamEvent]:
        outcome = object_in(event, "outcome")
        match text_in(outcome, "type"):
            case "interrupt":
                raise self.failed("it waits for a person or a payment on its server")
            case "cancelled":
                raise self.failed("the run was cancelled on its server", ErrorCode.CANCELLED)
        events: list[StreamEvent] = []
        names = self._names
        for call_id, (name, pieces) in self._made.items():
            if name in names:
                events += self.call(call_id, name, "".join(pieces))
        for used in list_in(event, "usage"):
            read = number_of(used.get("inputTokens")) if isinstance(used, dict) else 0
            written = number_of(used.get("outputTokens")) if isinstance(used, dict) else 0
            self.usage = self.usage + TokenUsage(
                input_tokens=read, output_tokens=written, total_tokens=read + written
            )
        return events + self.end()


def _messages(message: ModelMessage, place: int) -> list[dict[str, Any]]:
    if isinstance(message, UserMessage):
        parts = [part for block in message.content if (part := _part(block))]
        content: Any = parts
        if all(part["type"] == "text" for part in parts):
            content = "\n".join(part["text"] for part in parts)
        return [{"id": f"m{place}", "role": "user", "content": content}]
    if isinstance(message, AssistantMessage):
        if not (message.text or message.tool_calls):
            return []
        shape: dict[str, Any] = {"id": f"m{place}", "role": "assistant"}
        if message.text:
            shape["content"] = message.text
        if message.tool_calls:
            shape["toolCalls"] = [
                {
                    "id": call.tool_call_id,
                    "type": "function",
                    "function": {"name": call.tool_name, "arguments": json_of(call.arguments)},
                }
                for call in message.tool_calls
            ]
        return [shape]
    return [
        {
            "id": f"m{place}-{result.tool_call_id}",
            "role": "tool",
            "toolCallId": result.tool_call_id,
            "content": result_text(result.result),
        }
        for result in message.results
    ]


def _part(block: object) -> dict[str, Any] | None:
    match block:
        case TextBlock(text=text):
            return {"type": "text", "text": text}
        case ImageBlock() | DocumentBlock():
            data, url = base64_of(block)
            kind = "image" if isinstance(block, ImageBlock) else "document"
            source = {"type": "url" if url else "data", "value": url or data}
            return {"type": kind, "source": {**source, "mimeType": block.mime_type}}
    return None
