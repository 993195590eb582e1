"""The person's page settings in the markup, so that the first frame is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils.functional import SimpleLazyObject

from chat_app.models import PersonSettings, Theme
from chat_app.people.settings import settings_of

if TYPE_CHECKING:
    from django.http import HttpRequest

# The browser's last choice, for the pages before sign-in (static/chat/person/appearance.js).
THEME_COOKIE: Final = "theme"


def appearance(request: HttpRequest) -> dict[str, object]:
    """Return the settings that templates use, read on first use (a context processor)."""
    return {"appearance": SimpleLazyObject(lambda: _appearance(request))}


def _appearance(request: HttpRequest) -> PersonSettings:
    user = getattr(request, "user", None)
    if user is not None and user.is_authenticated:
        return settings_of(user.pk)
    chosen = request.COOKIES.get(THEME_COOKIE, "")
    return PersonSettings(theme=chosen if chosen in Theme.values else Theme.SYSTEM)
