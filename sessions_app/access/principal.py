"""The actor of a connection or request: a person, visitor, agent or peer."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from django.utils import timezone

from sessions_app.access import rates

if TYPE_CHECKING:
    from datetime import datetime


class PrincipalKind(StrEnum):
    """What a principal is; the value and a colon begin its key, also in `Session.principal`."""

    PERSON = "user"
    VISITOR = "anonymous"
    AGENT = "agent"
    PEER = "peer"

    @property
    def prefix(self) -> str:
        """How the keys of such principals begin."""
        return f"{self.value}:"

    def key(self, name: object) -> str:
        """Return the key of the principal of this name."""
        return f"{self.prefix}{name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Principal:
    """The actor: a person (by browser or key), visitor, agent or peer server.

    `key` is made by `PrincipalKind.key`. A visitor has no identity: what is kept for one is open to
    every client that knows its id. An agent and a peer have one, with or without a `user_id`.
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
    def kind(self) -> PrincipalKind:
        """What the principal is; raises ValueError for a key of no kind."""
        return PrincipalKind(self.key.partition(":")[0])

    @property
    def is_visitor(self) -> bool:
        """Whether the principal has no identity."""
        return self.kind is PrincipalKind.VISITOR

    @property
    def counted_as(self) -> str:
        """The name under which limits count what they do: their own, or a visitor's address."""
        return rates.visitors(self.address) if self.is_visitor else self.key

    @property
    def is_expired(self) -> bool:
        """Whether the token that was shown is good no longer."""
        return self.expires_at is not None and self.expires_at <= timezone.now()
