"""Rate limits on client requests, reported in UAMP's terms (§6.17)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from sessions_app.access import rates
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from sessions_app.access.principal import Principal
    from sessions_app.connection.client_connection import ClientConnection

# With fewer requests left, send `rate_limit` so that the client can slow down in time.
WARNING_BELOW: Final = 5


class RateLimited(RemoteProtocolError):
    """A request is beyond a rate limit."""

    def __init__(self, quota: rates.Quota) -> None:
        super().__init__(
            ErrorCode.RATE_LIMITED,
            f"At most {quota.limit} {quota.kind} {rates.KINDS[quota.kind].unit}."
            " Wait a moment, then send it again.",
            details={"retry_after": quota.retry_after},
        )
        self.lasts = quota.lasts


async def check_rate(
    connection: ClientConnection,
    principal: Principal,
    kind: str,
    session_id: str | None = None,
    *,
    cost: int = 1,
) -> None:
    """Count `cost` requests of a kind in `rates.KINDS`; send `rate_limit` when few are left.

    Raises RateLimited if the limit is exceeded.
    """
    quota = await rates.limiter().take(kind, principal.counted_as, cost=cost)
    connection.quota = quota
    if not quota.allowed or quota.remaining < WARNING_BELOW:
        limit = ev.RateLimit(
            limit=quota.limit, remaining=quota.remaining, reset_at=math.ceil(quota.reset_at)
        )
        connection.reply(limit, session_id=session_id)
    if not quota.allowed:
        raise RateLimited(quota)


async def check_left(principal: Principal, kind: str) -> None:
    """Raise RateLimited if no request of a kind is left; counts none."""
    quota = await rates.limiter().take(kind, principal.counted_as, cost=0)
    if quota.remaining < 1:
        raise RateLimited(quota)


async def check_text(
    connection: ClientConnection, principal: Principal, size: int, session_id: str | None = None
) -> None:
    """Count `size` bytes of stored text; raises RateLimited.

    Files count by what is stored of them, since they can be deleted.
    """
    quota = await rates.limiter().take("bytes of text", principal.counted_as, cost=size)
    if quota.allowed:
        return
    connection.quota = quota
    limit = ev.RateLimit(
        limit=quota.limit, remaining=quota.remaining, reset_at=math.ceil(quota.reset_at)
    )
    connection.reply(limit, session_id=session_id)
    raise RateLimited(quota)


def count_text(name: str, size: int) -> None:
    """Count `size` bytes of text that a thread stores for a name of `rates`, as `check_text` does.

    Raises RateLimited.
    """
    quota = rates.limiter().hit("bytes of text", name, cost=size)
    if not quota.allowed:
        raise RateLimited(quota)
