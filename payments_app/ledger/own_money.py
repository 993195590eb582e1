"""Operators may not decide about their own money: another operator has to.

An account is a person's own if they or their agent own it, if it is the pool of a chat that they
are or were a member of, or if it belongs to a payment on a chain that they sent, or to a token
derived from one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db.models import Q

from agents_app.models import Agent
from payments_app.ledger.outcomes import OwnMoney
from payments_app.models import Account, AccountKind, PaymentToken, Receipt

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

_pool_rules: Final[list[Callable[[int, Collection[str]], bool]]] = []


def pools_known_by(is_in_any: Callable[[int, Collection[str]], bool]) -> None:
    """Register the function that says whether a person is or was in any of these chats."""
    _pool_rules.append(is_in_any)


def refuse_own(account_ids: Iterable[int], by: int | None) -> None:
    """Raise OwnMoney if one of the accounts is the operator's own.

    `by` is None for decisions by the server or at its command line.
    """
    if by is None:
        return
    ids = set(account_ids)
    if _owns(ids, by) or _shares_a_pool(ids, by) or _paid_into(ids, by):
        raise OwnMoney("This is your own money: another operator has to decide.")


def _owns(ids: Collection[int], by: int) -> bool:
    agents = Agent.objects.filter(owner_id=by).values("pk")
    return Account.objects.filter(Q(owner_id=by) | Q(agent_id__in=agents), pk__in=ids).exists()


def _shares_a_pool(ids: Collection[int], by: int) -> bool:
    codes = Account.objects.filter(pk__in=ids, kind=AccountKind.POOL).values_list("code", flat=True)
    chats = {code.split(":")[1] for code in codes}
    return bool(chats) and any(is_in_any(by, chats) for is_in_any in _pool_rules)


def _paid_into(ids: Collection[int], by: int) -> bool:
    """Return whether a person sent the payment behind an account, or behind a token's ancestor."""
    accounts, children = set(ids), set(ids)
    while children:
        parents = PaymentToken.objects.filter(account__in=children, parent__isnull=False)
        children = set(parents.values_list("parent__account", flat=True)) - accounts
        accounts |= children
    return Receipt.objects.filter(account__in=accounts, payload__user=by).exists()
