"""Holds within people's limits and sponsors' budgets.

Limits are checked in the transaction that reserves, while the person's account is locked together
with the paying accounts. So two answers that start at once can neither both take the last of a
limit nor deadlock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Q

from payments_app.ledger import balances, holds
from payments_app.ledger.accounts import account_of_user
from payments_app.ledger.outcomes import Authorization, HoldOutcome, LimitReached
from payments_app.models import PaymentToken, SpendingLimit
from payments_app.money import Money
from payments_app.spending.audiences import Bindings, not_bound
from payments_app.spending.budgets import SPONSOR, BudgetGuard
from payments_app.spending.limits import state_of
from payments_app.spending.periods import PERIODS, database_now, period_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from payments_app.ledger.captures import Refusal


def authorize(request: Authorization) -> HoldOutcome:
    """Make one reservation; raises LimitReached and the refusals of `authorize_many`."""
    with transaction.atomic():
        answer = authorize_many([request])[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def authorize_many(requests: Sequence[Authorization]) -> list[HoldOutcome | Refusal]:
    """Make many reservations within the limits of `limits_of`; see `holds.authorize_many`.

    LimitReached is a refusal like the others, and so is NotForAgent for a token. A limit counts
    reservations earlier in the list. What is reserved of a token binds its name of the agent.
    """
    limited = any(
        request.limits_of is not None or request.credential or request.purpose == SPONSOR
        for request in requests
    )
    guard = LimitGuard() if limited else None
    token_ids = not_bound(requests)
    if not token_ids:
        return holds.authorize_many(requests, guard)
    with transaction.atomic():
        bindings = Bindings(requests, token_ids)
        refused = {place: bindings.refusal(request) for place, request in enumerate(requests)}
        allowed = [request for place, request in enumerate(requests) if refused[place] is None]
        answers = iter(holds.authorize_many(allowed, guard))
        outcomes = [refused[place] or next(answers) for place in range(len(requests))]
        for request, answer in zip(requests, outcomes, strict=True):
            bindings.bind(request, answer)
    return outcomes


def extend(
    *,
    key: str,
    hold_id: str,
    amount: Money,
    limits_of: int | None,
    expires_in: float = 900.0,
    scope: str = "",
) -> HoldOutcome:
    """Reserve more for a hold within a person's limits; also raises what `holds.extend` raises."""
    return holds.extend(
        key=key,
        hold_id=hold_id,
        amount=amount,
        expires_in=expires_in,
        scope=scope,
        limits_of=limits_of,
        guard=None if limits_of is None else LimitGuard(),
    )


class CredentialBudgetReached(LimitReached):
    """The budget of the credential that requested the work would be exceeded."""


class LimitGuard:
    """The limits of all payers of a list of holds, checked under their locks.

    The budget of a credential is checked no matter who pays, under the lock of its person.
    """

    def __init__(self) -> None:
        self._rows: list[SpendingLimit] = []
        # The token of an account, and the tokens it was derived from.
        self._tokens: dict[int, set[str]] = {}
        self._remaining: dict[int, Money] = {}
        self._now: datetime | None = None
        self._budgets = BudgetGuard()

    def accounts(self, requests: Collection[Authorization]) -> set[int]:
        """Return the accounts on which people's answers queue, whichever account pays."""
        users = {request.limits_of for request in requests if request.limits_of is not None}
        credentials = {request.credential for request in requests if request.credential}
        rows = SpendingLimit.objects.filter(
            Q(user_id__in=users, credential="") | Q(credential__in=credentials)
        )
        self._rows = sorted(rows, key=lambda row: (PERIODS.index(row.period), row.agent_id))
        if any(row.token_id for row in self._rows):
            self._tokens = _tokens_behind({request.account_id for request in requests})
        concerned = {(row.user_id, row.asset) for request in requests for row in self._of(request)}
        # Sorted, so that two lists that create the same accounts cannot deadlock.
        return {account_of_user(*pair).id for pair in sorted(concerned)}

    def allow(self, request: Authorization) -> None:
        """Raise LimitReached if a limit does not allow this."""
        if self._now is None:
            self._now = database_now()
        self._budgets.allow(request, self._now)
        for row in self._of(request):
            if row.pk not in self._remaining:
                state = state_of(row, self._now)
                self._remaining[row.pk] = state.limit.amount - state.spent - state.held
            remaining = self._remaining[row.pk]
            if request.amount > remaining:
                _, resets_at = period_of(row.period, self._now)
                error = CredentialBudgetReached if row.credential else LimitReached
                raise error(row.period, max(remaining, Money.zero(row.asset)), resets_at)

    def took(self, request: Authorization) -> None:
        """Count a reservation, whose row is written only after the last request is checked."""
        self._budgets.took(request)
        for row in self._of(request):
            self._remaining[row.pk] -= request.amount

    def _of(self, request: Authorization) -> list[SpendingLimit]:
        return [
            row
            for row in self._rows
            if row.asset == request.amount.asset
            and (
                row.credential == request.credential
                if row.credential
                else self._is_limit_of_payer(row, request)
            )
        ]

    def _is_limit_of_payer(self, row: SpendingLimit, request: Authorization) -> bool:
        return (
            row.user_id == request.limits_of
            and row.agent_id in {"", request.agent_id}
            and (row.token_id is None or row.token_id in self._tokens.get(request.account_id, ()))
        )


def check(
    user_id: int | None,
    agent_id: str,
    amount: Money,
    *,
    account_id: int = 0,
    purpose: str = "",
    credential: str = "",
) -> None:
    """Raise LimitReached if the limits of a person or credential forbid this now; reserves nothing.

    `account_id` is the account that would pay, if it is a token's. `authorize` checks actual
    reservations together with the paying accounts.
    """
    guard = LimitGuard()
    request = Authorization(
        key="",
        account_id=account_id,
        amount=amount,
        purpose=purpose,
        agent_id=agent_id,
        limits_of=user_id,
        credential=credential,
    )
    balances.lock_accounts(guard.accounts([request]))
    guard.allow(request)


def _tokens_behind(account_ids: Collection[int]) -> dict[int, set[str]]:
    """Return, for those accounts that are tokens', the token and its ancestors."""
    rows = PaymentToken.objects.filter(account_id__in=account_ids)
    behind = {}
    # As deep as a token may be passed on.
    for row in rows.select_related("parent__parent__parent__parent__parent"):
        token: PaymentToken | None = row
        behind[row.account_id] = token_ids = set[str]()
        while token is not None:
            token_ids.add(token.pk)
            token = token.parent
    return behind
