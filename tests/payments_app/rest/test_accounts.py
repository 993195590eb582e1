"""The caller's account over REST: balance, statement, spending, limits and approvals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from agents_app.models import Agent
from payments_app import services
from payments_app.spending import approvals
from tests import factories
from tests.payments_app.funded_accounts import authorize, new_key, usd
from tests.payments_app.rest.worker_payments import lock, token_of
from tests.payments_app.tokens.issued_tokens import wallet

if TYPE_CHECKING:
    from tests.payments_app.rest.rest_caller import Caller

pytestmark = pytest.mark.django_db


# --- The caller's account ---


def test_the_balance_says_what_is_held_too(ada: Caller) -> None:
    account = services.account_of_user(ada.person.pk)
    authorize(key=new_key(), account_id=account.id, amount=usd("1"))
    answer = ada.get("balance")
    assert (answer["available"], answer["held"], answer["posted"]) == ("9", "1", "10")
    assert (answer["balance"], answer["balanceDollars"], answer["currency"]) == ("9", "9", "USD")
    assert ada.client.get("/api/balance").json() == answer
    assert Client().get("/api/balance").status_code == 401
    assert ada.get("balance?currency=CREDITS")["available"] == "0"
    assert ada.refused("GET", "balance?currency=EUR")["code"] == "invalid"


def test_a_statement_is_read_page_by_page(ada: Caller) -> None:
    for number in range(4):
        token_of(ada, name=f"token {number}")
    first = ada.get("statement?limit=3")
    assert [row["memo"] for row in first["data"]] == ["token 3", "token 2", "token 1"]
    assert (first["has_more"], first["data"][0]["amount"]) == (True, "-1")
    token_of(ada, name="meanwhile")
    rest = ada.get(f"statement?limit=3&cursor={first['next_cursor']}")
    assert [(row["kind"], row["amount"]) for row in rest["data"]] == [
        ("token", "-1"),
        ("top_up", "10"),
    ]
    assert (rest["has_more"], rest["next_cursor"]) == (False, None)


def test_spending_is_reported_by_day_and_agent_with_tokens(ada: Caller, smith: Caller) -> None:
    lock_data = lock(smith, token_of(ada))
    smith.post("settle", {"lockId": lock_data["lockId"], "amount": "0.5"})
    account = services.account_of_user(ada.person.pk)
    hold = authorize(key=new_key(), account_id=account.id, amount=usd("1"))
    services.capture(
        key=new_key(),
        hold_id=hold.hold_id,
        amount=usd("1"),
        splits=[services.Split(None, usd("1"))],
        agent_id="gone",
    )
    answer = ada.get("spend?days=7")
    assert (answer["total"], len(answer["days"])) == ("1.5", 7)
    assert [day["amount"] for day in answer["days"]] == ["0"] * 6 + ["1.5"]
    assert [(row["agent"], row["amount"]) for row in answer["agents"]] == [
        ("", "1"),
        ("worker", "0.5"),
    ]
    assert smith.get("spend")["total"] == "0"


# --- Limits and approvals ---


def test_limits_are_set_and_shown(ada: Caller, smith: Caller) -> None:
    body = {
        "limits": [
            {"period": "day", "amount": 5},
            {"period": "month", "agent": "Worker", "amount": "2.5"},
        ]
    }
    answer = ada.send("PUT", "limits", body)
    assert answer.status_code == 200
    lock_data = lock(smith, token_of(ada), "0.5")
    smith.post("settle", {"lockId": lock_data["lockId"], "amount": "0.2"})
    limit_rows = ada.get("limits")["limits"]
    shown_limits = [
        (row["period"], row["agent"], row["amount"], row["spent"]) for row in limit_rows
    ]
    assert shown_limits == [("day", "", "5", "0.2"), ("month", "worker", "2.5", "0.2")]
    assert [(row["held"], row["left"]) for row in limit_rows] == [("0.3", "4.5"), ("0.3", "2")]
    assert smith.get("limits")["limits"] == []


def test_a_token_has_limits_of_its_own(ada: Caller, smith: Caller) -> None:
    day = [{"period": "day", "amount": 1}]
    token = ada.post("tokens", {"amount": "5", "name": "bot", "limits": day})
    assert smith.post("lock", {"token": token["token"], "amount": "0.7"})["lockId"]
    refused = smith.refused("POST", "lock", {"token": token["token"], "amount": "0.4"})
    assert refused["payment"]["code"] == "rate_limited"
    assert (refused["payment"]["period"], refused["payment"]["left"]) == ("day", "0.3")
    (shown_limit,) = ada.get("limits")["limits"]
    assert (shown_limit["token"], shown_limit["token_name"], shown_limit["held"]) == (
        token["id"],
        "bot",
        "0.7",
    )
    ada.send("PUT", "limits", {"limits": [{"period": "day", "amount": "2", "token": token["id"]}]})
    assert smith.post("lock", {"token": token["token"], "amount": "0.4"})["lockId"]
    wrong = [
        {"period": "day", "amount": "2", "token": token["id"], "agent": "worker"},
        {"period": "day", "amount": "2", "token": token["id"], "currency": "CREDITS"},
        {"period": "day", "amount": "2", "token": "pt_unknown"},
    ]
    for limit in wrong:
        assert ada.refused("PUT", "limits", {"limits": [limit]})["code"] == "invalid"
    theirs = {"period": "day", "amount": "2", "token": token["id"]}
    assert smith.refused("PUT", "limits", {"limits": [theirs]})["code"] == "invalid"
    (remaining_limit,) = ada.get("limits")["limits"]
    assert (remaining_limit["token"], remaining_limit["amount"], remaining_limit["held"]) == (
        token["id"],
        "2",
        "1.1",
    )
    assert smith.get("limits")["limits"] == []
    twice = {"amount": "1", "limits": [{"period": "day", "amount": "1"}] * 2}
    assert ada.refused("POST", "tokens", twice)["code"] == "invalid"
    assert wallet(ada.person) == "5"
    assert len(ada.get("tokens")["items"]) == 1


@pytest.mark.parametrize(
    "limits_wanted",
    [
        [{"period": "year", "amount": "1"}],
        [{"period": "day", "amount": "-1"}],
        [{"period": "day", "amount": "1", "agent": "hidden"}],
        [{"period": "day", "amount": "1"}] * 2,
        [{"period": "day"}],
        [{"period": "day", "amount": str(n), "agent": ""} for n in range(101)],
        "all",
    ],
    ids=lambda value: str(value)[:40],
)
def test_limits_that_cannot_be_are_refused_and_the_old_ones_stay(
    limits_wanted: Any, ada: Caller
) -> None:
    factories.agent("hidden", is_public=False)
    ada.send("PUT", "limits", {"limits": [{"period": "week", "amount": "7"}]})
    assert ada.refused("PUT", "limits", {"limits": limits_wanted})["code"] == "invalid"
    assert [row["period"] for row in ada.get("limits")["limits"]] == ["week"]


def test_an_agent_is_approved_by_name_or_id_and_withdrawn(ada: Caller, smith: Caller) -> None:
    agent = Agent.objects.get(name="worker")
    for name, up_to in (("worker", "0.5"), (agent.pk, "0.7")):
        approval = ada.send("PUT", f"approvals/{name}", {"up_to": up_to}).json()
        assert (approval["agent"], approval["agent_id"], approval["up_to"]) == (
            "worker",
            agent.pk,
            up_to,
        )
    assert [approval["up_to"] for approval in ada.get("approvals")["approvals"]] == ["0.7"]
    assert smith.get("approvals")["approvals"] == []
    assert smith.refused("DELETE", "approvals/worker")["code"] == "not_found"
    assert ada.send("DELETE", "approvals/worker").status_code == 204
    assert approvals.approvals_of(ada.person.pk) == []
    assert ada.refused("DELETE", "approvals/worker")["code"] == "not_found"


def test_an_approval_of_nothing_or_for_no_agent_is_refused(ada: Caller) -> None:
    factories.agent("hidden", is_public=False)
    factories.agent("echo")
    for name, body in (
        ("hidden", {"up_to": "1"}),
        ("echo", {"up_to": "0"}),
        ("echo", {}),
        ("echo", {"up_to": "1", "always": True}),
    ):
        assert ada.refused("PUT", f"approvals/{name}", body)["code"] == "invalid"
    assert ada.get("approvals")["approvals"] == []
