"""Starting queued messages, in queue order, once no answer is running in their chat.

Any process may start them. If the process that claimed one dies, another takes over; the message is
written only once, since its session and event id identify the turn.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
from django.utils import timezone

import uamp
from sessions_app import database
from sessions_app.access import rates
from sessions_app.access.principal import Principal
from sessions_app.connection.rate_limit import RateLimited
from sessions_app.process import registry
from sessions_app.queue import rows
from sessions_app.selectors import open_session_of
from sessions_app.turn.request import TurnRequest
from sessions_app.turn.start import start_response
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from sessions_app.models import QueuedTurn

logger = logging.getLogger(__name__)

_RETRYABLE: Final = {
    ErrorCode.BUSY,
    ErrorCode.UNAVAILABLE,
    ErrorCode.RATE_LIMITED,
    ErrorCode.QUEUE_FULL,
}
"""Temporary refusals, which are retried."""
RETRY_SECONDS: Final = 5.0


async def start_due() -> None:
    """Start the next message of each chat where no answer is running."""
    process = registry.current()
    for chat_id in await database.run(rows.due_chats, timezone.now()):
        if process.draining:
            return
        row = await database.run(rows.claim, chat_id, timezone.now())
        if row is not None:
            await _start(row)


async def _start(row: QueuedTurn) -> None:
    try:
        await start_response(_request(row), None)
    except RemoteProtocolError as error:
        retry_after = None
        if error.code in _RETRYABLE:
            retry_after = float((error.details or {}).get("retry_after") or RETRY_SECONDS)
        logger.info("the queued message %s was refused: %s", row.pk, error.message)
        refuse = partial(rows.refused, row, str(error.code), error.message, retry_after=retry_after)
        await database.run(refuse)
    else:
        await database.run(rows.started, row)


def _request(row: QueuedTurn) -> TurnRequest:
    principal = Principal(
        key=row.session.principal,
        user_id=row.user_id,
        username=row.user.get_username(),
        credential=row.credential,
        key_version=row.key_version or 0,
        actors=rows.actors_of(row),
        servers=row.servers,
        rights=rows.rights_of(row),
    )
    create = uamp.decode(msgspec.json.encode(row.create))
    if not isinstance(create, ev.ResponseCreate):
        raise TypeError(row.create)

    async def admit(answers: int, _size: int) -> None:
        """Count answers after the first against limits; the first and the text already count."""
        if answers > 1:
            counted = rates.limiter().take("responses", principal.counted_as, cost=answers - 1)
            quota = await counted
            if not quota.allowed:
                raise RateLimited(quota)

    return TurnRequest(
        session=open_session_of(row.session, principal),
        event_id=row.event_id,
        sha256=row.sha256,
        inputs=[uamp.decode(msgspec.json.encode(input_event)) for input_event in row.inputs],  # type: ignore[misc]  # only inputs are queued
        create=msgspec.structs.replace(create, queue=False),
        admit=admit,
    )
