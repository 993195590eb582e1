"""Payment requests of waiting responses, each paid at most once (UAMP §5.15, §7.2).

A wait is a row with a deadline. A payment that is not due, late or too low moves no money.
Everything here is synchronous.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from agents_app import selectors as agents
from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from payments_app.money import InvalidAmount, Money
from payments_app.spending import credential_budgets
from payments_app.tokens import lookup as token_lookup
from sessions_app.billing import chat_budgets
from sessions_app.billing.payers import AnswerPayment, Purchase, Source, by_token, of_token
from sessions_app.billing.reservations import REFUSALS, held_for, lock_running, reserve
from sessions_app.models import PaymentRequest, Response
from sessions_app.states import PaymentState, PaymentTrigger
from sessions_app.tools.delegated_calls import root_chat
from sessions_app.transitions import move, move_row
from uamp import PaymentErrorCode, ResponseTrigger
from uamp import events as ev
from uamp.amounts import format_amount

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from django.db.models import QuerySet
    from django.db.models.functions import Now

    from agents_app.selectors import AgentSpec
    from payments_app.services import HoldOutcome
    from sessions_app.records import OpenSession


class OfferTooLow(Exception):
    """A payment offers less than requested; `available` is its account's balance."""

    def __init__(self, offered: Money, due: Money, available: Money) -> None:
        super().__init__(
            f"You offered {offered} {offered.asset}; {due} {due.asset} is due."
            " Submit at least that."
        )
        self.available = available


class CurrencyMismatch(Exception):
    """A payment names another network or currency than requested."""


class BudgetMismatch(Exception):
    """A key with a budget pays for an answer that counts in the budget of another key."""


class PaymentRefused(Exception):
    """A payment was refused; `event` has the reason (UAMP §7.2). No money moved."""

    def __init__(self, event: ev.PaymentError) -> None:
        super().__init__(event.message)
        self.event = event


def so_far(response_id: str, asset: str) -> tuple[Money, list[PaymentRequest]]:
    """Return the amount held for a response, and its payment requests in order."""
    requests = PaymentRequest.objects.filter(response_id=response_id).order_by("number")
    return held_for(response_id, asset), list(requests)


def ask(
    response_id: str, *, fence: int, number: int, amount: Money, payer_id: int | None, action: str
) -> PaymentRequest | None:
    """Record that a response waits for payment; return None if another process runs it.

    Repeating a number returns the existing request in its current state. Raises InvalidAmount
    unless the amount is positive.
    """
    if amount.amount <= 0:
        raise InvalidAmount("The amount of a payment must be positive.")
    with transaction.atomic():
        mine = Response.objects.filter(pk=response_id, fence=fence)
        if not move(mine, ResponseTrigger.WAIT):
            return None
        row, _ = PaymentRequest.objects.get_or_create(
            response_id=response_id,
            number=number,
            defaults={
                "payer_id": payer_id,
                "asked_in": root_chat(response_id),
                "amount": amount.amount,
                "asset": amount.asset,
                "reason": "tool_usage" if action == "tool" else "llm_usage",
                "action": "topup" if action else "",
                "deadline": timezone.now() + timedelta(seconds=settings.UAMP_PAYMENT_SECONDS),
            },
        )
    return row


def submit(session: OpenSession, event: ev.PaymentSubmit) -> tuple[PaymentRequest, HoldOutcome]:
    """Accept a payment for a waiting response (UAMP §5.15), and reserve the requested amount.

    Raises PaymentRefused, in which case no money moved and the response keeps waiting, and
    LookupError if nothing is waiting for this payer: late and repeated payments are not charged.
    """
    payment = event.payment
    with transaction.atomic():
        chat_budgets.lock_if_limited([session.chat_id])
        row = _waiting_for(session, event.response_id)
        if not lock_running(row.response_id):
            # It was stopped and settled while this payment was arriving.
            raise LookupError("no payment is due")
        spec = agents.get_spec(row.response.agent_id)
        amount = Money(row.amount, row.asset)
        try:
            source = _offered(session, payment, spec)
            _check_offer(payment, amount, source)
            hold = reserve(
                source,
                _purchase(row, spec, _counting(row, session)),
                key=f"pay:{row.pk}",
                amount=amount,
                response_id=row.response_id,
                held=None,
            )
        except (*REFUSALS, OfferTooLow, CurrencyMismatch, BudgetMismatch) as error:
            raise PaymentRefused(error_event(error, amount, row.response_id)) from error
        move_row(row, PaymentTrigger.PAY)
        row.decided_at = timezone.now()
        row.hold_id, row.account_id, row.token_id = hold.hold_id, source.account_id, source.token_id
        row.save()
    return row, hold


def _purchase(row: PaymentRequest, spec: AgentSpec, credential: str) -> Purchase:
    asker = row.response.session
    return Purchase(
        chat_id=row.asked_in,
        agent_id=spec.id,
        agent=spec.name,
        asset=row.asset,
        asker_id=None if asker is None else asker.user_id,
        credential=credential,
    )


def _counting(row: PaymentRequest, session: OpenSession) -> str:
    """Return the credential whose budget counts a payment.

    That is the one with which the answer was requested, or the one that pays if only that has a
    budget. Raises BudgetMismatch if both have one, since a hold counts in one.
    """
    asking, paying = _asked_with(row), session.principal.credential
    if asking == paying:
        return asking
    limited = credential_budgets.limited([asking, paying])
    if len(limited) > 1:
        raise BudgetMismatch(
            "The answer was requested with another key that has a budget."
            " Pay with that key, or with one without a budget."
        )
    return paying if paying in limited else asking


def _asked_with(row: PaymentRequest) -> str:
    return str(row.response.request.get("credential", ""))


def paid_with_token(payment: AnswerPayment, row: PaymentRequest) -> AnswerPayment:
    """Return the payment of an answer after a token has paid a request.

    The token pays the rest too, as far as it goes, unless the request counted in the budget of a
    key other than the one that asked: holds without a question would not count there.
    """
    purchase = payment.purchase
    holds = ledger_rows.holds_of_response(row.response_id)
    if any(
        hold.hold_id == row.hold_id and hold.credential != purchase.credential for hold in holds
    ):
        return replace(payment, source=None)
    source = by_token(row.token_id, purchase.agent, purchase.agent_id)
    return replace(payment, source=source)


def _waiting_for(session: OpenSession, response_id: str | None) -> PaymentRequest:
    rows = PaymentRequest.objects.select_for_update(no_key=True, of=("self",)).filter(
        asked_in=session.chat_id,
        status=PaymentState.WAITING,
        decided_at__isnull=True,
        response__finished_at__isnull=True,
        deadline__gt=timezone.now(),
    )
    if response_id is not None:
        rows = rows.filter(response_id=response_id)
    for row in rows.select_related("response__session").order_by("id"):
        if _is_of(row, session):
            return row
    raise LookupError("no payment is due")


def _check_offer(payment: ev.Payment, amount: Money, source: Source) -> None:
    if payment.network is not None and payment.network not in token_lookup.NETWORKS:
        raise CurrencyMismatch(
            f"Pay on the network {token_lookup.NETWORK}, not {payment.network[:40]!r}."
        )
    if payment.currency is not None and payment.currency.upper() != amount.asset:
        raise CurrencyMismatch(f"Pay in {amount.asset}, not {payment.currency[:40]!r}.")
    if payment.amount is None:
        return
    offered = Money.parse(payment.amount, amount.asset)
    if offered < amount:
        balance = ledger_rows.balance(source.account_id)
        raise OfferTooLow(offered, amount, balance.available)


def _offered(session: OpenSession, payment: ev.Payment, spec: AgentSpec) -> Source:
    """Return the account that a payment offers; raises TokenRefused."""
    if payment.scheme == "balance" and session.principal.user_id is not None:
        account = ledger.account_of_user(session.principal.user_id, spec.pricing.currency)
        return Source(account_id=account.id, user_id=session.principal.user_id)
    if payment.scheme == "token":
        if not payment.token:
            raise token_lookup.TokenRefused("payment_failed", "Send the payment token in `token`.")
        return of_token(token_lookup.resolve(payment.token, agent=spec.name, agent_id=spec.id))
    raise token_lookup.TokenRefused(
        "payment_failed", f"Pay with the scheme token or balance, not {payment.scheme[:40]!r}."
    )


def error_event(error: Exception, amount: Money, response_id: str) -> ev.PaymentError:
    """Return the `payment.error` for a refusal (UAMP §7.2)."""
    required = str(amount)
    match error:
        case ledger.InsufficientFunds(available=available):
            needed = format_amount(required, amount.asset)
            there = format_amount(str(available), amount.asset)
            return ev.PaymentError(
                code=PaymentErrorCode.INSUFFICIENT_BALANCE,
                message=f"This costs {needed}, and the balance is {there}. Top up.",
                balance_required=required,
                balance_current=str(available),
                can_retry=True,
                response_id=response_id,
            )
        case OfferTooLow(available=available):
            return ev.PaymentError(
                code=PaymentErrorCode.PAYMENT_FAILED,
                message=str(error),
                balance_required=required,
                balance_current=str(available),
                can_retry=True,
                response_id=response_id,
            )
        case token_lookup.TokenRefused(code=code):
            return ev.PaymentError(
                code=code, message=str(error), can_retry=True, response_id=response_id
            )
        case ledger.LimitReached():
            return ev.PaymentError(
                code=PaymentErrorCode.RATE_LIMITED,
                message=str(error),
                can_retry=False,
                response_id=response_id,
            )
    is_for_people = isinstance(
        error, InvalidAmount | CurrencyMismatch | BudgetMismatch | chat_budgets.BudgetReached
    )
    return ev.PaymentError(
        code=PaymentErrorCode.PAYMENT_FAILED,
        message=str(error) if is_for_people else "The payment failed.",
        can_retry=True,
        response_id=response_id,
    )


def waiting_payments(session: OpenSession) -> list[PaymentRequest]:
    """Return the open payment requests in a session's chat for its person or visitor."""
    rows = PaymentRequest.objects.filter(
        asked_in=session.chat_id,
        status=PaymentState.WAITING,
        decided_at__isnull=True,
        response__finished_at__isnull=True,
    ).select_related("response__agent", "response__session")
    return [row for row in rows.order_by("id") if _is_of(row, session)]


def payments_of_asker(session: OpenSession) -> list[PaymentRequest]:
    """Return a session's open payment requests for answers that its person asked for.

    The others are paid by an explicit `payment.submit` alone, as by approvals (`payers.who_pays`).
    """
    return [
        row
        for row in waiting_payments(session)
        if _is_asker(row, session) and not row.response.request.get("unprompted", False)
    ]


def waits_for_others(session: OpenSession) -> list[PaymentRequest]:
    """Return other people's open payment requests for answers in a session's chat."""
    rows = PaymentRequest.objects.filter(
        asked_in=session.chat_id,
        status=PaymentState.WAITING,
        decided_at__isnull=True,
        payer__isnull=False,
        response__chat_id=session.chat_id,
        response__finished_at__isnull=True,
    ).exclude(payer_id=session.principal.user_id)
    return list(rows.select_related("payer").order_by("id"))


def paid_requests(session: OpenSession, response_ids: Collection[str]) -> list[PaymentRequest]:
    """Return the requests of these responses that the session's person or visitor has paid."""
    rows = PaymentRequest.objects.filter(
        asked_in=session.chat_id, response_id__in=response_ids, status=PaymentState.PAID
    ).select_related("response__session")
    return [row for row in rows.order_by("id") if _is_of(row, session)]


def _is_of(row: PaymentRequest, session: OpenSession) -> bool:
    """Return whether a request's payer is the person or visitor of a session."""
    if row.payer_id is not None:
        return row.payer_id == session.principal.user_id
    return _is_asker(row, session)


def _is_asker(row: PaymentRequest, session: OpenSession) -> bool:
    asker = row.response.session
    return asker is not None and asker.principal == session.principal.key


def decided(pks: Sequence[int]) -> list[PaymentRequest]:
    """Return those of the requests that are no longer waiting."""
    return list(PaymentRequest.objects.filter(pk__in=pks).exclude(status=PaymentState.WAITING))


def overdue(now: datetime | Now) -> QuerySet[PaymentRequest]:
    """Return the open requests to end: those past their deadline, or whose response has ended."""
    return _waiting().filter(Q(deadline__lt=now) | Q(response__finished_at__isnull=False))


def _waiting() -> QuerySet[PaymentRequest]:
    return PaymentRequest.objects.filter(status=PaymentState.WAITING, decided_at__isnull=True)


def expire() -> list[PaymentRequest]:
    """End overdue requests and return them; withdraw those whose response has ended."""
    now = timezone.now()
    waiting = _waiting()
    rows = list(waiting.order_by("deadline").values_list("pk", "deadline", "response__finished_at"))
    ended = [pk for pk, _, finished_at in rows if finished_at is not None]
    move(waiting.filter(pk__in=ended), PaymentTrigger.WITHDRAW, decided_at=now)
    due = [pk for pk, deadline, finished_at in rows if finished_at is None and deadline < now]
    late = list(waiting.filter(pk__in=due))
    move(waiting.filter(pk__in=due), PaymentTrigger.EXPIRE, decided_at=now)
    return late
