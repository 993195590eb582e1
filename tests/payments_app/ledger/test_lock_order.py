"""Every operation locks in one order: keys, holds, all its accounts by id (PostgreSQL)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from payments_app import services
from payments_app.ledger import expiry, sql
from payments_app.spending import limits
from payments_app.spending.limits import Limit
from payments_app.tokens import issuance, locks
from payments_app.tokens.locks import Charge, Payee
from tests import factories
from tests.payments_app.funded_accounts import hold, new_key, usd
from tests.payments_app.ledger.concurrency import kinds, together

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from payments_app.tokens.issuance import IssuedToken

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]

ROUNDS = 20


def limited(name: str) -> User:
    """Return a person with money and a spending limit."""
    person = factories.user(name)
    account = services.account_of_user(person.pk)
    services.top_up(
        key=name, account=account.id, amount=usd("1000"), provider="test", external_id=name
    )
    limits.set_limits(person.pk, [Limit(period="day", agent_id="", amount=usd("1000"))])
    return person


def token_of(person: User) -> IssuedToken:
    """Return a new token of a person's."""
    return issuance.issue(key=new_key(), user_id=person.pk, amount=usd("100"), expires_in=None)


def test_groups_of_turns_that_pay_within_limits_never_wait_in_a_circle() -> None:
    """Two processes begin turns whose tokens belong to the same people, the other way round."""
    ada, bob = limited("ada"), limited("bob")
    groups = [
        [(token_of(person), person.pk) for person in people] for people in ((bob, ada), (ada, bob))
    ]

    def begin(number: int) -> list[str]:
        authorizations = [
            services.Authorization(
                key=new_key(), account_id=token.account_id, amount=usd("0.01"), limits_of=user_id
            )
            for token, user_id in groups[number]
        ]
        return kinds(services.authorize_many(authorizations))

    for _ in range(ROUNDS):
        assert together(lambda: begin(0), lambda: begin(1)) == [["HoldOutcome"] * 2] * 2


def test_a_token_that_is_settled_at_once_and_a_lock_on_it_never_wait_in_a_circle() -> None:
    """The account of the agent is older than the token's."""
    payee = Payee(user_id=factories.user("owner").pk, agents=(("agent", "agent"),))
    services.account_of_agent("agent")
    token = token_of(limited("ada"))
    charge = Charge(amount=usd("0.01"), agent_id="agent", release=True)
    for _ in range(ROUNDS):
        locked = locks.lock(payee, key=new_key(), secret=token.token, amount=usd("0.01"))

        def later(lock_id: str = locked["lock_id"]) -> str:
            done = locks.settle(payee, key=new_key(), lock_id=lock_id, charge=charge)
            return str(done["charged"])

        def at_once() -> str:
            done = locks.settle_token(payee, key=new_key(), secret=token.token, charge=charge)
            return str(done["charged"])

        assert together(later, at_once, at_once) == ["0.01"] * 3


def test_a_lock_that_grows_and_the_expiry_never_wait_in_a_circle() -> None:
    """Both are of holds whose time is over, one of them of the owner's own account."""
    payee = Payee(user_id=factories.user("owner").pk, agents=(("agent", "agent"),))
    ada = limited("ada")
    token = token_of(ada)
    for _ in range(ROUNDS):
        hold(services.account_of_user(ada.pk), "0.01")
        locked = locks.lock(payee, key=new_key(), secret=token.token, amount=usd("0.01"))
        sql.run("UPDATE payments_app_hold SET expires_at = created_at WHERE state = 'active'")

        def grow(lock_id: str = locked["lock_id"]) -> str:
            done = locks.extend(payee, key=new_key(), lock_id=lock_id, amount=usd("0.01"))
            return str(done["amount"])

        grown, _ = together(grow, expiry.expire_holds)

        assert grown == "0.02" or isinstance(grown, services.HoldNotActive)
        expiry.expire_holds()
