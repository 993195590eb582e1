"""Remote agents over the Agent Client Protocol on a WebSocket, whose URL is the address.

Each session has a single prompt with the whole conversation. The agent's requests to an editor, for
files and terminals, are refused, as are requests for a person's permission.
"""

from typing import Any

import msgspec

from agents_app.remote.protocols.answers import RemoteAnswer, object_in, text_in
from agents_app.remote.protocols.conversations import base64_of, last_media, one_text
from agents_app.remote.protocols.sockets import SocketFrames, SocketModel, SocketTraffic
from upp import ErrorCode, ImageBlock, LLMRequest, LLMResponse, StreamEvent
from upp.stream import Emit

VERSION = 1
_STOPS = {
    "end_turn": "end_turn",
    "max_tokens": "max_tokens",
    "max_turn_requests": "max_tokens",
    "refusal": "content_filter",
}
_UNKNOWN_METHOD = -32601
_CODES = {
    -32000: ErrorCode.AUTHENTICATION_FAILED,
    -32002: ErrorCode.MODEL_NOT_FOUND,
    -32402: ErrorCode.QUOTA_EXCEEDED,
    -32602: ErrorCode.INVALID_REQUEST,
}


class AcpModel(SocketModel):
    """Opens a connection and a session for each inference."""

    @property
    def address(self) -> str:
        """See SocketModel. A trailing slash is significant."""
        return str(self.called.target.url)

    async def ask(self, request: LLMRequest, emit: Emit) -> LLMResponse:
        """See SocketModel."""
        answer = PromptAnswer(self, request, self.failures)
        traffic = SocketTraffic()
        async with self.connected(traffic) as frames:
            started = {"protocolVersion": VERSION, "clientCapabilities": {}}
            can = await self._call(frames, answer, emit, 1, "initialize", started)
            opened = await self._call(
                frames, answer, emit, 2, "session/new", {"cwd": "/", "mcpServers": []}
            )
            session_id = text_in(opened, "sessionId")
            if not session_id:
                raise answer.invalid("a session without an id")
            answer.session_id = session_id
            prompt = _prompt(request, takes_images=_takes_images(can))
            cancel = {
                "jsonrpc": "2.0",
                "method": "session/cancel",
                "params": {"sessionId": session_id},
            }
            frames.last_words = lambda: [msgspec.json.encode(cancel).decode()]
            params = {"sessionId": session_id, "prompt": prompt}
            result = await self._call(frames, answer, emit, 3, "session/prompt", params)
            frames.last_words = list
            answer.finish(result)
            return self.believed(answer.response(), traffic)

    async def _call(
        self,
        frames: SocketFrames,
        answer: "PromptAnswer",
        emit: Emit,
        call_id: int,
        method: str,
        params: dict[str, Any],
    ) -> dict[str, Any]:
        """Return the result of a request; earlier messages are shown or refused."""
        await _send(frames, {"id": call_id, "method": method, "params": params})
        while True:
            frame = answer.frame(await frames.receive())
            if "method" in frame:
                if "id" in frame:
                    await _send(frames, {"id": frame["id"], **_refusal(text_in(frame, "method"))})
                for event in answer.notified(frame):
                    await emit(event)
            elif frame.get("id") == call_id:
                if error := object_in(frame, "error"):
                    number = error.get("code")
                    code = _CODES.get(number if isinstance(number, int) else 0)
                    raise answer.failed(
                        text_in(error, "message") or number, code or ErrorCode.PROVIDER_ERROR
                    )
                return object_in(frame, "result")
            else:
                raise answer.invalid("an answer to a request that was not sent")


class PromptAnswer(RemoteAnswer):
    """The updates of one prompt."""

    session_id = ""

    def add(self, data: bytes) -> list[StreamEvent]:
        """See Answer."""
        return self.notified(self.frame(data.decode()))

    def frame(self, text: str) -> dict[str, Any]:
        """Parse a JSON-RPC message; raises UPPError INVALID_RESPONSE."""
        try:
            return msgspec.json.decode(text, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError) as error:
            raise self.invalid(f"an invalid JSON-RPC message: {error}") from error

    def notified(self, frame: dict[str, Any]) -> list[StreamEvent]:
        """Process a session update and return its events."""
        params = object_in(frame, "params")
        if text_in(frame, "method") != "session/update" or not self.session_id:
            return []
        if text_in(params, "sessionId") != self.session_id:
            return []
        update = object_in(params, "update")
        content = object_in(update, "content")
        return self._update(text_in(update, "sessionUpdate"), update, content)

    def _update(
        self, kind: str, update: dict[str, Any], content: dict[str, Any]
    ) -> list[StreamEvent]:
        match kind:
            case "agent_message_chunk":
                return self._content(content)
            case "agent_thought_chunk":
                return self.think(text_in(content, "text"))
            case "tool_call":
                return self.progress(text_in(update, "title"), stage="working")
            case "plan":
                return self._plan(update)
        return []

    def _content(self, content: dict[str, Any]) -> list[StreamEvent]:
        match text_in(content, "type"):
            case "text":
                return self.say(text_in(content, "text"))
            case "resource_link":
                is_image = text_in(content, "mimeType").startswith("image/")
                label = text_in(content, "title") or text_in(content, "name")
                return self.link(content.get("uri"), label, is_image=is_image)
            case "image" | "audio" | "resource" as kind:
                return self.link("", kind)
        return []

    def _plan(self, update: dict[str, Any]) -> list[StreamEvent]:
        entries = update.get("entries")
        for entry in entries if isinstance(entries, list) else ():
            if text_in(entry, "status") == "in_progress":
                return self.progress(text_in(entry, "content"), stage="in_progress")
        return []

    def finish(self, result: dict[str, Any]) -> None:
        """Process the result of the prompt; raises UPPError if it was cancelled."""
        reason = text_in(result, "stopReason")
        if reason == "cancelled":
            raise self.failed("the prompt was cancelled on its server", ErrorCode.CANCELLED)
        if reason not in _STOPS:
            raise self.invalid("an end without a known reason")
        usage = object_in(result, "usage")
        self.count(usage, "inputTokens", "outputTokens")
        self.end(_STOPS[reason])


async def _send(frames: SocketFrames, message: dict[str, Any]) -> None:
    await frames.send(msgspec.json.encode({"jsonrpc": "2.0", **message}).decode())


def _refusal(method: str) -> dict[str, Any]:
    """Return the response to an agent's request to its client."""
    if method == "session/request_permission":
        return {"result": {"outcome": {"outcome": "cancelled"}}}
    return {"error": {"code": _UNKNOWN_METHOD, "message": "This client has no such method."}}


def _takes_images(can: dict[str, Any]) -> bool:
    prompts = object_in(object_in(can, "agentCapabilities"), "promptCapabilities")
    return prompts.get("image") is True


def _prompt(request: LLMRequest, *, takes_images: bool) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": one_text(request)}]
    for block in last_media(request.messages):
        data, _ = base64_of(block)
        if isinstance(block, ImageBlock) and takes_images and data:
            blocks.append({"type": "image", "data": data, "mimeType": block.mime_type})
    return blocks
