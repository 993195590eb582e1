"""The actor of a connection or request: a person, visitor, agent or peer."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from django.utils import timezone

from agents_app.rest.rights import ALL, Rights
from sessions_app.access import rates

if TYPE_CHECKING:
    from datetime import datetime


class PrincipalKind(StrEnum):
    """The kinds of principals, whose keys (as in `Session.principal`) start with `<value>:`."""

    PERSON = "user"
    VISITOR = "anonymous"
    AGENT = "agent"
    PEER = "peer"

    @property
    def prefix(self) -> str:
        """The prefix of the keys of this kind."""
        return f"{self.value}:"

    def key(self, name: object) -> str:
        """Return the key of a principal with this name."""
        return f"{self.prefix}{name}"


class AuthenticationError(Exception):
    """A credential is invalid; `code` is a UAMP error code."""

    def __init__(self, message: str, *, code: str = "unauthorized") -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, kw_only=True, slots=True)
class Principal:
    """The actor: a person (by browser or key), visitor, agent or peer server.

    `key` comes from `PrincipalKind.key`. A visitor has no identity: whatever is stored for one is
    open to every client that knows its id. Agents and peers have one, with or without a `user_id`.
    `web_session` is the key of the Django session in which a person signed in; it is a credential.
    `repeat` is the unguessable prefix of the session ids of a visitor's paid batch, so that a
    repeat of the batch finds them (`transports.batch_repeats`).

    `actors` are the credentials of the agents and programs that passed its token on, each with the
    version of its secret, the last one first. `identity_id` is the row of the identity at another
    issuer whose token it was, or was made with. `rights` are the subset of the person's rights that
    the credential grants. `credential` names the one whose budget is charged, and `key_version`
    tracks which secret of the key was presented. `servers` is the number of servers that forwarded
    the request, according to its header.
    """

    key: str
    user_id: int | None = None
    username: str = ""
    api_key_id: int | None = None
    key_version: int = 0
    credential: str = ""
    rights: Rights = ALL
    actors: tuple[tuple[str, int], ...] = ()
    identity_id: int | None = None
    expires_at: datetime | None = None
    address: str = ""
    servers: int = 0
    web_session: str = field(default="", repr=False)
    repeat: str = field(default="", repr=False)

    @property
    def kind(self) -> PrincipalKind:
        """The kind of the principal; raises ValueError for an unknown kind."""
        return PrincipalKind(self.key.partition(":")[0])

    @property
    def is_visitor(self) -> bool:
        """Whether the principal has no identity."""
        return self.kind is PrincipalKind.VISITOR

    @property
    def counted_as(self) -> str:
        """The name that limits count the principal under: its key, or a visitor's address."""
        return rates.visitors(self.address) if self.is_visitor else self.key

    @property
    def is_expired(self) -> bool:
        """Whether the presented token has expired."""
        return self.expires_at is not None and self.expires_at <= timezone.now()
