"""Formats of webhook bodies, which edges register by name when the server starts."""

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

    `origin` is this server's address without a trailing slash; `max_bytes` is the maximum size of a
    body.
    """

    response_id: str
    agent: str
    principal: Principal
    origin: str
    max_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class WebhookFormat:
    """The form in which a protocol reports a response to its client.

    `render` returns the body, or None if the client no longer has the response. `token_header`
    carries the token by which the client recognises the sender.
    """

    render: Render
    media_type: str
    token_header: str


_formats: dict[str, WebhookFormat] = {}


def register(name: str, webhook_format: WebhookFormat) -> None:
    """Register a format; `name` is stored with each webhook."""
    _formats[name] = webhook_format


def find(name: str) -> WebhookFormat | None:
    """Return a format, or None if no edge registered it."""
    return _formats.get(name)
