"""Envelopes with an effect: carried out once, whichever request or process receives them.

An envelope's row says whether its effect is here. A repeat waits for the request that received it
first, and takes over from one whose process has died.
"""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.utils import timezone

from agents_app.workers.completion import until_done
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.exchange import admission
from federation_app.exchange.answers import envelope_error
from federation_app.models import ReceivedEnvelope
from sessions_app import database
from sessions_app.handlers.sessions import known_session
from sessions_app.process import registry as processes
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from federation_app.exchange.admission import Admitted
    from federation_app.models import EnvelopeStream
    from sessions_app.access.principal import Principal
    from sessions_app.records import OpenSession

ABANDONED: Final = timedelta(minutes=1)
"""After this time, an envelope under way is carried out by a repeat: its process has died."""
WAIT_SECONDS: Final = 10.0
"""How long a repeat waits for the request that received the same envelope first."""
LOOK_SECONDS: Final = 0.1


async def carry_out(admitted: Admitted, act: Callable[[], Awaitable[None]]) -> bool:
    """Carry out the act of an envelope once; return whether that had been done before.

    A refused envelope leaves no row. Raises EnvelopeError busy for a repeat while the first request
    is under way, and for what `act` raises.
    """
    remember = partial(admission.remember, admitted, is_done=False)
    received, is_repeated = await database.run(remember)
    if is_repeated and await _was_done(received):
        return True
    try:
        await act()
    except RemoteProtocolError as error:
        # The process that died may have paid, or the answer has ended: its stream shows which.
        if not (is_repeated and error.code == ErrorCode.PAYMENT_NOT_DUE):
            await database.run(admission.forget, received)
            raise envelope_error(error) from None
    except BaseException:
        await database.run(admission.forget, received)
        raise
    await database.run(_mark_done, received)
    return is_repeated


async def finished(act: Coroutine[Any, Any, bool]) -> bool:
    """Return the result of an act that a departing client does not interrupt."""
    return bool(await until_done(processes.current().spawn(act, name="envelope")))


def remember_question(
    admitted: Admitted, principal: Principal
) -> tuple[ReceivedEnvelope, bool, OpenSession | None]:
    """Record an `ask` as `admission.remember` does; return also its open session. Synchronous.

    A new conversation has no session yet, and an `ask` with a response needs none.
    """
    received, is_repeated = admission.remember(admitted)
    stream = received.stream
    if stream is None or stream.response_id:
        return received, is_repeated, None
    return received, is_repeated, known_session(stream.session_id, principal)


async def begun_by_another(received: ReceivedEnvelope, stream: EnvelopeStream) -> EnvelopeStream:
    """Wait for the request that received the same `ask` first; return the stream's row.

    That has no response yet if the other process died. Raises EnvelopeError busy if the other
    request has not come so far.
    """
    ends_at = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < ends_at:
        row = await database.run(admission.stream_row, stream.pk)
        if row is None:
            # The other request was refused.
            break
        if row.response_id or timezone.now() - received.created_at > ABANDONED:
            return row
        await asyncio.sleep(LOOK_SECONDS)
    raise _still_processed()


def _still_processed() -> EnvelopeError:
    """Return the error for a repeat of an envelope that is still being processed."""
    return EnvelopeError(EnvelopeCode.BUSY, "The same envelope is being processed.")


async def _was_done(received: ReceivedEnvelope) -> bool:
    """Wait for the request that received the same envelope first; return whether it succeeded.

    False means that its process has died, and that the caller carries the envelope out.
    """
    ends_at = time.monotonic() + WAIT_SECONDS
    while (was_done := await database.run(_is_done, received)) is not None:
        if was_done:
            return True
        if await database.run(_take_over, received):
            return False
        if time.monotonic() > ends_at:
            break
        await asyncio.sleep(LOOK_SECONDS)
    raise _still_processed()


def _is_done(received: ReceivedEnvelope) -> bool | None:
    """Return whether the effect of an envelope is here; None if it was refused."""
    rows = ReceivedEnvelope.objects.filter(pk=received.pk).values_list("is_done", flat=True)
    return rows.first()


def _take_over(received: ReceivedEnvelope) -> bool:
    now = timezone.now()
    rows = ReceivedEnvelope.objects.filter(
        pk=received.pk, is_done=False, created_at__lt=now - ABANDONED
    )
    return rows.update(created_at=now) > 0


def _mark_done(received: ReceivedEnvelope) -> None:
    ReceivedEnvelope.objects.filter(pk=received.pk).update(is_done=True)
