"""The source for what a subscription missed: its chat's log and the running answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chat_app.log.history import LoggedEvent

PAGE: Final = 256


@dataclass(frozen=True, slots=True)
class RunningText:
    """A running response, as stored or as held by its process."""

    response_id: str
    agent: str
    text: str
    thinking: str
    transport: str = ""


class LogReader(Protocol):
    """Reads what a subscription missed."""

    async def events_after(self, chat_id: str, after: int) -> Sequence[LoggedEvent]:
        """Return the next log entries, at most PAGE."""

    async def is_member(self, chat_id: str, user_id: int | None) -> bool:
        """Return whether a person is in the chat now."""

    async def running(self, chat_id: str) -> Sequence[RunningText]:
        """Return the responses running in the chat."""
