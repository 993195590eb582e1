"""Payment tokens over REST: made, topped up, verified and passed on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from payments_app.tokens import lookup as token_lookup
from tests import factories
from tests.payments_app.funded_accounts import available
from tests.payments_app.rest.worker_payments import token_of, worker_earned
from tests.payments_app.tokens.issued_tokens import delegate, expire, wallet

if TYPE_CHECKING:
    from tests.payments_app.rest.rest_caller import Caller

pytestmark = pytest.mark.django_db


# --- Tokens ---


@pytest.mark.parametrize("form", ["opaque", "jwt"])
def test_a_token_is_made_shown_topped_up_and_ended(form: str, ada: Caller) -> None:
    factories.agent("echo")
    token = ada.post(
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
    assert token_lookup.resolve(token["token"], agent="echo").id == token["id"]
    assert (token["balance"], token["balanceDollars"], token["perUseLimit"]) == ("2", "2", "0.5")
    answer = ada.get(f"tokens/{token['id']}")
    assert "token" not in answer
    assert (answer["status"], answer["audience"], answer["name"]) == ("active", ["echo"], "trip")
    more = ada.post(f"tokens/{token['id']}/topup", {"amount": "1"})
    assert (more["jti"], more["balance"]) == (token["id"], "3")
    assert ("token" in more) == (form == "jwt")
    ended = ada.send("DELETE", f"tokens/{token['id']}").json()
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
    lock_data = smith.post("lock", body)
    assert smith.refused("POST", "lock", {**body, "expiresIn": 5})["code"] == "idempotency_conflict"
    settle = {"lockId": lock_data["lockId"], "amount": "0.1", "idempotencyKey": "s"}
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


# --- Delegate ---


def test_a_part_of_a_token_is_for_another_agent(ada: Caller, smith: Caller) -> None:
    token = token_of(ada)
    child = smith.post(
        "delegate", {"parentToken": token.token, "delegateTo": "helper", "amount": 0.4}
    )
    assert str(token_lookup.resolve(child["token"], agent="helper").available) == "0.4"
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
