"""Who acts on a connection or in a request: a person, or a visitor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.utils import timezone

from sessions_app.access import rates

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Principal:
    """Who acts: a person (through a browser or a key), or an anonymous visitor.

    `web_session` is the key of the Django session in which a person signed in; it is a credential.
    `repeat` begins the ids of the sessions of a visitor's paid batch, so that the same batch finds
    them: it cannot be guessed (`views.batch_repeats`).
    """

    key: str
    user_id: int | None = None
    username: str = ""
    api_key_id: int | None = None
    expires_at: datetime | None = None
    address: str = ""
    web_session: str = field(default="", repr=False)
    repeat: str = field(default="", repr=False)

    @property
    def is_anonymous(self) -> bool:
        """Whether the principal is a visitor."""
        return self.user_id is None

    @property
    def counted_as(self) -> str:
        """The name under which limits count what they do: a person's, or their address's."""
        if self.user_id is None:
            return rates.visitors(self.address)
        return rates.person(self.user_id)

    @property
    def is_expired(self) -> bool:
        """Whether the token that was shown is good no longer."""
        return self.expires_at is not None and self.expires_at <= timezone.now()
