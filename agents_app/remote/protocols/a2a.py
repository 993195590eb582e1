"""Remote agents over A2A 1.0 and 0.3 with JSON-RPC; the address is that of the interface.

The message holds the whole conversation, so every answer is a task in a new context. A task
continues on the other side when its client disconnects: an answer stopped here has to be cancelled
there, and a process that takes an answer over reads the task until it has ended.
"""

import asyncio
import time
import uuid
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec
from django.conf import settings

from agents_app.remote.addresses import session_of
from agents_app.remote.protocols.answers import RemoteAnswer, list_in, object_in, text_in
from agents_app.remote.protocols.conversations import base64_of, last_media, one_text
from agents_app.remote.protocols.server import RemoteServer
from agents_app.remote.tasks import Ids
from upp import ErrorCode, LLMRequest, LLMResponse, StreamEvent
from upp.json_values import plain
from upp.providers.http.connections import read_body
from upp.providers.http.failures import Failures
from upp.providers.http.transport import HttpModel
from upp.stream import Emit, EventDelta

_INVALID = frozenset({-32600, -32601, -32602, -32004, -32005, -32009})
_FAILED = frozenset({"failed", "rejected"})
_ASKS = frozenset({"input-required", "auth-required"})
ARTIFACTS = 1_000
"""The most artifacts in one frame."""
REPEATS = 100
"""The most completed artifacts that are searched for in the whole text."""
POLL_SECONDS = 1.0
_JSON = {"Content-Type": "application/json", "Accept": "application/json"}
_PAYMENT = "x402.payment.required"


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """The method names and message format of a version."""

    version: str
    stream: str
    send: str
    cancel: str
    get: str
    role: str
    has_kinds: bool


V1 = Dialect(
    version="1.0",
    stream="SendStreamingMessage",
    send="SendMessage",
    cancel="CancelTask",
    get="GetTask",
    role="ROLE_USER",
    has_kinds=False,
)
V03 = Dialect(
    version="0.3",
    stream="message/stream",
    send="message/send",
    cancel="tasks/cancel",
    get="tasks/get",
    role="user",
    has_kinds=True,
)


class A2aServer(RemoteServer):
    """An A2A 1.0 agent."""

    dialect = V1
    takes_json = True
    task_id = ""
    """The task of the current answer."""

    def __call__(self, model_id: str) -> HttpModel:
        """Return a model that asks the agent, or follows the task of an earlier process."""
        return _TaskModel(server=self, model_id=model_id)

    @property
    def path(self) -> str:
        """See RemoteServer. A trailing slash is significant."""
        return str(self.called.target.url)

    def credentials(self, key: str | None) -> dict[str, str]:
        """See RemoteServer."""
        return {**super().credentials(key), "A2A-Version": self.dialect.version}

    def body(self, name: str, request: LLMRequest) -> Any:
        """See RemoteServer."""
        del name
        parts: list[dict[str, Any]] = [self._text(one_text(request))]
        for block in last_media(request.messages):
            data, url = base64_of(block)
            parts.append(self._file(data, url, block.mime_type, getattr(block, "title", None)))
        message = {
            "messageId": f"{self.called.response_id}-{uuid.uuid4().hex}",
            "role": self.dialect.role,
            "parts": parts,
        }
        if self.dialect.has_kinds:
            message["kind"] = "message"
        streams = self.called.streams
        return {
            "jsonrpc": "2.0",
            "id": 1,
            "method": self.dialect.stream if streams else self.dialect.send,
            "params": {"message": message},
        }

    def read(self, request: LLMRequest, failures: Failures) -> "TaskAnswer":
        """See RemoteServer."""
        return TaskAnswer(self, request, failures)

    async def cancel(self) -> None:
        """See RemoteServer."""
        if not self.task_id:
            return
        task_id, self.task_id = self.task_id, ""
        await self.tell(self.path, _call(self.dialect.cancel, task_id))

    async def stop(self, ids: Ids) -> None:
        """See RemoteServer."""
        self.task_id = str(ids["task"])
        await self.cancel()

    async def read_task(self, failures: Failures) -> bytes:
        """Return the state of the current task; raises UPPError."""
        headers = {**_JSON, **self.credentials(self.called.key), **self.config.headers}
        session = session_of(self.called.target)
        with failures.translated():
            response = await session.post(
                self.path,
                headers=headers,
                body=plain.encode(_call(self.dialect.get, self.task_id)),
                silent=self.called.silent,
            )
            try:
                data = await read_body(response, settings.UAMP_REMOTE_ANSWER_BYTES)
            finally:
                response.close()
        if response.status != HTTPStatus.OK:
            raise failures.refused(response.status, response.headers, data)
        return data

    def _text(self, text: str) -> dict[str, Any]:
        return {"kind": "text", "text": text} if self.dialect.has_kinds else {"text": text}

    def _file(self, data: str, url: str, media_type: str, name: str | None) -> dict[str, Any]:
        if self.dialect.has_kinds:
            file = {"uri": url} if url else {"bytes": data}
            named = {"name": name} if name else {}
            return {"kind": "file", "file": {**file, "mimeType": media_type, **named}}
        part = {"url": url} if url else {"raw": data}
        named = {"filename": name} if name else {}
        return {**part, "mediaType": media_type, **named}


class A2a03Server(A2aServer):
    """An A2A 0.3 agent."""

    dialect = V03


@dataclass(frozen=True, kw_only=True)
class _TaskModel(HttpModel):
    """A model whose answer may be a task that is already in progress."""

    server: A2aServer

    async def infer(self, request: LLMRequest, emit: Emit) -> LLMResponse:
        """See HttpModel."""
        ids = self.server.called.task.ids
        if ids is None:
            return await super().infer(request, emit)
        server = self.server
        server.task_id = str(ids["task"])
        failures = Failures(provider=server.name, key=server.called.key, url=server.path)
        answer = server.answer(request, failures)
        changed = time.monotonic()
        await emit(StreamEvent(type="message_start"))
        while not answer.done:
            events = answer.add(await server.read_task(failures))
            for event in events:
                await emit(event)
            if events:
                changed = time.monotonic()
            elif time.monotonic() - changed > server.called.silent:
                raise failures.error("The task does not progress.", ErrorCode.TIMEOUT)
            if not answer.done:
                await asyncio.sleep(POLL_SECONDS)
        response = answer.response()
        await emit(StreamEvent(type="message_stop", delta=EventDelta(usage=response.usage)))
        return response


class TaskAnswer(RemoteAnswer):
    """The task or message that answers a request."""

    server: A2aServer

    def __init__(self, server: A2aServer, request: LLMRequest, failures: Failures) -> None:
        super().__init__(server, request, failures)
        # The offset in the answer at which the text of each artifact begins.
        self._begins: dict[str, int] = {}
        self._last = ""
        self._repeats = 0

    def add(self, data: bytes) -> list[StreamEvent]:
        """See Answer."""
        frame = msgspec.json.decode(data, type=dict[str, Any])
        if error := object_in(frame, "error"):
            code = error.get("code")
            is_invalid = isinstance(code, int) and code in _INVALID
            error_code = ErrorCode.INVALID_REQUEST if is_invalid else ErrorCode.PROVIDER_ERROR
            raise self.failed(text_in(error, "message") or code, error_code)
        result = object_in(frame, "result")
        if not result:
            raise self.invalid("a frame without a result")
        kind = text_in(result, "kind")
        for name, kinds in (
            ("task", {"task"}),
            ("message", {"message"}),
            ("statusUpdate", {"status-update"}),
            ("artifactUpdate", {"artifact-update"}),
        ):
            is_bare = name == "task" and "id" in result and "status" in result
            found_in = result if kind in kinds or is_bare else object_in(result, name)
            if found_in:
                return self._take(name, found_in)
        return []

    def _take(self, name: str, update: dict[str, Any]) -> list[StreamEvent]:
        task_id = text_in(update, "id" if name == "task" else "taskId")
        if name != "message":
            current_id = self.server.task_id
            if current_id and task_id != current_id:
                return []
            self.server.task_id = task_id
            if task_id and not current_id:
                self.server.called.task.record_ids(task=task_id)
        match name:
            case "message":
                return [*self._parts(update), *self.end()]
            case "artifactUpdate":
                return self._artifact(object_in(update, "artifact"), is_more=update.get("append"))
            case "statusUpdate":
                return self._status(object_in(update, "status"))
        events: list[StreamEvent] = []
        artifacts = list_in(update, "artifacts")
        if len(artifacts) > ARTIFACTS:
            raise self.invalid(f"more than {ARTIFACTS} artifacts in a frame")
        for artifact in artifacts:
            if isinstance(artifact, dict):
                events += self._artifact(artifact, is_more=False)
        return events + self._status(object_in(update, "status"))

    def _artifact(self, artifact: dict[str, Any], *, is_more: object) -> list[StreamEvent]:
        artifact_id = text_in(artifact, "artifactId")
        texts = "".join(_text_of(part) for part in list_in(artifact, "parts"))
        begins = self._begins.get(artifact_id)
        events: list[StreamEvent] = []
        if begins is None:
            if texts and self.length:
                events += self.say("\n\n")
            self._begins[artifact_id] = self.length
            self._last = artifact_id
            events += self.say(texts)
        elif is_more is True and artifact_id == self._last:
            events += self.say(texts)
        elif is_more is not True and artifact_id == self._last:
            events += self.say_at(texts, begins)
        elif not self._was_said(texts, begins):
            raise self.invalid("another text for an artifact that was over")
        for part in list_in(artifact, "parts"):
            events += self._medium(part)
        return events

    def _was_said(self, texts: str, begins: int) -> bool:
        """Return whether a completed artifact is a repetition of text already sent."""
        if self.text.startswith(texts, begins):
            return True
        self._repeats += 1
        return self._repeats <= REPEATS and texts in self.text

    def _status(self, status: dict[str, Any]) -> list[StreamEvent]:
        state = text_in(status, "state").removeprefix("TASK_STATE_").lower().replace("_", "-")
        message = object_in(status, "message")
        text = "".join(_text_of(part) for part in list_in(message, "parts"))
        if state in _FAILED:
            raise self._over(text or state, ErrorCode.PROVIDER_ERROR)
        if state in {"canceled", "cancelled"}:
            raise self._over("its task was cancelled on its server", ErrorCode.CANCELLED)
        if _PAYMENT in object_in(message, "metadata"):
            raise self.failed("it requires a payment", ErrorCode.QUOTA_EXCEEDED)
        if state == "completed" or state in _ASKS:
            is_over = state == "completed"
            events = [] if is_over and self.length else self._parts(message)
            if is_over:
                self.server.task_id = ""
            return events + self.end()
        return self.progress(text, stage="working") if text else []

    def _over(self, message: str, code: ErrorCode) -> Exception:
        self.server.task_id = ""
        return self.failed(message, code)

    def _parts(self, holder: dict[str, Any]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for part in list_in(holder, "parts") or list_in(holder, "content"):
            events += self.say(_text_of(part))
            events += self._medium(part)
        return events

    def _medium(self, part: object) -> list[StreamEvent]:
        file = object_in(part, "file") or (part if isinstance(part, dict) else {})
        url = text_in(file, "uri") or text_in(file, "url")
        media_type = text_in(file, "mimeType") or text_in(file, "mediaType")
        label = text_in(file, "name") or text_in(file, "filename") or media_type or "file"
        if url:
            return self.link(url, label, is_image=media_type.startswith("image/"))
        if "bytes" in file or "raw" in file:
            return self.link("", label)
        return []


def _call(method: str, task_id: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 2, "method": method, "params": {"id": task_id}}


def _text_of(part: object) -> str:
    """Return the text of a part; data is returned as JSON."""
    if text := text_in(part, "text"):
        return text
    if isinstance(part, dict) and part.get("data") is not None:
        return msgspec.json.encode(part["data"]).decode()
    return ""
