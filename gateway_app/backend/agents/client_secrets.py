"""Client secrets, with which a page opens sessions of one agent without its person's key.

Dialects call this module instead of `sessions_app.access.tickets`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.conf import settings

from agents_app import selectors as agents
from sessions_app import database
from sessions_app.access import tickets
from sessions_app.transports.http_exchange import count_events, principal_of
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpRequest

CONFIG_BYTES: Final = 64 * 1024


async def issue_secret(
    request: HttpRequest, *, agent: str, config: dict[str, Any], seconds: int
) -> tuple[str, str, datetime]:
    """Return the agent's name, a new secret for its sessions and the secret's expiry.

    Raises RemoteProtocolError for a visitor, for an agent that the caller may not use, for a
    configuration above CONFIG_BYTES and when the person has too many secrets.
    """
    principal = await principal_of(request, protocol="realtime", scope="messages:write")
    await count_events(request, principal, kind="sessions")
    if principal.user_id is None:
        raise RemoteProtocolError(
            ErrorCode.UNAUTHORIZED, "Use an API key or sign in. Visitors do not need a secret."
        )
    spec = await database.run(partial(agents.get_agent, agent, viewer=principal.user_id))
    if spec is None or not principal.rights.may_ask(spec.id):
        raise RemoteProtocolError(ErrorCode.AGENT_NOT_FOUND, f"There is no agent {agent!r}.")
    if len(msgspec.json.encode(config)) > CONFIG_BYTES:
        raise RemoteProtocolError(
            ErrorCode.EVENT_TOO_LARGE,
            f"A session's configuration may have at most {CONFIG_BYTES} bytes.",
        )
    issue = partial(
        tickets.issue_secret, principal, agent=spec.name, config=config, seconds=seconds
    )
    try:
        secret, expires_at = await database.run(issue)
    except tickets.TooManyTickets:
        raise RemoteProtocolError(
            ErrorCode.RATE_LIMITED,
            f"You have {settings.UAMP_CLIENT_SECRETS_PER_USER} client secrets. They expire.",
            details={"retry_after": tickets.TICKET_SECONDS},
        ) from None
    return spec.name, secret, expires_at
