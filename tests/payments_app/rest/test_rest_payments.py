"""The REST of payments, as agents, payers and strangers call it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from agents_app.models import Agent
from payments_app import services
from payments_app.models import Hold, Idempotency, Transfer
from payments_app.spending import approvals, limits
from payments_app.spending.limits import Limit
from payments_app.tokens import lookup as token_lookup
from tests import factories
from tests.payments_app.funded_accounts import authorize, available, new_key, usd
from tests.payments_app.rest.rest_caller import JSON, Caller
from tests.payments_app.tokens.issued_tokens import delegate, expire, issue, rich, wallet

if TYPE_CHECKING:
    from pytest_django import Settings

    from payments_app.tokens.issuance import IssuedToken

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> Caller:
    """Return a person with ten dollars."""
    return Caller(rich("ada"))


@pytest.fixture
def smith() -> Caller:
    """Return the owner of an agent."""
    person = factories.user("smith")
    factories.agent("worker", owner=person)
    return Caller(person)


def worker_earned() -> str:
    agent = Agent.objects.get(name="worker")
    return available(services.account_of_agent(agent.pk))


def token_of(caller: Caller, amount: str = "1", **fields: Any) -> IssuedToken:
    return issue(caller.person, amount, **fields)


# --- The caller ---

ROUTES = [
    ("GET", "balance"),
    ("GET", "statement"),
    ("GET", "spend"),
    ("GET", "limits"),
    ("PUT", "limits"),
    ("GET", "approvals"),
    ("PUT", "approvals/echo"),
    ("DELETE", "approvals/echo"),
    ("POST", "verify"),
    ("POST", "lock"),
    ("PATCH", "lock/hold_1"),
    ("POST", "settle"),
    ("POST", "delegate"),
    ("GET", "tokens"),
    ("POST", "tokens"),
    ("GET", "tokens/pt_1"),
    ("DELETE", "tokens/pt_1"),
    ("GET", "tokens/pt_1/tree"),
    ("POST", "tokens/pt_1/topup"),
    ("POST", "tokens/pt_1/revoke"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_no_sign_in_is_asked_for(method: str, path: str) -> None:
    answer = Client().generic(method, f"/api/payments/{path}", "{}", content_type=JSON)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")


@pytest.mark.parametrize(("method", "path"), [route for route in ROUTES if route[0] != "GET"])
def test_a_cookie_alone_moves_nothing(method: str, path: str) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(rich())
    answer = browser.generic(method, f"/api/payments/{path}", "{}", content_type=JSON)
    assert answer.status_code == 403


def test_a_stranger_sees_and_moves_nothing_of_a_token(ada: Caller, smith: Caller) -> None:
    token = token_of(ada)
    for method, path in (
        ("GET", f"tokens/{token.id}"),
        ("DELETE", f"tokens/{token.id}"),
        ("GET", f"tokens/{token.id}/tree"),
        ("POST", f"tokens/{token.id}/revoke"),
        ("POST", f"tokens/{token.id}/topup"),
    ):
        problem = smith.refused(method, path, {"amount": "1"} if method == "POST" else None)
        nothing = smith.refused(
            method, path.replace(token.id, "pt_0"), {"amount": "1"} if method == "POST" else None
        )
        assert (problem["code"], problem["detail"]) == ("not_found", nothing["detail"])
    assert smith.get("tokens")["items"] == []
    assert smith.get("balance")["available"] == "0"
    assert str(token_lookup.resolve(token.token).available) == "1"


def test_an_operator_has_no_more_than_others_here(ada: Caller) -> None:
    token = token_of(ada)
    root = Caller(factories.superuser())
    assert root.refused("GET", f"tokens/{token.id}")["code"] == "not_found"
    assert root.refused("DELETE", f"tokens/{token.id}")["code"] == "not_found"


# --- Amounts ---


@pytest.mark.parametrize(
    "amount",
    ['"1e3"', "1e3", "-1", '"-1"', '"+1"', '"\uff11"', '" 1"', '"1_0"', '"0.0000000001"', '".5"',
     "1.0000000001", "true", "null", "[]", '"9999999999999999999"', "0", '"0"', "NaN"],
)  # fmt: skip
def test_what_is_no_amount_is_refused(amount: str, ada: Caller) -> None:
    problem = ada.refused("POST", "tokens", f'{{"amount": {amount}}}')
    assert problem["status"] == 400
    assert wallet(ada.person) == "10"


@pytest.mark.parametrize("amount", ["0.1", '"0.1"', "0.100000000", "0.123456789", "1"])
def test_a_number_has_the_digits_that_it_was_written_with(amount: str, ada: Caller) -> None:
    made = ada.post("tokens", f'{{"amount": {amount}}}')
    assert usd(made["balance"]) == usd(amount.strip('"'))


@pytest.mark.parametrize("body", ["", "[]", "{", '{"a":1,"a":2}', '"x"', "x" * 70_000])
def test_a_body_that_cannot_be_read_is_refused(body: str, ada: Caller) -> None:
    assert ada.refused("POST", "tokens", body)["code"] in {"malformed_body", "invalid"}


# --- Tokens ---


@pytest.mark.parametrize("form", ["opaque", "jwt"])
def test_a_token_is_made_shown_topped_up_and_ended(form: str, ada: Caller) -> None:
    factories.agent("echo")
    made = ada.post(
        "tokens",
        {
            "amount": "2",
            "name": "trip",
            "audience": ["echo"],
            "perUseLimit": 0.5,
            "expiresIn": 600,
            "form": form,
        },
    )
    assert token_lookup.resolve(made["token"], agent="echo").id == made["id"]
    assert (made["balance"], made["balanceDollars"], made["perUseLimit"]) == ("2", "2", "0.5")
    shown = ada.get(f"tokens/{made['id']}")
    assert "token" not in shown
    assert (shown["status"], shown["audience"], shown["name"]) == ("active", ["echo"], "trip")
    more = ada.post(f"tokens/{made['id']}/topup", {"amount": "1"})
    assert (more["jti"], more["balance"]) == (made["id"], "3")
    assert ("token" in more) == (form == "jwt")
    ended = ada.send("DELETE", f"tokens/{made['id']}").json()
    assert (ended["status"], ended["returned"], ended["balance"]) == ("revoked", "3", "0")
    assert wallet(ada.person) == "10"


def test_a_key_makes_one_token_and_tops_up_once(ada: Caller) -> None:
    body = {"amount": "1", "idempotencyKey": "k"}
    first = ada.post("tokens", body)
    answer = ada.send("POST", "tokens", {"amount": "1"}, **{"Idempotency-Key": "k"})
    assert answer["Idempotent-Replayed"] == "true"
    assert (answer.json()["token"], answer.json()["replayed"]) == (first["token"], True)
    for _ in range(2):
        ada.post(f"tokens/{first['id']}/topup", {"amount": "1"}, **{"Idempotency-Key": "t"})
    assert wallet(ada.person) == "8"
    other = ada.refused("POST", "tokens", {"amount": "2"}, **{"Idempotency-Key": "k"})
    assert (other["status"], other["code"]) == (409, "idempotency_conflict")


@pytest.mark.parametrize(
    "change",
    [
        {"amount": "2"},
        {"name": "other"},
        {"audience": ["other"]},
        {"expiresIn": 60},
        {"perUseLimit": "0.5"},
        {"form": "jwt"},
        {"currency": "USDC"},
    ],
    ids=str,
)
def test_a_key_of_a_token_is_for_one_body(ada: Caller, change: dict[str, Any]) -> None:
    body = {"amount": "1", "expiresIn": 600, "idempotencyKey": "k"}
    ada.post("tokens", body)
    other = ada.refused("POST", "tokens", {**body, **change})
    assert (other["status"], other["code"]) == (409, "idempotency_conflict")
    assert wallet(ada.person) == "9"


def test_a_key_of_a_lock_or_a_settle_is_for_one_body(ada: Caller, smith: Caller) -> None:
    body = {"token": token_of(ada).token, "amount": "0.5", "idempotencyKey": "k"}
    made = smith.post("lock", body)
    assert smith.refused("POST", "lock", {**body, "expiresIn": 5})["code"] == "idempotency_conflict"
    settle = {"lockId": made["lockId"], "amount": "0.1", "idempotencyKey": "s"}
    smith.post("settle", settle)
    for change in ({"cid": "chat_1"}, {"description": "x"}, {"release": True}):
        other = smith.refused("POST", "settle", {**settle, **change})
        assert other["code"] == "idempotency_conflict"
    assert worker_earned() == "0.1"


def test_two_keys_that_disagree_and_one_that_is_too_long_are_refused(ada: Caller) -> None:
    body = {"amount": "1", "idempotencyKey": "a"}
    assert ada.refused("POST", "tokens", body, **{"Idempotency-Key": "b"})["code"] == "invalid"
    long = {"Idempotency-Key": "x" * 201}
    assert ada.refused("POST", "tokens", {"amount": "1"}, **long)["code"] == "invalid"


def test_more_than_there_is_is_a_402_that_says_what_there_is(ada: Caller) -> None:
    problem = ada.refused("POST", "tokens", {"amount": "11"})
    assert (problem["status"], problem["code"]) == (402, "insufficient_balance")
    assert problem["payment"] == {
        "code": "insufficient_balance",
        "balance_current": "10",
        "balance_required": "11",
        "currency": "USD",
    }


def test_a_tree_shows_what_was_passed_on(ada: Caller) -> None:
    root = token_of(ada)
    child = delegate(root, "0.25")
    tree = ada.get(f"tokens/{root.id}/tree")
    assert (tree["balance"], tree["children"][0]["id"]) == ("0.75", child.id)
    assert tree["children"][0]["parentId"] == root.id


# --- Verify ---


def test_a_token_is_verified_for_an_audience(ada: Caller, smith: Caller) -> None:
    token = token_of(ada, form="jwt", audience=["worker"])
    good = smith.post("verify", {"token": token.token, "expectedAudience": "worker"})
    assert (good["valid"], good["balance"], good["balanceDollars"]) == (True, "1", "1")
    assert (good["issuer"], good["tokenId"]) == ("http://localhost:8000", token.id)
    bad = smith.post("verify", {"token": token.token, "expectedAudience": "other"})
    assert (bad["valid"], bad["code"]) == (False, "token_invalid")
    expire(token)
    assert smith.post("verify", {"token": token.token})["code"] == "token_expired"
    assert smith.post("verify", {"token": "nonsense"})["invalidReason"]


# --- Lock and settle ---


def lock(caller: Caller, token: IssuedToken, amount: Any = "0.5", **more: Any) -> Any:
    return caller.post("lock", {"token": token.token, "amount": amount, **more})


def test_an_agent_is_paid_by_lock_extension_and_settles(ada: Caller, smith: Caller) -> None:
    token = token_of(ada)
    made = lock(smith, token, 0.005)
    assert (made["lockedAmount"], made["lockedAmountDollars"], made["locked"]) == ("0.005",) * 3
    assert made["available"] == "0.995"
    lock_id = made["lockId"]
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
    made = lock(smith, token_of(ada))
    smith.post("settle", {"lockId": made["lockId"], "amount": "0.5", "release": True})
    assert worker_earned() == "0.45"


def test_a_settle_with_a_key_charges_once(ada: Caller, smith: Caller) -> None:
    token = token_of(ada)
    made = lock(smith, token)
    body = {"lockId": made["lockId"], "amount": "0.2"}
    key = {"Idempotency-Key": f"settle:{made['lockId']}:llm"}
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
        grown = smith.send("PATCH", f"lock/{made['lockId']}", patch).json()
    assert grown["newAmount"] == "0.6"


def test_no_secret_is_kept_with_a_key(ada: Caller, smith: Caller) -> None:
    token = token_of(ada)
    lock(smith, token, idempotencyKey="l")
    smith.post("settle", {"token": token.token, "amount": "0.1", "idempotencyKey": "s"})
    kept = json.dumps(list(Idempotency.objects.values("scope", "key", "sha256", "outcome")))
    assert token.token not in kept


def test_more_than_is_locked_is_taken_as_far_as_it_goes(ada: Caller, smith: Caller) -> None:
    made = lock(smith, token_of(ada))
    body = {"lockId": made["lockId"], "amount": "0.7", "idempotencyKey": "k"}
    done = smith.post("settle", body)
    assert (done["partial"], done["charged"], done["unbilled"], done["requested"]) == (
        True,
        "0.5",
        "0.2",
        "0.7",
    )
    assert smith.post("settle", body)["replayed"] is True
    empty = smith.refused("POST", "settle", {"lockId": made["lockId"], "amount": "0.1"})
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
    made = lock(smith, token_of(ada))
    mallory = Caller(factories.user("mallory"))
    factories.agent("thief", owner=mallory.person)
    body = {"lockId": made["lockId"], "amount": "0.1", "recipientId": "thief"}
    assert mallory.refused("POST", "settle", body)["code"] == "not_found"
    assert mallory.refused("PATCH", f"lock/{made['lockId']}", {"amount": "0.1"})["status"] == 404
    assert not Transfer.objects.filter(kind="agent_fee").exists()


def test_money_goes_to_ones_own_agent_or_the_platform(ada: Caller, smith: Caller) -> None:
    factories.agent("foreign", owner=factories.user("other"))
    factories.agent("ownerless")
    made = lock(smith, token_of(ada))
    for name in ("foreign", "ownerless", "missing"):
        body = {"lockId": made["lockId"], "amount": "0.1", "recipientId": name}
        assert smith.refused("POST", "settle", body)["code"] == "invalid"
    plain = Caller(factories.user("plain"))
    token = token_of(ada)
    no_agent = plain.refused("POST", "settle", {"token": token.token, "amount": "0.1"})
    assert "recipientId" in json.dumps(no_agent["errors"])
    fee = {"token": token.token, "amount": "0.1", "chargeType": "platform_fee"}
    assert plain.post("settle", fee)["charged"] == "0.1"


def test_of_several_agents_one_has_to_be_named(ada: Caller, smith: Caller) -> None:
    factories.agent("second", owner=smith.person)
    made = lock(smith, token_of(ada))
    body = {"lockId": made["lockId"], "amount": "0.1"}
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
    made = lock(smith, token, "0.1")
    expire(token)
    problem = smith.refused("POST", "lock", {"token": token.token, "amount": "0.1"})
    assert (problem["status"], problem["code"]) == (402, "payment_token_expired")
    more = smith.refused("PATCH", f"lock/{made['lockId']}", {"amount": "0.1"})
    assert more["code"] == "payment_token_expired"
    done = smith.post("settle", {"lockId": made["lockId"], "amount": "0.1", "release": True})
    assert done["charged"] == "0.1", "what was held before is still taken"


def test_no_more_than_the_limit_of_a_token_is_locked_for_one_use(
    ada: Caller, smith: Caller
) -> None:
    token = token_of(ada, per_use=usd("0.3"))
    made = lock(smith, token, "0.2")
    problem = smith.refused("POST", "lock", {"token": token.token, "amount": "0.31"})
    assert (problem["status"], problem["code"]) == (402, "spending_limit")
    more = smith.refused("PATCH", f"lock/{made['lockId']}", {"amount": "0.11"})
    assert more["payment"]["left"] == "0.3"
    assert smith.send("PATCH", f"lock/{made['lockId']}", {"amount": "0.1"}).status_code == 200


def test_the_limits_of_a_tokens_owner_count(ada: Caller, smith: Caller) -> None:
    agent = Agent.objects.get(name="worker")
    one = Limit(period="day", agent_id=agent.pk, amount=usd("0.4"))
    limits.set_limits(ada.person.pk, [one])
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
    made = lock(smith, token_of(ada))
    for body in ({}, {"amount": "0.1", "additionalAmount": "0.1"}):
        assert smith.refused("PATCH", f"lock/{made['lockId']}", body)["code"] == "invalid"


def test_who_pays_locks_into_a_token(ada: Caller) -> None:
    made = ada.post("lock", {"amount": 2, "audience": ["worker"], "expiresIn": 60})
    assert (made["lockedAmount"], made["currency"]) == ("2", "USD")
    assert token_lookup.resolve(made["token"], agent="worker").id == made["tokenId"]
    assert made["token"].count(".") == 2
    assert wallet(ada.person) == "8"


# --- Delegate ---


def test_a_part_of_a_token_is_for_another_agent(ada: Caller, smith: Caller) -> None:
    token = token_of(ada)
    made = smith.post(
        "delegate", {"parentToken": token.token, "delegateTo": "helper", "amount": 0.4}
    )
    assert str(token_lookup.resolve(made["token"], agent="helper").available) == "0.4"
    assert available(token.account_id) == "0.6"


def test_too_much_for_a_delegate_is_a_400_that_clients_can_read(ada: Caller, smith: Caller) -> None:
    token = token_of(ada, "0.25")
    body = {"parentToken": token.token, "delegateTo": "helper", "amount": "0.3"}
    problem = smith.refused("POST", "delegate", body)
    assert (problem["status"], problem["code"]) == (400, "insufficient_balance")
    assert "available: 0.25" in problem["detail"]


def test_a_token_that_is_not_good_is_not_delegated(ada: Caller, smith: Caller) -> None:
    token = token_of(ada, audience=["worker"])
    for secret, to in ((token.token, "helper"), ("ptok_x", "worker")):
        body = {"parentToken": secret, "delegateTo": to, "amount": "0.1"}
        assert smith.refused("POST", "delegate", body)["code"] == "payment_token_invalid"


# --- The caller's account ---


def test_the_balance_says_what_is_held_too(ada: Caller) -> None:
    account = services.account_of_user(ada.person.pk)
    authorize(key=new_key(), account_id=account.id, amount=usd("1"))
    found = ada.get("balance")
    assert (found["available"], found["held"], found["posted"]) == ("9", "1", "10")
    assert (found["balance"], found["balanceDollars"], found["currency"]) == ("9", "9", "USD")
    assert ada.client.get("/api/balance").json() == found
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
    made = lock(smith, token_of(ada))
    smith.post("settle", {"lockId": made["lockId"], "amount": "0.5"})
    account = services.account_of_user(ada.person.pk)
    hold = authorize(key=new_key(), account_id=account.id, amount=usd("1"))
    services.capture(
        key=new_key(),
        hold_id=hold.hold_id,
        amount=usd("1"),
        splits=[services.Split(None, usd("1"))],
        agent_id="gone",
    )
    found = ada.get("spend?days=7")
    assert (found["total"], len(found["days"])) == ("1.5", 7)
    assert [day["amount"] for day in found["days"]] == ["0"] * 6 + ["1.5"]
    assert [(one["agent"], one["amount"]) for one in found["agents"]] == [
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
    made = lock(smith, token_of(ada), "0.5")
    smith.post("settle", {"lockId": made["lockId"], "amount": "0.2"})
    found = ada.get("limits")["limits"]
    shown = [(one["period"], one["agent"], one["amount"], one["spent"]) for one in found]
    assert shown == [("day", "", "5", "0.2"), ("month", "worker", "2.5", "0.2")]
    assert [(one["held"], one["left"]) for one in found] == [("0.3", "4.5"), ("0.3", "2")]
    assert smith.get("limits")["limits"] == []


def test_a_token_has_limits_of_its_own(ada: Caller, smith: Caller) -> None:
    day = [{"period": "day", "amount": 1}]
    made = ada.post("tokens", {"amount": "5", "name": "bot", "limits": day})
    assert smith.post("lock", {"token": made["token"], "amount": "0.7"})["lockId"]
    refused = smith.refused("POST", "lock", {"token": made["token"], "amount": "0.4"})
    assert refused["payment"]["code"] == "rate_limited"
    assert (refused["payment"]["period"], refused["payment"]["left"]) == ("day", "0.3")
    (shown,) = ada.get("limits")["limits"]
    assert (shown["token"], shown["token_name"], shown["held"]) == (made["id"], "bot", "0.7")
    ada.send("PUT", "limits", {"limits": [{"period": "day", "amount": "2", "token": made["id"]}]})
    assert smith.post("lock", {"token": made["token"], "amount": "0.4"})["lockId"]
    wrong = [
        {"period": "day", "amount": "2", "token": made["id"], "agent": "worker"},
        {"period": "day", "amount": "2", "token": made["id"], "currency": "CREDITS"},
        {"period": "day", "amount": "2", "token": "pt_unknown"},
    ]
    for one in wrong:
        assert ada.refused("PUT", "limits", {"limits": [one]})["code"] == "invalid"
    theirs = {"period": "day", "amount": "2", "token": made["id"]}
    assert smith.refused("PUT", "limits", {"limits": [theirs]})["code"] == "invalid"
    (kept,) = ada.get("limits")["limits"]
    assert (kept["token"], kept["amount"], kept["held"]) == (made["id"], "2", "1.1")
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
    assert [one["period"] for one in ada.get("limits")["limits"]] == ["week"]


def test_an_agent_is_approved_by_name_or_id_and_withdrawn(ada: Caller, smith: Caller) -> None:
    agent = Agent.objects.get(name="worker")
    for name, up_to in (("worker", "0.5"), (agent.pk, "0.7")):
        made = ada.send("PUT", f"approvals/{name}", {"up_to": up_to}).json()
        assert (made["agent"], made["agent_id"], made["up_to"]) == ("worker", agent.pk, up_to)
    assert [one["up_to"] for one in ada.get("approvals")["approvals"]] == ["0.7"]
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


# --- Keys ---


def test_everybody_may_read_the_keys() -> None:
    answer = Client().get("/.well-known/jwks.json")
    assert [key["use"] for key in answer.json()["keys"]] == ["sig"]
    assert "max-age" in answer["Cache-Control"]


def test_nothing_of_payments_is_kept_by_a_cache(ada: Caller) -> None:
    assert "no-store" in ada.send("GET", "balance")["Cache-Control"]


def test_a_key_of_a_delegation_is_the_callers_own(ada: Caller, smith: Caller) -> None:
    parent = token_of(ada, "1")
    mallory = Caller(factories.user("mallory"))
    body = {"parentToken": parent.token, "amount": "0.1", "delegateTo": "worker"}
    key = {"Idempotency-Key": "1"}

    first = smith.post("delegate", body, **key)
    other = mallory.post("delegate", body, **key)

    assert (first["replayed"], other["replayed"]) == (False, False)
    assert len({first["tokenId"], other["tokenId"]}) == 2
    again = smith.post("delegate", body, **key)
    assert (again["token"], again["replayed"]) == (first["token"], True)
    again = mallory.post("delegate", body, **key)
    assert (again["token"], again["replayed"]) == (other["token"], True)
    assert token_lookup.resolve(parent.token).available == usd("0.8")
    different = {**body, "amount": "0.2"}
    assert mallory.refused("POST", "delegate", different, **key)["code"] == "idempotency_conflict"


def test_no_key_is_shared_by_two_callers(ada: Caller, smith: Caller) -> None:
    eve = Caller(rich("eve"))
    factories.agent("helper", owner=eve.person)
    token = token_of(ada, "1").token
    key = {"Idempotency-Key": "1"}
    locked = [
        caller.post("lock", {"token": token, "amount": "0.1"}, **key) for caller in (smith, eve)
    ]
    requests = [
        ("settle", [{"token": token, "amount": "0.1"}] * 2),
        ("settle", [{"lockId": one["lockId"], "amount": "0.1"} for one in locked]),
        ("tokens", [{"amount": "0.1"}] * 2),
    ]
    made = [(one["lockId"], one["replayed"]) for one in locked]
    for number, (path, bodies) in enumerate(requests):
        for caller, body in zip((ada if path == "tokens" else smith, eve), bodies, strict=True):
            answer = caller.post(path, body, **{"Idempotency-Key": f"k{number}"})
            ids = answer.get("transferIds") or [answer["id"]]
            made.append((ids[0], answer["replayed"]))
    assert [replayed for _, replayed in made] == [False] * 8
    assert len({name for name, _ in made}) == 8
