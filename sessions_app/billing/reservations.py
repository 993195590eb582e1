"""Payment of an answer: reserved before the model is called, settled when it ends.

Money moves only in the ledger, under keys derived from the response's id, so retries cannot move it
twice. A payment that waits for a person is a row (UAMP §7.2). Everything here is synchronous and
joins the caller's transaction.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction

from agents_app.pricing import FREE
from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from payments_app.money import AssetMismatch, InvalidAmount, Money
from payments_app.spending import authorizations, budgets
from payments_app.tokens import lookup as token_lookup
from sessions_app.billing import chat_budgets
from sessions_app.billing.payers import AnswerPayment, account_ids, current_payment, who_pays
from sessions_app.billing.questions import lock_question, taken_for_question
from sessions_app.models import Response
from telemetry import log_fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from agents_app.pricing import Pricing
    from payments_app.services import HoldOutcome
    from sessions_app.billing.payers import AccountOwner, Purchase, Source

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A reservation that a response needs before its model is called.

    `source` is set if the transport had the answer paid up front; otherwise it is determined when
    reserving. The amount is zero if only the agent's tools have a price. `pricing` stays the price
    of the answer. Raises InvalidAmount for a negative amount.
    """

    response_id: str
    purchase: Purchase
    amount: Money
    pricing: Pricing = FREE
    source: Source | None = None

    def __post_init__(self) -> None:
        if self.amount.amount < 0:
            raise InvalidAmount("A negative amount cannot be reserved.")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCharge:
    """The charge for an ended response; zero releases its whole reservation.

    `transfer_id` is the id of the transfer, which the answer's signature names; if several holds
    pay, it is the first transfer's.
    """

    response_id: str
    chat_id: str
    agent_id: str
    amount: Money
    protocol: str
    transfer_id: str = ""

    def __post_init__(self) -> None:
        if self.amount.amount < 0:
            raise InvalidAmount("The cost of an answer must not be negative.")


class BeyondApproval(Exception):
    """An answer would cost more than its payer approved in advance."""


class AnswerEnded(Exception):
    """The answer is already settled, so a new reservation would never be released."""


class MandateRevoked(Exception):
    """The payer has withdrawn their advance approval and must be asked from now on."""


REFUSALS: Final = (
    AnswerEnded,
    BeyondApproval,
    chat_budgets.BudgetReached,
    ledger.LedgerError,
    token_lookup.TokenRefused,
    InvalidAmount,
    AssetMismatch,
)


# --- Reserve ---


def reserve(
    source: Source,
    purchase: Purchase,
    *,
    key: str,
    amount: Money,
    response_id: str,
    held: Money | None,
) -> HoldOutcome:
    """Reserve an amount for a response within its payer's approval; raises one of REFUSALS.

    `held` is the amount already reserved, if known. The chat of `purchase`, whose budgets apply,
    has been locked by `chat_budgets.lock_if_limited`.
    """
    with transaction.atomic():
        chat_budgets.check(purchase.chat_id, purchase.agent_id, amount)
        if source.up_to is not None:
            before = held_for(response_id, amount.asset) if held is None else held
            before += taken_for_question(_question(source, purchase), purchase, response_id)
            if before + amount > source.up_to:
                raise BeyondApproval(f"{before + amount} would be held, {source.up_to} allowed")
        return ledger.authorize(
            _authorization(source, purchase, key=key, amount=amount, response_id=response_id)
        )


def lock_running(response_id: str) -> bool:
    """Lock a running response, so that its end, which settles, waits for this transaction.

    Return False if it has already ended.
    """
    running = Response.objects.select_for_update(no_key=True).filter(
        pk=response_id, finished_at__isnull=True
    )
    return running.values_list("pk", flat=True).first() is not None


@transaction.atomic
def reserve_more(
    payment: AnswerPayment, *, key: str, amount: Money, response_id: str, held: Money
) -> tuple[AnswerPayment, HoldOutcome]:
    """Reserve more for a running answer; return its current payment and the hold.

    The payer and their approval are reread, since the payer may have left the chat or changed their
    mind. If the run is stopped while this waits for the database, it ends and settles first. Raises
    one of REFUSALS, or MandateRevoked.
    """
    chat_budgets.lock_if_limited([payment.purchase.chat_id])
    if not lock_running(response_id):
        raise AnswerEnded(response_id)
    before, now = payment.source, current_payment(payment)
    if now.source is None:
        if before is not None and before.up_to is not None and now.payer_id == payment.payer_id:
            raise MandateRevoked(response_id)
        raise BeyondApproval(f"{amount} would be held, nothing more is allowed")
    hold = reserve(
        now.source,
        payment.purchase,
        key=key,
        amount=amount,
        response_id=response_id,
        held=held,
    )
    return now, hold


def held_for(response_id: str, asset: str) -> Money:
    """Return the amount reserved for a response and not yet captured."""
    total = Money.zero(asset)
    for hold in ledger_rows.holds_of_response(response_id):
        if hold.state == "active":
            total += hold.amount - hold.captured
    return total


def payment_now(reservation: Reservation) -> AnswerPayment:
    """Return an answer's current payment, without a source if too little is approved.

    Nothing is reserved. For transports that cannot ask later.
    """
    payment = who_pays([reservation.purchase])[reservation.purchase]
    source = payment.source
    if source is None or _could_pay(source, reservation):
        return payment
    return replace(payment, source=None)


def _could_pay(source: Source, reservation: Reservation) -> bool:
    if not _Approvals().allow(reservation, source):
        return False
    limits_of = source.user_id if source.has_limits else None
    is_sponsor = source.purpose == budgets.SPONSOR
    if limits_of is not None or is_sponsor or reservation.purchase.credential:
        try:
            with transaction.atomic():
                authorizations.check(
                    limits_of,
                    reservation.purchase.agent_id,
                    reservation.amount,
                    account_id=source.account_id,
                    purpose=source.purpose,
                    credential=reservation.purchase.credential,
                )
        except ledger.LimitReached:
            return False
    return ledger_rows.balance(source.account_id).available >= reservation.amount


def reserve_all(reservations: Sequence[Reservation]) -> dict[str, AnswerPayment]:
    """Reserve for the responses of many turns; return the payment of each response.

    If a payer is refused, nothing is reserved for the response, and the payer is asked later. The
    caller has locked the chats of the turns. Delegated work counts in the budget of another chat,
    so the chats with budgets are locked here, and then the accounts in a fixed order.
    """
    guard = chat_budgets.ChatBudgetGuard(
        reservation.purchase.chat_id for reservation in reservations
    )
    guard.lock()
    current = who_pays(
        reservation.purchase for reservation in reservations if reservation.source is None
    )
    payments = {
        reservation.response_id: current[reservation.purchase]
        if reservation.source is None
        else AnswerPayment(
            source=reservation.source,
            payer_id=reservation.purchase.asker_id,
            purchase=reservation.purchase,
        )
        for reservation in reservations
    }
    allowed = _Approvals().allow
    holds = [
        _first(reservation, source)
        for reservation in reservations
        if reservation.amount
        and (source := payments[reservation.response_id].source) is not None
        and allowed(reservation, source)
        and _within(guard, reservation)
    ]
    paid = {}
    for question, answer in zip(holds, ledger.authorize_many(holds), strict=True):
        if isinstance(answer, ledger.HoldOutcome):
            paid[question.response_id] = answer
        else:
            _refused(question.response_id, answer)
    return {
        response_id: replace(payment, first=paid.get(response_id))
        for response_id, payment in payments.items()
    }


def _first(reservation: Reservation, source: Source) -> ledger.Authorization:
    return _authorization(
        source,
        reservation.purchase,
        key=f"hold:{reservation.response_id}:0",
        amount=reservation.amount,
        response_id=reservation.response_id,
    )


def _authorization(
    source: Source, purchase: Purchase, *, key: str, amount: Money, response_id: str
) -> ledger.Authorization:
    """Return a hold of an answer: the source pays, the purchase says whose budgets count it."""
    return ledger.Authorization(
        key=key,
        account_id=source.account_id,
        amount=amount,
        purpose=source.purpose,
        response_id=response_id,
        agent_id=purchase.agent_id,
        chat_id=purchase.chat_id,
        expires_in=settings.UAMP_HOLD_SECONDS,
        limits_of=source.user_id if source.has_limits else None,
        credential=purchase.credential,
        asker_id=purchase.asker_id,
    )


def _question(source: Source, purchase: Purchase) -> str:
    """Return the question that an approval covers; "" for a token, which has limits of its own."""
    return "" if source.token_id else lock_question(purchase)


class _Approvals:
    """Counts what the reservations of one transaction take from standing approvals."""

    def __init__(self) -> None:
        # By the question, and the agent.
        self._reserved: dict[tuple[str, str], Money] = {}

    def allow(self, reservation: Reservation, source: Source) -> bool:
        """Return whether the payer's approval covers a reservation; if so, count it."""
        if source.up_to is None:
            return True
        purchase, question = reservation.purchase, _question(source, reservation.purchase)
        where = (question, purchase.agent_id)
        reserved = self._reserved.get(where, Money.zero(purchase.asset))
        earlier = taken_for_question(question, purchase, reservation.response_id)
        needed = reservation.amount + reserved + earlier
        if needed <= source.up_to:
            if question:
                self._reserved[where] = reserved + reservation.amount
            return True
        error = BeyondApproval(f"{needed} would be held, {source.up_to} allowed")
        _refused(reservation.response_id, error)
        return False


def _within(guard: chat_budgets.ChatBudgetGuard, reservation: Reservation) -> bool:
    """Return whether the chat's budgets allow a reservation; logs a refusal."""
    where = (reservation.purchase.chat_id, reservation.purchase.agent_id, reservation.amount)
    try:
        guard.allow(*where)
    except chat_budgets.BudgetReached as error:
        _refused(reservation.response_id, error)
        return False
    guard.took(*where)
    return True


def _refused(response_id: str, error: Exception) -> None:
    logger.info("requesting payment for %s: %s", response_id, error)


# --- Settle ---


def settle_all(charges: Sequence[AnswerCharge]) -> dict[str, Money]:
    """Charge responses for their usage and release the rest of their reservations.

    Return each payer's remaining balance by response. Nothing beyond a reservation is charged,
    since answers stop before that.
    """
    available = {}
    earners = account_ids(("agent", entry.agent_id, entry.amount.asset) for entry in charges)
    captures = [_capture(entry, entry.amount, earners) for entry in charges]
    for charge, answer in zip(charges, ledger.capture_many(captures), strict=True):
        outcome = answer
        if isinstance(outcome, ledger.OverCapture):
            with _ids_of(charge):
                logger.warning(
                    "%s used %s, held: %s", charge.response_id, charge.amount, outcome.left
                )
            outcome = ledger.capture_many([_capture(charge, outcome.left, earners)])[0]
        if isinstance(outcome, ledger.CaptureOutcome):
            available[charge.response_id] = outcome.available
        elif not isinstance(outcome, ledger.HoldNotActive | ledger.UnknownHold):
            raise outcome
        elif charge.amount:
            with _ids_of(charge):
                logger.error(
                    "%s of %s stays unpaid: %s", charge.amount, charge.response_id, outcome
                )
    return available


def _ids_of(charge: AnswerCharge) -> AbstractContextManager[None]:
    """Return a context whose log lines belong to an answer: the turns of a group share a thread."""
    return log_fields.within(response_id=charge.response_id, payment_id=charge.transfer_id)


def _capture(
    charge: AnswerCharge, amount: Money, earners: Mapping[AccountOwner, int]
) -> ledger.Capture:
    fee = amount.share(settings.UAMP_FEE_BASIS_POINTS, 10_000)
    earned = amount - fee
    splits = []
    if earned:
        splits.append(ledger.Split(earners["agent", charge.agent_id, amount.asset], earned))
    if fee:
        splits.append(ledger.Split(None, fee))
    return ledger.Capture(
        key=f"settle:{charge.response_id}",
        response_id=charge.response_id,
        amount=amount,
        splits=splits,
        kind="answer",
        release=True,
        transfer_id=charge.transfer_id,
        about=ledger.About(
            chat_id=charge.chat_id, agent_id=charge.agent_id, protocol=charge.protocol
        ),
    )


def payer_balance(response_id: str) -> Money | None:
    """Return the balance of a response's payer; None if nothing was held."""
    return ledger_rows.balance_behind(response_id)
