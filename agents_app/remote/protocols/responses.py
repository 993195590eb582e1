"""Remote agents over OpenAI's Responses API; the address is that of the API (https://host/v1)."""

from typing import Any

import msgspec

from agents_app.remote.protocols.answers import RemoteAnswer, list_in, object_in, text_in
from agents_app.remote.protocols.conversations import base64_of, json_of, result_text
from agents_app.remote.protocols.server import RemoteServer
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
from upp.conversation.messages import UserContent
from upp.providers.http.failures import Failures

_THOUGHTS = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_TEXTS = frozenset({"response.output_text.delta", "response.refusal.delta"})
_STOPS = {"max_output_tokens": "max_tokens", "content_filter": "content_filter"}
_CODES = {
    "rate_limit_exceeded": ErrorCode.RATE_LIMITED,
    "context_length_exceeded": ErrorCode.CONTEXT_LENGTH_EXCEEDED,
    "invalid_prompt": ErrorCode.INVALID_REQUEST,
}


class ResponsesServer(RemoteServer):
    """Sends the whole conversation each time; nothing is stored on the other side."""

    @property
    def path(self) -> str:
        """See RemoteServer."""
        return f"{self.called.url}/responses"

    def body(self, name: str, request: LLMRequest) -> Any:
        """See RemoteServer."""
        params = dict(request.params)
        body: dict[str, Any] = {
            "model": name,
            "input": [item for message in request.messages for item in _items(message)],
            "stream": True,
            "store": False,
        }
        for ours, theirs in (("temperature", "temperature"), ("top_p", "top_p"),
                             ("max_tokens", "max_output_tokens"), ("tool_choice", "tool_choice"),
                             ("parallel_tool_calls", "parallel_tool_calls")):  # fmt: skip
            if ours in params:
                body[theirs] = params[ours]
        if effort := params.get("reasoning_effort"):
            body["reasoning"] = {"effort": effort}
        if request.system:
            body["instructions"] = request.system
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": False,
                }
                for tool in request.tools
            ]
        if request.structure is not None:
            schema = {"type": "json_schema", "name": "answer", "schema": request.structure}
            body["text"] = {"format": schema}
        return body

    def read(self, request: LLMRequest, failures: Failures) -> "ResponsesAnswer":
        """See RemoteServer."""
        return ResponsesAnswer(self, request, failures)


class ResponsesAnswer(RemoteAnswer):
    """The events of one stream."""

    def add(self, data: bytes) -> list[StreamEvent]:
        """See Answer."""
        if data.strip() == b"[DONE]":
            self.done = True
            return []
        event = msgspec.json.decode(data, type=dict[str, Any])
        kind = text_in(event, "type")
        if kind in _TEXTS | _THOUGHTS:
            add = self.say if kind in _TEXTS else self.think
            return add(text_in(event, "delta"))
        match kind:
            case "response.output_item.done":
                return self._item(object_in(event, "item"))
            case "response.completed":
                return self._ended(object_in(event, "response"), "end_turn")
            case "response.incomplete":
                response = object_in(event, "response")
                reason = text_in(response, "incomplete_details", "reason")
                return self._ended(response, _STOPS.get(reason, reason or "end_turn"))
            case "response.failed" | "error":
                failed = event if kind == "error" else object_in(event, "response")
                raise self._failure(object_in(failed, "error") or event)
        return []

    def _item(self, item: dict[str, Any]) -> list[StreamEvent]:
        kind = text_in(item, "type")
        if kind == "function_call":
            name, arguments = text_in(item, "name"), text_in(item, "arguments")
            return self.call(text_in(item, "call_id"), name, arguments)
        if kind.endswith("_call"):
            return self.progress(f"used {kind.removesuffix('_call')}", stage="working")
        return []

    def _ended(self, response: dict[str, Any], stop: str) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if not self.length:
            for item in list_in(response, "output"):
                for part in list_in(item, "content"):
                    if text_in(part, "type") == "output_text":
                        events += self.say(text_in(part, "text"))
        self.count(response.get("usage"), "input_tokens", "output_tokens")
        return events + self.end(stop)

    def _failure(self, error: dict[str, Any]) -> Exception:
        code = _CODES.get(text_in(error, "code"), ErrorCode.PROVIDER_ERROR)
        return self.failed(text_in(error, "message"), code)


def _items(message: ModelMessage) -> list[dict[str, Any]]:
    if isinstance(message, UserMessage):
        return [{"role": "user", "content": [_part(block) for block in message.content]}]
    if isinstance(message, AssistantMessage):
        items: list[dict[str, Any]] = []
        if message.text:
            items.append({"role": "assistant", "content": message.text})
        return items + [
            {
                "type": "function_call",
                "call_id": call.tool_call_id,
                "name": call.tool_name,
                "arguments": json_of(call.arguments),
            }
            for call in message.tool_calls
        ]
    return [
        {
            "type": "function_call_output",
            "call_id": result.tool_call_id,
            "output": result_text(result.result),
        }
        for result in message.results
    ]


def _part(block: UserContent) -> dict[str, Any]:
    match block:
        case TextBlock(text=text):
            return {"type": "input_text", "text": text}
        case ImageBlock():
            data, url = base64_of(block)
            address = url or f"data:{block.mime_type};base64,{data}"
            return {"type": "input_image", "image_url": address, "detail": "auto"}
        case DocumentBlock():
            data, url = base64_of(block)
            name = block.title or "document"
            if url:
                return {"type": "input_file", "file_url": url, "filename": name}
            address = f"data:{block.mime_type};base64,{data}"
            return {"type": "input_file", "filename": name, "file_data": address}
    return {"type": "input_text", "text": f"[a {block.mime_type} that is not sent]"}
