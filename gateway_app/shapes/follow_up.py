"""The messages with which a client answers a response that waits for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import uamp


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptMedium:
    """A medium by the place that it has among those of a tool call's result."""

    call_id: str
    number: int


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowUpPart:
    """A part of a follow-up: the one of `text`, `data` and `medium` that is set."""

    text: str | None = None
    data: Any = None
    medium: uamp.MediaContent | KeptMedium | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientFollowUp:
    """One such message, by the id that its client gave it."""

    message_id: str
    parts: tuple[FollowUpPart, ...]
