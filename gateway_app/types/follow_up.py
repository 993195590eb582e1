"""The messages with which a client answers a waiting response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import uamp


@dataclass(frozen=True, kw_only=True, slots=True)
class MediumReference:
    """A medium, identified by its position in the result of a tool call."""

    call_id: str
    number: int


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowUpPart:
    """One part of a follow-up; exactly one of `text`, `data` and `medium` is set."""

    text: str | None = None
    data: Any = None
    medium: uamp.MediaContent | MediumReference | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientFollowUp:
    """A follow-up, under the id that its client gave it."""

    message_id: str
    parts: tuple[FollowUpPart, ...]
