"""Nothing stays reserved for an answer that ends first: its end has settled already."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction
from django.utils import timezone

from payments_app.models import Hold
from payments_app.money import Money
from sessions_app import selectors
from sessions_app.access import auth
from sessions_app.billing import payers, requests, reservations
from sessions_app.models import Response
from tests.client import wait_until
from tests.sessions_app.billing.interrupted_payments import (
    DOLLAR,
    asked_for,
    asker_balance,
    left_behind,
)
from tests.threads import join_threads, waits_for_a_lock
from uamp import ResponseState
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_django import DjangoDbBlocker


def _pay(response: Response) -> object:
    """Pay what a response waits for from the asker's account; return what came of it."""
    assert response.session is not None
    assert response.session.user is not None
    session = selectors.find_session(response.session.pk, auth.of_user(response.session.user))
    assert session is not None
    payment = ev.Payment(scheme="balance", network="uamp")
    try:
        return requests.submit(session, ev.PaymentSubmit(payment=payment))
    except LookupError as refused:
        return refused


def _take(response: Response) -> object:
    """Reserve more from the asker's account, as a running answer does; return what came of it."""
    assert response.session is not None
    accounts = payers.account_ids([("user", str(response.session.user_id), "USD")])
    purchase = payers.Purchase(
        chat_id=response.chat_id,
        agent_id=response.agent_id,
        agent="quick",
        asset="USD",
        asker_id=response.session.user_id,
    )
    try:
        return reservations.reserve_more(
            payers.AnswerPayment(
                source=payers.Source(account_id=next(iter(accounts.values()))),
                payer_id=response.session.user_id,
                purchase=purchase,
            ),
            key="more",
            amount=DOLLAR,
            response_id=response.pk,
            held=Money.zero("USD"),
        )
    except reservations.AnswerEnded as refused:
        return refused


def _end(response: Response) -> None:
    Response.objects.filter(pk=response.pk).update(
        status=ResponseState.CANCELLED, finished_at=timezone.now()
    )


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("reserve", [_pay, _take])
def test_nothing_is_held_for_an_answer_that_ends_at_the_same_time(
    reserve: Callable[[Response], object], django_db_blocker: DjangoDbBlocker
) -> None:
    response = left_behind("waiting")
    asked_for(response)
    refused: list[object] = []

    def run() -> None:
        with django_db_blocker.unblock():
            try:
                refused.append(reserve(response))
            finally:
                connection.close()

    payer = threading.Thread(target=run)
    with transaction.atomic():
        _end(response)
        payer.start()
        wait_until(lambda: not payer.is_alive() or waits_for_a_lock())
    join_threads([payer])
    assert isinstance(refused[0], LookupError | reservations.AnswerEnded)
    assert not Hold.objects.exists()
    assert asker_balance(response) == "5"


@pytest.mark.django_db(transaction=True)
def test_an_answer_that_has_ended_reserves_no_more() -> None:
    response = left_behind("waiting")
    _end(response)
    assert isinstance(_take(response), reservations.AnswerEnded)
    assert not Hold.objects.exists()
