"""Locks and settles over REST: agents are paid what their payers agreed to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.models import Agent
from payments_app import services
from payments_app.models import Hold, Idempotency, Transfer
from payments_app.spending import limits
from payments_app.spending.limits import Limit
from payments_app.tokens import lookup as token_lookup
from tests import factories
from tests.payments_app.funded_accounts import available, usd
from tests.payments_app.rest.rest_caller import Caller
from tests.payments_app.rest.worker_payments import lock, token_of, worker_earned
from tests.payments_app.tokens.issued_tokens import expire, wallet

if TYPE_CHECKING:
    from pytest_django import Settings


pytestmark = pytest.mark.django_db


def test_an_agent_is_paid_by_lock_extension_and_settles(ada: Caller, smith: Caller) -> None:
    token = token_of(ada)
    lock_data = lock(smith, token, 0.005)
    assert (lock_data["lockedAmount"], lock_data["lockedAmountDollars"], lock_data["locked"]) == (
        "0.005",
    ) * 3
    assert lock_data["available"] == "0.995"
    lock_id = lock_data["lockId"]
    for name in ("additionalAmount", "amount"):
        more = smith.send("PATCH", f"lock/{lock_id}", {name: 0.2}).json()
    assert (more["success"], more["newAmount"], more["newAmountDollars"]) == (
        True,
        "0.405",
        "0.405",
    )
    llm = smith.post("settle", {"lockId": lock_id, "amount": "0.1", "chargeType": "platform_llm"})
    assert (llm["charged"], llm["chargedDollars"], llm["remaining"]) == ("0.1", "0.1", "0.305")
    tool = smith.post(
        "settle",
        {
            "lockId": lock_id,
            "usage": [{"credits": 0.05}, {"amount": "0.05"}],
            "description": "a tool",
            "recipientId": "worker",
        },
    )
    assert (tool["computedFromUsage"], tool["charged"]) == (True, "0.1")
    last = smith.post("settle", {"lockId": lock_id, "amount": 0, "release": True})
    assert (last["charged"], last["released"], last["remaining"]) == ("0", "0.205", "0")
    assert worker_earned() == "0.1"
    assert available(token.account_id) == "0.8"
    problem = smith.refused("POST", "settle", {"lockId": lock_id, "amount": "0.01"})
    assert (problem["status"], problem["code"]) == (409, "hold_ended")
    assert services.audit().clean


def test_the_servers_share_of_a_charge_is_taken(
    ada: Caller, smith: Caller, settings: Settings
) -> None:
    settings.UAMP_FEE_BASIS_POINTS = 1000
    lock_data = lock(smith, token_of(ada))
    smith.post("settle", {"lockId": lock_data["lockId"], "amount": "0.5", "release": True})
    assert worker_earned() == "0.45"


def test_a_settle_with_a_key_charges_once(ada: Caller, smith: Caller) -> None:
    token = token_of(ada)
    lock_data = lock(smith, token)
    body = {"lockId": lock_data["lockId"], "amount": "0.2"}
    key = {"Idempotency-Key": f"settle:{lock_data['lockId']}:llm"}
    first = smith.send("POST", "settle", body, **key)
    again = smith.send("POST", "settle", body, **key)
    assert "Idempotent-Replayed" not in first
    assert again["Idempotent-Replayed"] == "true"
    assert again.json() == {**first.json(), "replayed": True}
    assert worker_earned() == "0.2"
    other = smith.refused("POST", "settle", {**body, "amount": "0.3"}, **key)
    assert other["code"] == "idempotency_conflict"
    assert (
        lock(smith, token, "0.1", idempotencyKey="l")["lockId"]
        == (lock(smith, token, "0.1", idempotencyKey="l")["lockId"])
    )
    patch = {"amount": "0.1", "idempotencyKey": "p"}
    for _ in range(2):
        grown = smith.send("PATCH", f"lock/{lock_data['lockId']}", patch).json()
    assert grown["newAmount"] == "0.6"


def test_no_secret_is_kept_with_a_key(ada: Caller, smith: Caller) -> None:
    token = token_of(ada)
    lock(smith, token, idempotencyKey="l")
    smith.post("settle", {"token": token.token, "amount": "0.1", "idempotencyKey": "s"})
    rows_json = json.dumps(list(Idempotency.objects.values("scope", "key", "sha256", "outcome")))
    assert token.token not in rows_json


def test_more_than_is_locked_is_taken_as_far_as_it_goes(ada: Caller, smith: Caller) -> None:
    lock_data = lock(smith, token_of(ada))
    body = {"lockId": lock_data["lockId"], "amount": "0.7", "idempotencyKey": "k"}
    done = smith.post("settle", body)
    assert (done["partial"], done["charged"], done["unbilled"], done["requested"]) == (
        True,
        "0.5",
        "0.2",
        "0.7",
    )
    assert smith.post("settle", body)["replayed"] is True
    empty = smith.refused("POST", "settle", {"lockId": lock_data["lockId"], "amount": "0.1"})
    assert (empty["status"], empty["code"]) == (402, "insufficient_balance")
    assert worker_earned() == "0.5"


def test_a_token_is_charged_at_once_without_a_lock(ada: Caller, smith: Caller) -> None:
    token = token_of(ada)
    body = {"token": token.token, "amount": "0.2", "idempotencyKey": "k"}
    for _ in range(2):
        done = smith.post("settle", body)
    assert (done["charged"], done["replayed"]) == ("0.2", True)
    assert available(token.account_id) == "0.8"
    assert not Hold.objects.filter(state="active").exists()


def test_a_lock_is_its_makers(ada: Caller, smith: Caller) -> None:
    lock_data = lock(smith, token_of(ada))
    mallory = Caller(factories.user("mallory"))
    factories.agent("thief", owner=mallory.person)
    body = {"lockId": lock_data["lockId"], "amount": "0.1", "recipientId": "thief"}
    assert mallory.refused("POST", "settle", body)["code"] == "not_found"
    assert (
        mallory.refused("PATCH", f"lock/{lock_data['lockId']}", {"amount": "0.1"})["status"] == 404
    )
    assert not Transfer.objects.filter(kind="agent_fee").exists()


def test_money_goes_to_ones_own_agent_or_the_platform(ada: Caller, smith: Caller) -> None:
    factories.agent("foreign", owner=factories.user("other"))
    factories.agent("ownerless")
    lock_data = lock(smith, token_of(ada))
    for name in ("foreign", "ownerless", "missing"):
        body = {"lockId": lock_data["lockId"], "amount": "0.1", "recipientId": name}
        assert smith.refused("POST", "settle", body)["code"] == "invalid"
    plain = Caller(factories.user("plain"))
    token = token_of(ada)
    no_agent = plain.refused("POST", "settle", {"token": token.token, "amount": "0.1"})
    assert "recipientId" in json.dumps(no_agent["errors"])
    fee = {"token": token.token, "amount": "0.1", "chargeType": "platform_fee"}
    assert plain.post("settle", fee)["charged"] == "0.1"


def test_of_several_agents_one_has_to_be_named(ada: Caller, smith: Caller) -> None:
    factories.agent("second", owner=smith.person)
    lock_data = lock(smith, token_of(ada))
    body = {"lockId": lock_data["lockId"], "amount": "0.1"}
    assert smith.refused("POST", "settle", body)["code"] == "invalid"
    meant = lock(smith, token_of(ada, audience=["worker"]))
    smith.post("settle", {"lockId": meant["lockId"], "amount": "0.1"})
    assert worker_earned() == "0.1"


def test_a_token_for_others_is_not_locked(ada: Caller, smith: Caller) -> None:
    token = token_of(ada, audience=["other"])
    problem = smith.refused("POST", "lock", {"token": token.token, "amount": "0.1"})
    assert (problem["status"], problem["code"]) == (402, "payment_token_invalid")
    assert problem["payment"]["code"] == "token_invalid"
    assert not Hold.objects.exists()


def test_a_token_that_ended_is_not_locked_or_extended(ada: Caller, smith: Caller) -> None:
    token = token_of(ada)
    lock_data = lock(smith, token, "0.1")
    expire(token)
    problem = smith.refused("POST", "lock", {"token": token.token, "amount": "0.1"})
    assert (problem["status"], problem["code"]) == (402, "payment_token_expired")
    more = smith.refused("PATCH", f"lock/{lock_data['lockId']}", {"amount": "0.1"})
    assert more["code"] == "payment_token_expired"
    done = smith.post("settle", {"lockId": lock_data["lockId"], "amount": "0.1", "release": True})
    assert done["charged"] == "0.1", "what was held before is still taken"


def test_no_more_than_the_limit_of_a_token_is_locked_for_one_use(
    ada: Caller, smith: Caller
) -> None:
    token = token_of(ada, per_use=usd("0.3"))
    lock_data = lock(smith, token, "0.2")
    problem = smith.refused("POST", "lock", {"token": token.token, "amount": "0.31"})
    assert (problem["status"], problem["code"]) == (402, "spending_limit")
    more = smith.refused("PATCH", f"lock/{lock_data['lockId']}", {"amount": "0.11"})
    assert more["payment"]["left"] == "0.3"
    assert smith.send("PATCH", f"lock/{lock_data['lockId']}", {"amount": "0.1"}).status_code == 200


def test_the_limits_of_a_tokens_owner_count(ada: Caller, smith: Caller) -> None:
    agent = Agent.objects.get(name="worker")
    limit = Limit(period="day", agent_id=agent.pk, amount=usd("0.4"))
    limits.set_limits(ada.person.pk, [limit])
    token = token_of(ada)
    lock(smith, token, "0.3")
    problem = smith.refused("POST", "lock", {"token": token.token, "amount": "0.2"})
    assert problem["payment"]["code"] == "rate_limited"
    assert (problem["payment"]["period"], problem["payment"]["left"]) == ("day", "0.1")


@pytest.mark.parametrize(
    "body",
    [
        {"amount": "1"},
        {"lockId": "hold_1", "token": "x", "amount": "1"},
        {"lockId": "hold_1", "usage": [{"tokens": 1}], "recipientId": "worker"},
        {"lockId": "hold_1", "usage": [{"amount": "-1"}], "recipientId": "worker"},
        {"lockId": "hold_1", "amount": "1", "chargeType": "gift"},
    ],
    ids=str,
)
def test_a_settle_that_makes_no_sense_is_refused(body: dict[str, Any], smith: Caller) -> None:
    assert smith.refused("POST", "settle", body)["status"] == 400


def test_an_extension_says_by_how_much_once(ada: Caller, smith: Caller) -> None:
    lock_data = lock(smith, token_of(ada))
    for body in ({}, {"amount": "0.1", "additionalAmount": "0.1"}):
        assert smith.refused("PATCH", f"lock/{lock_data['lockId']}", body)["code"] == "invalid"


def test_a_payer_locks_money_into_a_token(ada: Caller) -> None:
    lock_data = ada.post("lock", {"amount": 2, "audience": ["worker"], "expiresIn": 60})
    assert (lock_data["lockedAmount"], lock_data["currency"]) == ("2", "USD")
    assert token_lookup.resolve(lock_data["token"], agent="worker").id == lock_data["tokenId"]
    assert lock_data["token"].count(".") == 2
    assert wallet(ada.person) == "8"
