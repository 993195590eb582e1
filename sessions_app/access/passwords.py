"""API keys end with the password with which their owner could make them.

A person may change their password because another person knew it, who may have made a key with it.
Django sessions end with the password by themselves; keys are revoked here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from sessions_app.models import ApiKey

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class KeysEndWithThePassword:
    """A validator of passwords that refuses none; Django calls it on every change."""

    def validate(self, password: str, user: User | None = None) -> None:
        """Take any password."""

    def password_changed(self, password: str, user: User | None = None) -> None:
        """Revoke the person's keys; the person makes new ones for their programs."""
        del password
        if user is not None:
            ApiKey.objects.filter(user_id=user.pk, revoked_at__isnull=True).update(
                revoked_at=timezone.now()
            )

    def get_help_text(self) -> str:
        """Return what the forms say."""
        return (
            "Changing your password signs you out everywhere else and revokes all of your API keys."
        )
