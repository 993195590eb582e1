"""Payments for answers: for waiting responses, and with a session's token (UAMP §5.15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from django.utils import timezone

from payments_app.tokens import lookup as token_lookup
from sessions_app import database, services
from sessions_app.billing import requests, reservations
from sessions_app.billing.events import accepted
from sessions_app.connection.rate_limit import check_rate
from sessions_app.frames import frame
from sessions_app.process import registry
from sessions_app.tools import delegated_calls
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Collection

    from sessions_app.connection.attached_session import AttachedSession
    from sessions_app.connection.client_connection import ClientConnection
    from sessions_app.models import PaymentRequest
    from sessions_app.records import OpenSession


async def take_payment(connection: ClientConnection, event: ev.PaymentSubmit) -> None:
    """Accept a payment that a response waits for (UAMP §5.15); refuse it if none is due."""
    session = connection.attached_to(event).session
    # Even a refused payment reads tokens and locks accounts.
    await check_rate(connection, session.principal, "payments", session.wire_id)
    await accept_payment(connection, event)


async def accept_payment(connection: ClientConnection, event: ev.PaymentSubmit) -> None:
    """Accept a payment as `take_payment` does, for a caller that has counted it."""
    attached = connection.attached_to(event)
    session = attached.session
    try:
        event = await _addressed(attached, event)
        row, _ = await database.run(requests.submit, session, event)
    except LookupError:
        raise RemoteProtocolError(
            ErrorCode.PAYMENT_NOT_DUE, "No payment is due in this session; nothing was charged."
        ) from None
    except requests.PaymentRefused as refused:
        connection.reply(refused.event, session_id=session.wire_id, in_reply_to=event.event_id)
        return
    if row.token_id and row.response.session_id == session.id:
        # As with session.update, it also pays for the session's next answers.
        await database.run(services.keep_payment_token, session, row.token_id)
    await registry.current().signals.payment_decided(row.response_id, row.pk)


async def _addressed(attached: AttachedSession, event: ev.PaymentSubmit) -> ev.PaymentSubmit:
    """Return a payment that names its response; that of a person may pay any.

    Anyone who knows the id of a visitor's session may ask in it: a visitor's payment without a
    response is for what this connection asked for. Raises LookupError if none of that is due.
    """
    session = attached.session
    if event.response_id is not None or not session.principal.is_visitor:
        return event
    for row in await database.run(requests.waiting_payments, session):
        if row.deadline > timezone.now() and await _requested(row) in attached.asked_here:
            return msgspec.structs.replace(event, response_id=row.response_id)
    raise LookupError("no payment is due")


async def accepted_frames(session: OpenSession, response_ids: Collection[str]) -> list[str]:
    """Return payment.accepted for each request of these responses that the session has paid."""
    return await database.run(_accepted_frames, session, response_ids)


def _accepted_frames(session: OpenSession, response_ids: Collection[str]) -> list[str]:
    return [
        frame(accepted(row.response_id, row.hold_id, reservations.payer_balance(row.response_id)))
        for row in requests.paid_requests(session, response_ids)
    ]


async def pay_requests(
    connection: ClientConnection, attached: AttachedSession, secret: str
) -> None:
    """Pay for the answers that a session's person asked for with the token of a session.update.

    Anyone who knows the id of a visitor's session may ask in it: a visitor's token pays only for
    what this connection asked for.
    """
    session = attached.session
    rows = await database.run(requests.payments_of_asker, session)
    if session.principal.is_visitor:
        rows = [row for row in rows if await _requested(row) in attached.asked_here]
    for row in rows:
        submit = ev.PaymentSubmit(
            payment=ev.Payment(scheme="token", token=secret), response_id=row.response_id
        )
        try:
            await database.run(requests.submit, session, submit)
        except LookupError:
            continue
        except requests.PaymentRefused as refused:
            connection.reply(refused.event, session_id=session.wire_id)
            return
        await registry.current().signals.payment_decided(row.response_id, row.pk)


async def _requested(row: PaymentRequest) -> str:
    """Return the answer that led to a payment request, perhaps by passing work on."""
    return await database.run(delegated_calls.requested_answer, row.response_id)


class PresentedToken(msgspec.Struct, frozen=True, kw_only=True):
    """A payment token that a client presented: its id, or why it was refused; never its secret."""

    token_id: str = ""
    code: str = ""
    message: str = ""


async def resolved_token(secret: str) -> PresentedToken:
    """Resolve the secret of a payment token."""
    try:
        token = await database.run(token_lookup.resolve, secret)
    except token_lookup.TokenRefused as error:
        return PresentedToken(code=error.code, message=str(error))
    return PresentedToken(token_id=token.id)


async def use_token(session: OpenSession, token: PresentedToken) -> None:
    """Have a token pay for a session's answers.

    A refused token is not an error yet, since clients present theirs to free agents as well. The
    refusal is sent with `payment.required` once an answer has to be paid (UAMP §7.2).
    """
    if not token.token_id:
        session.payment_refused = ev.PaymentError(
            code=token.code, message=token.message, can_retry=True
        )
        return
    session.payment_refused = None
    await database.run(services.keep_payment_token, session, token.token_id)


async def take_payment_token(session: OpenSession, secret: str) -> None:
    """Resolve a token and have it pay for a session's answers."""
    await use_token(session, await resolved_token(secret))
