"""The home of a chat: the server that owns its log, which may be another one (ADR 66)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from chat_app.ids import new_event_id

if TYPE_CHECKING:
    from chat_app.models import Chat

ELSEWHERE: Final = "This chat belongs to another server. Its owners change it there."


_FROM_HOME: Final = "home-"


class BelongsElsewhere(Exception):
    """The chat is a mirror, in which an act would be seen by the people of this server alone."""

    def __init__(self, reason: str = ELSEWHERE) -> None:
        super().__init__(reason)


def check_is_home(chat: Chat | None, reason: str = ELSEWHERE) -> None:
    """Raise BelongsElsewhere, with the reason, for a mirror."""
    if chat is not None and chat.home is not None:
        raise BelongsElsewhere(reason)


def home_event_id() -> str:
    """Return a new id for an entry that a mirror's log has because its home said so."""
    return f"{_FROM_HOME}{new_event_id()}"


def is_from_home(event_id: object) -> bool:
    """Return whether an entry of a mirror's log came from its home: it is not sent back there."""
    return str(event_id).startswith(_FROM_HOME)
