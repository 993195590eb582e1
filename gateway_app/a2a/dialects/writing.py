"""Tasks and their updates as JSON: one writer, with a vocabulary for each version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from gateway_app.a2a.tasks.task import StatusUpdate
from uamp.digital_source import AI_MADE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gateway_app.a2a.dialects.push import PushWords
    from gateway_app.a2a.tasks.messages import SentMessage
    from gateway_app.a2a.tasks.task import (
        Task,
        TaskArtifact,
        TaskMessage,
        TaskPart,
        TaskState,
        TaskStatus,
        TaskUpdate,
    )

Version: TypeAlias = Literal["1.0", "0.3"]

SIGNATURE: Final = "uamp_signature"
"""The metadata member with the signature of a completed task's answer (docs/signatures.md)."""

SOURCE: Final = "digitalSourceType"
"""The metadata member that says that AI made the answer (docs/article-50.md)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Vocabulary:
    """The vocabulary of a version of A2A.

    With `has_kinds`, each object names its type in `kind`; without, an update is nested in a member
    that names its type. With `has_final`, the last status is marked as final. `parts` names the
    member of a message that holds its parts.
    """

    roles: Mapping[Literal["user", "agent"], str]
    state: Callable[[TaskState], str]
    part: Callable[[TaskPart], dict[str, Any]]
    parts: str = "parts"
    has_kinds: bool = False
    has_final: bool = False


class TaskJson:
    """Writes tasks in the vocabulary of a version."""

    def __init__(self, words: Vocabulary) -> None:
        self._words = words

    def task(self, task: Task) -> dict[str, Any]:
        """Return a task."""
        members: dict[str, Any] = {
            **self._kind("task"),
            "id": task.id,
            "contextId": task.context_id,
            "status": self._status(task.status, task.id, task.context_id),
        }
        if task.artifacts:
            members["artifacts"] = [self._artifact(artifact) for artifact in task.artifacts]
        if task.history:
            members["history"] = [
                self._message(message, task.id, task.context_id) for message in task.history
            ]
        return {**members, **_metadata(task.signature, is_ai_made=bool(task.artifacts))}

    def update(self, update: TaskUpdate) -> dict[str, Any]:
        """Return an update as an event of a stream."""
        ids = {"taskId": update.task_id, "contextId": update.context_id}
        if isinstance(update, StatusUpdate):
            status = self._status(update.status, update.task_id, update.context_id)
            final = {"final": update.final} if self._words.has_final else {}
            metadata = _metadata(update.signature, is_ai_made=update.is_ai_made)
            return self._named("status", {**ids, "status": status, **final, **metadata})
        artifact = self._artifact(update.artifact)
        ends = {"append": update.append, "lastChunk": update.last_chunk}
        return self._named("artifact", {**ids, "artifact": artifact, **ends})

    def _kind(self, name: str) -> dict[str, str]:
        return {"kind": name} if self._words.has_kinds else {}

    def _named(self, name: str, update: dict[str, Any]) -> dict[str, Any]:
        if self._words.has_kinds:
            return {"kind": f"{name}-update", **update}
        return {f"{name}Update": update}

    def _status(self, status: TaskStatus, task_id: str, context_id: str) -> dict[str, Any]:
        members: dict[str, Any] = {
            "state": self._words.state(status.state),
            "timestamp": status.timestamp,
        }
        if status.message is not None:
            members["message"] = self._message(status.message, task_id, context_id)
        return members

    def message(self, message: TaskMessage, context_id: str) -> dict[str, Any]:
        """Return a message outside any task."""
        return self._message(message, "", context_id)

    def _message(self, message: TaskMessage, task_id: str, context_id: str) -> dict[str, Any]:
        members: dict[str, Any] = {
            **self._kind("message"),
            "messageId": message.message_id,
            "contextId": context_id,
            **({"taskId": task_id} if task_id else {}),
            "role": self._words.roles[message.role],
            self._words.parts: [self._words.part(part) for part in message.parts],
        }
        return {**members, "metadata": message.metadata} if message.metadata else members

    def _artifact(self, artifact: TaskArtifact) -> dict[str, Any]:
        return {
            "artifactId": artifact.artifact_id,
            "name": artifact.name,
            "parts": [self._words.part(part) for part in artifact.parts],
        }


def _metadata(signature: str | None, *, is_ai_made: bool) -> dict[str, Any]:
    """Return the metadata of a task: the signature of its answer, and that AI made its artifacts.

    What an agent wrote is marked even if it was stopped or could not be signed.
    """
    members = {} if signature is None else {SIGNATURE: signature}
    if signature is not None or is_ai_made:
        members[SOURCE] = AI_MADE
    return {"metadata": members} if members else {}


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskDialect:
    """A version of A2A over a binding: how requests are read and tasks are written.

    `parse_message` converts `send_params` to a message; it raises RemoteProtocolError for an
    invalid part. With `names_task`, an answer that may be a task or a message is wrapped in a
    member `task` or `message`.
    """

    version: Version
    send_params: type[Any]
    parse_message: Callable[[Any], SentMessage]
    json: TaskJson
    push: PushWords
    names_task: bool

    @property
    def webhook_format(self) -> str:
        """The name of the webhook format that sends tasks in this version."""
        return f"a2a-{self.version}"

    def answer(self, task: Task) -> dict[str, Any]:
        """Return a task as the answer to a message, or as the first event of a stream."""
        body = self.json.task(task)
        return {"task": body} if self.names_task else body

    def reply(self, message: TaskMessage, context_id: str) -> dict[str, Any]:
        """Return a message as the answer to a message."""
        body = self.json.message(message, context_id)
        return {"message": body} if self.names_task else body


def named_file(file: dict[str, Any], part: TaskPart) -> dict[str, Any]:
    """Add the name and the media type of a part to its file (0.3)."""
    if part.filename:
        file["name"] = part.filename
    if part.media_type:
        file["mimeType"] = part.media_type
    return file


def object_of(data: Any) -> dict[str, Any]:
    """Return the data of a part in 0.3, where it must be an object; other values are wrapped."""
    return data if isinstance(data, dict) else {"value": data}
