"""API keys that people make for their own programs.

A key may do all that its owner may. Its secret is returned once and kept as a hash only. A person
has at most KEYS_PER_PERSON keys in force that they made here; an operator makes more in the admin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from sessions_app.access import auth
from sessions_app.models import ApiKey

if TYPE_CHECKING:
    from django.db.models import QuerySet

KEYS_PER_PERSON: Final = 100


class TooManyKeys(Exception):
    """The person has KEYS_PER_PERSON keys in force."""


def keys_of(user_id: int) -> list[ApiKey]:
    """Return a person's keys in force, the newest first."""
    return list(_in_force(user_id).order_by("-created_at", "-pk"))


def make_key(user_id: int, name: str) -> str:
    """Make a key and return its secret; raises TooManyKeys."""
    with transaction.atomic():
        # Of two requests at once the second counts the key of the first.
        user = User.objects.select_for_update(no_key=True).get(pk=user_id)
        if _in_force(user_id).count() >= KEYS_PER_PERSON:
            raise TooManyKeys
        return auth.create_api_key(user, name=name)


def revoke_key(user_id: int, key_id: int) -> bool:
    """Revoke a person's own key; return whether there was one in force.

    Its connections end within five seconds (`auth.unwelcome`).
    """
    return bool(_in_force(user_id).filter(pk=key_id).update(revoked_at=timezone.now()))


def _in_force(user_id: int) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(user_id=user_id, revoked_at__isnull=True)
