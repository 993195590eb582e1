"""The home of a chat, the server that owns its log, and its guests of other servers (ADR 66)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.contrib.auth.models import User

from chat_app.ids import new_event_id

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from django.db.models import QuerySet

    from chat_app.models import Chat

ELSEWHERE: Final = "This chat is hosted on another server. Its owners change it there."


_FROM_HOME: Final = "home-"


def _no_guests() -> QuerySet[User]:
    return User.objects.none()


_guests: Callable[[], QuerySet[User]] = _no_guests


def guests_found_by(find: Callable[[], QuerySet[User]]) -> None:
    """Set the function that finds the accounts of people of other servers."""
    global _guests  # noqa: PLW0603 one for the process
    _guests = find


def guests() -> QuerySet[User]:
    """Return the accounts of people of other servers."""
    return _guests()


def guests_among(names: dict[int, str]) -> set[int]:
    """Filter people, by their ids and names, to those of other servers.

    Their names have a host, so most chats cost no query.
    """
    possible: Collection[int] = [user_id for user_id, name in names.items() if "@" in name]
    if not possible:
        return set()
    return set(guests().filter(pk__in=possible).values_list("pk", flat=True))


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
