"""Defaults that a connection gives its sessions, from its address and headers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sessions_app.access.auth import BoundSessions


@dataclass(kw_only=True, slots=True)
class Defaults:
    """Defaults for a connection's sessions, from its URL and headers."""

    agent: str | None = None
    chat: str | None = None
    payment_token: str | None = None
    # Whether a session is deleted after a while if the client chose neither its id nor its chat.
    ephemeral: bool = False
    # Whether a closed session is succeeded by a new one with the same id and chat.
    follows_closed: bool = False
    # This server's address as used by the client, `https://host`.
    base_url: str = ""
    # Restrictions that the connection's client secret puts on its sessions.
    bound: BoundSessions | None = None
