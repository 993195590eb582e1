"""Who pays for an answer, and how: reserved before the model is called, settled with its end (D7).

The law: money moves in the ledger only, under keys made of the response's id, so that no retry
moves it twice. A payment that waits for a person is a row (UAMP §7.2). Everything here is
synchronous and joins the caller's transaction.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import connection, transaction

from chat_app import selectors as chats
from payments_app import limits, tokens
from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from payments_app.money import AssetMismatch, InvalidAmount, Money

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agents_app.selectors import AgentSpec
    from payments_app.services import HoldOutcome
    from sessions_app.selectors import OpenSession

logger = logging.getLogger(__name__)

NETWORK: Final = "uamp"
"""The network of this server's own tokens and balances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What pays without asking: an account, and what may be taken of it for one answer.

    `user_id` is whose spending limits count, unless it is known that there are none.
    """

    account_id: int
    user_id: int | None = None
    token_id: str = ""
    up_to: Money | None = None
    has_limits: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What a response needs before its model is called; without a `source` somebody is asked."""

    response_id: str
    agent_id: str
    amount: Money
    source: Source | None
    payer_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What a response that ends has to pay; nothing gives all of its reservation back."""

    response_id: str
    chat_id: str
    agent_id: str
    amount: Money
    protocol: str


class BeyondApproval(Exception):
    """An answer would cost more than its payer allowed without being asked."""


class MandateRevoked(Exception):
    """The payer took back what they had allowed beforehand: they are asked from now on."""


REFUSALS: Final = (
    BeyondApproval,
    ledger.LedgerError,
    tokens.TokenRefused,
    limits.LimitReached,
    InvalidAmount,
    AssetMismatch,
)


# --- Who pays ---


def source_of(session: OpenSession, spec: AgentSpec) -> tuple[Source | None, int | None]:
    """Return what pays for an agent's answer without asking, and who is asked otherwise."""
    asset = spec.pricing.currency
    chat_id, asker = session.chat_id, session.principal.user_id
    # Read anew: an owner may have changed it while the session is open.
    match chats.payer_of(chat_id):
        case "sponsor":
            sponsor = spec.owner_id
            return None if sponsor is None else _wallet(sponsor, asset), None
        case "owner":
            owner = chats.owner_id(chat_id)
            return None if owner is None else _wallet(owner, asset), owner
        case "pool":
            return Source(account_id=pool_of(chat_id, asset)), None
        case _:
            return _asker_pays(session, spec, asker, asset), asker


def _asker_pays(
    session: OpenSession, spec: AgentSpec, asker: int | None, asset: str
) -> Source | None:
    if session.payment_token_id:
        source = by_token(session.payment_token_id, spec)
        if source is not None:
            return source
    if asker is None:
        return None
    said = limits.standing(asker, spec.id)
    if said.up_to is None or said.up_to.asset != asset:
        return None
    return replace(_wallet(asker, asset), up_to=said.up_to, has_limits=said.has_limits)


def _wallet(user_id: int, asset: str) -> Source:
    return Source(account_id=_account_of_user(user_id, asset), user_id=user_id)


# Accounts keep their ids for ever.
@lru_cache(maxsize=10_000)
def _account_of_user(user_id: int, asset: str) -> int:
    return ledger.account_of_user(user_id, asset).id


@lru_cache(maxsize=10_000)
def _account_of_agent(agent_id: str, asset: str) -> int:
    return ledger.account_of_agent(agent_id, asset).id


def forget_accounts() -> None:
    """Forget the ids of accounts: the ledger was taken away, as tests do."""
    _account_of_user.cache_clear()
    _account_of_agent.cache_clear()


def by_token(token_id: str, spec: AgentSpec) -> Source | None:
    """Return what a token that was resolved before pays with; None when it ended since."""
    try:
        token = tokens.by_id(token_id, agent=spec.name)
    except tokens.TokenRefused:
        # It ended since it was given: whoever asks is asked for another one.
        return None
    return of_token(token)


def of_token(token: tokens.ResolvedToken) -> Source:
    """Return what a token pays with: as much as it may, and as its owner's limits allow."""
    return Source(
        account_id=token.account_id,
        user_id=token.owner_id,
        token_id=token.id,
        up_to=token.per_use,
    )


def pool_of(chat_id: str, asset: str) -> int:
    """Return the account of a chat's pool, made on first use."""
    return ledger.ensure_account(code=f"pool:{chat_id}:{asset}", kind="pool", asset=asset).id


# --- Reserve ---


def reserve(
    source: Source, *, key: str, amount: Money, response_id: str, agent_id: str, held: Money | None
) -> HoldOutcome:
    """Reserve an amount for a response, within what its payer allowed; raises one of REFUSALS.

    `held` is what is reserved for it already, where that is known.
    """
    # Inside a turn's transaction no savepoint is needed: nothing is written before the last check.
    with nullcontext() if connection.in_atomic_block else transaction.atomic():
        if source.up_to is not None:
            before = held_for(response_id, amount.asset) if held is None else held
            if before + amount > source.up_to:
                raise BeyondApproval(f"{before + amount} would be held, {source.up_to} allowed")
        if source.user_id is not None and source.has_limits:
            limits.check(source.user_id, agent_id, amount)
        return ledger.authorize(
            key=key,
            account_id=source.account_id,
            amount=amount,
            purpose="answer",
            response_id=response_id,
            agent_id=agent_id,
            expires_in=settings.UAMP_HOLD_SECONDS,
        )


def reserve_more(
    source: Source, *, key: str, amount: Money, response_id: str, agent_id: str, held: Money
) -> HoldOutcome:
    """Reserve more for a running answer; raises one of REFUSALS, and MandateRevoked.

    What the payer allowed for an answer is read anew: they may have changed their mind since.
    """
    if source.user_id is not None and source.up_to is not None and not source.token_id:
        allowed = limits.approved_up_to(source.user_id, agent_id)
        if allowed is None or allowed.asset != amount.asset:
            raise MandateRevoked(response_id)
        source = replace(source, up_to=allowed)
    return reserve(
        source, key=key, amount=amount, response_id=response_id, agent_id=agent_id, held=held
    )


def held_for(response_id: str, asset: str) -> Money:
    """Return what is reserved for a response and not yet taken."""
    total = Money.zero(asset)
    for hold in ledger_rows.holds_of_response(response_id):
        if hold.state == "active":
            total += hold.amount - hold.captured
    return total


def reserve_all(wanted: Iterable[Reservation]) -> dict[str, HoldOutcome]:
    """Reserve for the responses of many turns; who is refused is left out, and asked later.

    Called with every chat of the transaction locked; accounts follow in one order (notes §5).
    """
    paid: dict[str, HoldOutcome] = {}
    plain: list[Reservation] = []
    named = [(w.source, w) for w in wanted if w.source is not None]
    for source, one in sorted(named, key=lambda pair: (pair[0].account_id, pair[1].response_id)):
        if source.user_id is None or not source.has_limits:
            plain.append(one)
            continue
        # A limit counts what those before took.
        try:
            paid[one.response_id] = reserve(
                source, key=_first_key(one), amount=one.amount, response_id=one.response_id,
                agent_id=one.agent_id, held=Money.zero(one.amount.asset),
            )  # fmt: skip
        except REFUSALS as error:
            _refused(one, error)
    return paid | _reserve_plain(plain)


def _reserve_plain(wanted: Sequence[Reservation]) -> dict[str, HoldOutcome]:
    """Reserve where nothing but the money and what was allowed for one answer says no."""
    asked = {
        one.response_id: ledger.Authorization(
            key=_first_key(one),
            account_id=one.source.account_id,
            amount=one.amount,
            purpose="answer",
            response_id=one.response_id,
            agent_id=one.agent_id,
            expires_in=settings.UAMP_HOLD_SECONDS,
        )
        for one in wanted
        if one.source is not None and _allowed(one, one.source)
    }
    answers = ledger.authorize_many(list(asked.values()))
    by_id = {one.response_id: one for one in wanted}
    paid = {}
    for response_id, answer in zip(asked, answers, strict=True):
        if isinstance(answer, ledger.HoldOutcome):
            paid[response_id] = answer
        else:
            _refused(by_id[response_id], answer)
    return paid


def _allowed(one: Reservation, source: Source) -> bool:
    if source.up_to is None or one.amount <= source.up_to:
        return True
    _refused(one, BeyondApproval(f"{one.amount} would be held, {source.up_to} allowed"))
    return False


def _first_key(one: Reservation) -> str:
    return f"hold:{one.response_id}:0"


def _refused(one: Reservation, error: Exception) -> None:
    logger.info("the payer of %s is asked: %s", one.response_id, error)


# --- Settle ---


def settle_all(charges: Sequence[Charge]) -> dict[str, Money]:
    """Take what responses used of what is reserved for them, and give the rest back (DESIGN D7).

    Returns what the payer of each has left, by response. What goes beyond a reservation is not
    taken: an answer stops before that.
    """
    left = {}
    for charge, answer in zip(
        charges, ledger.capture_many([_capture(one, one.amount) for one in charges]), strict=True
    ):
        outcome = answer
        if isinstance(outcome, ledger.OverCapture):
            logger.warning("%s used %s, held: %s", charge.response_id, charge.amount, outcome.left)
            outcome = ledger.capture_many([_capture(charge, outcome.left)])[0]
        if isinstance(outcome, ledger.CaptureOutcome):
            left[charge.response_id] = outcome.available
        elif not isinstance(outcome, ledger.HoldNotActive | ledger.UnknownHold):
            raise outcome
        elif charge.amount:
            logger.error("%s of %s stays unpaid: %s", charge.amount, charge.response_id, outcome)
    return left


def _capture(charge: Charge, amount: Money) -> ledger.Capture:
    fee = amount.share(settings.UAMP_FEE_BASIS_POINTS, 10_000)
    earned = amount - fee
    splits = []
    if earned:
        splits.append(ledger.Split(_account_of_agent(charge.agent_id, amount.asset), earned))
    if fee:
        splits.append(ledger.Split(None, fee))
    return ledger.Capture(
        key=f"settle:{charge.response_id}",
        response_id=charge.response_id,
        amount=amount,
        splits=splits,
        kind="answer",
        release=True,
        about=ledger.About(
            chat_id=charge.chat_id, agent_id=charge.agent_id, protocol=charge.protocol
        ),
    )


def payer_balance(response_id: str) -> Money | None:
    """Return what the account that paid for a response has left; None when nothing was held."""
    return ledger_rows.balance_behind(response_id)
