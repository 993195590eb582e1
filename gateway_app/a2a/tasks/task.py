"""Tasks, independent of the A2A dialect that writes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

TaskState: TypeAlias = Literal[
    "submitted", "working", "input-required", "completed", "canceled", "failed", "rejected"
]
"""The states that tasks of this server can have, as A2A 0.3 names them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskPart:
    """A part of a message or artifact; exactly one of `text`, `data`, `url` and `raw` is set.

    `raw` is base64, in either alphabet.
    """

    text: str | None = None
    data: Any = None
    url: str | None = None
    raw: str | None = None
    filename: str | None = None
    media_type: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskMessage:
    """A message of a task; `role` is user or agent."""

    message_id: str
    role: Literal["user", "agent"]
    parts: tuple[TaskPart, ...]
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskStatus:
    """The state of a task; `timestamp` is ISO 8601 in UTC."""

    state: TaskState
    timestamp: str
    message: TaskMessage | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskArtifact:
    """A piece of the answer: a text, a medium, or the value that a text consists of."""

    artifact_id: str
    name: str
    parts: tuple[TaskPart, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A task in its current state."""

    id: str
    context_id: str
    status: TaskStatus
    artifacts: tuple[TaskArtifact, ...]
    history: tuple[TaskMessage, ...]
    signature: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StatusUpdate:
    """A change of a task's status; `is_ai_made` if the stream has sent artifacts."""

    task_id: str
    context_id: str
    status: TaskStatus
    final: bool = False
    signature: str | None = None
    is_ai_made: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ArtifactUpdate:
    """An artifact that began or grew; without `append` it replaces the client's version."""

    task_id: str
    context_id: str
    artifact: TaskArtifact
    append: bool = False
    last_chunk: bool = False


TaskUpdate: TypeAlias = StatusUpdate | ArtifactUpdate
