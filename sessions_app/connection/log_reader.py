"""Where a subscription reads what it missed: the log of its chat, and the answers that run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chat_app.log.history import LoggedEvent

PAGE: Final = 256


@dataclass(frozen=True, slots=True)
class RunningText:
    """A running response as it is stored, or as its process holds it."""

    response_id: str
    agent: str
    text: str
    thinking: str
    transport: str = ""


class LogReader(Protocol):
    """Where a subscription reads what it missed."""

    async def events_after(self, chat_id: str, after: int) -> Sequence[LoggedEvent]:
        """Return the next entries of the log, at most PAGE."""

    async def running(self, chat_id: str) -> Sequence[RunningText]:
        """Return the responses that run in the chat."""
