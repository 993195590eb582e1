"""The home of a chat: the server that owns its log, which may be another one (ADR 66)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from chat_app.models import Chat

ELSEWHERE: Final = "This chat belongs to another server. Its owners change it there."


class BelongsElsewhere(Exception):
    """The chat is a mirror, in which an act would be seen by the people of this server alone."""

    def __init__(self, reason: str = ELSEWHERE) -> None:
        super().__init__(reason)


def check_is_home(chat: Chat | None, reason: str = ELSEWHERE) -> None:
    """Raise BelongsElsewhere, with the reason, for a mirror."""
    if chat is not None and chat.home is not None:
        raise BelongsElsewhere(reason)
