"""People with money, and the payment tokens that they issue."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from payments_app import services
from payments_app.models import PaymentToken
from payments_app.tokens import issuance
from payments_app.tokens import lookup as token_lookup
from payments_app.tokens.lookup import TokenRefused
from tests import factories
from tests.payments_app.funded_accounts import available, new_key, usd
from tests.threads import join_threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User
    from pytest_django import DjangoDbBlocker

    from payments_app.tokens.issuance import IssuedToken


def rich(name: str = "ada", amount: str = "10") -> User:
    """Return a person with money."""
    person = factories.user(name)
    account = services.account_of_user(person.pk)
    services.top_up(
        key=new_key(),
        account=account.id,
        amount=usd(amount),
        provider="test",
        external_id=new_key(),
    )
    return person


def issue(person: User, amount: str = "1", **fields: Any) -> IssuedToken:
    return issuance.issue(
        **{
            "key": new_key(),
            "user_id": person.pk,
            "amount": usd(amount),
            "expires_in": 3600,
            **fields,
        }
    )


def delegate(parent: IssuedToken, amount: str = "0.1", to: str = "helper", **more: Any) -> Any:
    return issuance.delegate(
        **{
            "key": new_key(),
            "caller_id": 0,
            "parent_secret": parent.token,
            "amount": usd(amount),
            "delegate_to": to,
            **more,
        }
    )


def wallet(person: User) -> str:
    return available(services.account_of_user(person.pk))


def expire(token: IssuedToken) -> None:
    PaymentToken.objects.filter(pk=token.id).update(
        expires_at=datetime.now(UTC) - timedelta(seconds=1)
    )


def race(unblock: DjangoDbBlocker, *jobs: Callable[[], object]) -> list[object]:
    """Run jobs at once on threads of their own; return their results or refusals."""
    results: list[object] = [None] * len(jobs)
    start = threading.Barrier(len(jobs))

    def run(place: int) -> None:
        with unblock.unblock():
            start.wait(60)
            try:
                results[place] = jobs[place]()
            except Exception as error:  # noqa: BLE001 the test looks at it
                results[place] = error
            finally:
                connection.close()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(jobs))]
    for thread in threads:
        thread.start()
    join_threads(threads)
    return results


def refusal(secret: str, **more: str) -> str:
    with pytest.raises(TokenRefused) as caught:
        token_lookup.resolve(secret, **more)
    assert secret not in str(caught.value)
    return caught.value.code
