"""A task as all dialects of A2A show it, before it has their words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

TaskState: TypeAlias = Literal[
    "submitted", "working", "input-required", "completed", "canceled", "failed", "rejected"
]
"""The states that a task of this server has, in the words of A2A 0.3."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskPart:
    """A part of a message or artifact: the one of `text`, `data`, `url` and `raw` that is set.

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
    """Where a task is; `timestamp` is ISO 8601 in UTC."""

    state: TaskState
    timestamp: str
    message: TaskMessage | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskArtifact:
    """A piece of the answer: its text, a medium, or the data that its text is."""

    artifact_id: str
    name: str
    parts: tuple[TaskPart, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A task as it is now."""

    id: str
    context_id: str
    status: TaskStatus
    artifacts: tuple[TaskArtifact, ...]
    history: tuple[TaskMessage, ...]
    signature: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StatusUpdate:
    """A task got another status."""

    task_id: str
    context_id: str
    status: TaskStatus
    final: bool = False
    signature: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ArtifactUpdate:
    """An artifact began or grew; without `append` it replaces what the client has of it."""

    task_id: str
    context_id: str
    artifact: TaskArtifact
    append: bool = False
    last_chunk: bool = False


TaskUpdate: TypeAlias = StatusUpdate | ArtifactUpdate
