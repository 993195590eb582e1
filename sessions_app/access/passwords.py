"""Revocation of a person's API keys when their password changes.

A person may change their password because another person knew it and may have used it to create a
key. Django ends sessions on its own; the keys are revoked here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from sessions_app.models import ApiKey

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class KeysEndWithThePassword:
    """A password validator that accepts everything; Django notifies it of every change."""

    def validate(self, password: str, user: User | None = None) -> None:
        """Accept any password."""

    def password_changed(self, password: str, user: User | None = None) -> None:
        """Revoke the person's keys; they create new ones for their programs."""
        del password
        if user is not None:
            ApiKey.objects.filter(user_id=user.pk, revoked_at__isnull=True).update(
                revoked_at=timezone.now()
            )

    def get_help_text(self) -> str:
        """Return the text for forms."""
        return (
            "Changing your password signs you out everywhere else and revokes all of your API keys."
        )
