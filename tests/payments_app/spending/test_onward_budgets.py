"""Budgets for remote agents: their owners enter them freely, so no number of them adds up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agents_app.models import Agent, AgentKind
from payments_app import services
from payments_app.models import Account, Transfer
from payments_app.spending.onward import BudgetLedger
from tests import factories
from tests.payments_app.funded_accounts import usd
from tests.payments_app.rest.rest_caller import Caller

if TYPE_CHECKING:
    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db

LARGEST = "100000"


def remote(name: str, owner: User) -> Agent:
    agent = factories.agent(name, owner=owner)
    Agent.objects.filter(pk=agent.pk).update(kind=AgentKind.REMOTE)
    return agent


def test_a_budget_has_a_largest_amount() -> None:
    ada = Caller(factories.user("ada"))
    remote("far", ada.person)
    assert ada.send("PUT", "onward/far", {"amount": LARGEST}).status_code == 200

    for amount in ("100000.000000001", "999999999"):
        problem = ada.refused("PUT", "onward/far", {"amount": amount})
        assert (problem["status"], "at most 100000" in str(problem)) == (400, True)

    assert ada.get("onward/far")["left"] == LARGEST
    assert Transfer.objects.count() == 1


def test_no_two_budgets_add_up_in_one_account() -> None:
    ada, bob = Caller(factories.user("ada")), Caller(factories.user("bob"))
    for number in range(12):
        caller = ada if number % 2 else bob
        remote(f"far{number}", caller.person)
        answer = caller.send("PUT", f"onward/far{number}", {"amount": LARGEST})
        assert answer.status_code == 200, answer.content

    balances = set(Account.objects.values_list("posted", flat=True))
    assert balances == {usd(LARGEST).amount, -usd(LARGEST).amount}
    assert services.audit().clean


def test_what_is_paid_and_taken_back_goes_to_the_mirror_of_the_budget() -> None:
    ada = Caller(factories.user("ada"))
    agent = remote("far", ada.person)
    ada.send("PUT", "onward/far", {"amount": "5"})
    ledger = BudgetLedger()

    hold_id = ledger.reserve(agent.pk, "resp_1", "2", "USD")
    ledger.settle("resp_1", hold_id, "1.5", "USD")
    assert ada.get("onward/far")["spent"] == "1.5"
    ada.send("PUT", "onward/far", {"amount": "0"})

    assert set(Account.objects.values_list("posted", flat=True)) == {0}
    assert Account.objects.count() == 2
    assert services.audit().clean
