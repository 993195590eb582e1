"""The formats of what webhooks send: an edge registers each under a name, as the server starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sessions_app.access.principal import Principal

    Render: TypeAlias = Callable[["ChangedResponse"], Awaitable[bytes | None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedResponse:
    """A response in a new state, and the client that follows it.

    `origin` is the address of this server without a slash at its end; `max_bytes` is the most that
    a body may have.
    """

    response_id: str
    agent: str
    principal: Principal
    origin: str
    max_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class WebhookFormat:
    """How a protocol sends a response to its client.

    `render` returns the body; None where the client has no such response any more. `token_header`
    carries the token that the client gave to know the sender by.
    """

    render: Render
    media_type: str
    token_header: str


_formats: dict[str, WebhookFormat] = {}


def register(name: str, webhook_format: WebhookFormat) -> None:
    """Offer a format; `name` is stored with each webhook."""
    _formats[name] = webhook_format


def find(name: str) -> WebhookFormat | None:
    """Return a format; None for one that no edge offers."""
    return _formats.get(name)
