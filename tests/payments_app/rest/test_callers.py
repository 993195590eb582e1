"""Callers of the REST API of payments, the numbers they send, and idempotency keys."""

from __future__ import annotations

import pytest
from django.test import Client

from payments_app.tokens import lookup as token_lookup
from tests import factories
from tests.payments_app.funded_accounts import usd
from tests.payments_app.rest.rest_caller import JSON, Caller
from tests.payments_app.rest.worker_payments import token_of
from tests.payments_app.tokens.issued_tokens import rich, wallet

pytestmark = pytest.mark.django_db


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
def test_an_invalid_amount_is_refused(amount: str, ada: Caller) -> None:
    problem = ada.refused("POST", "tokens", f'{{"amount": {amount}}}')
    assert problem["status"] == 400
    assert wallet(ada.person) == "10"


@pytest.mark.parametrize("amount", ["0.1", '"0.1"', "0.100000000", "0.123456789", "1"])
def test_a_number_has_the_digits_that_it_was_written_with(amount: str, ada: Caller) -> None:
    token = ada.post("tokens", f'{{"amount": {amount}}}')
    assert usd(token["balance"]) == usd(amount.strip('"'))


@pytest.mark.parametrize("body", ["", "[]", "{", '{"a":1,"a":2}', '"x"', "x" * 70_000])
def test_a_body_that_cannot_be_read_is_refused(body: str, ada: Caller) -> None:
    assert ada.refused("POST", "tokens", body)["code"] in {"malformed_body", "invalid"}


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
        ("settle", [{"lockId": row["lockId"], "amount": "0.1"} for row in locked]),
        ("tokens", [{"amount": "0.1"}] * 2),
    ]
    lock_outcomes = [(row["lockId"], row["replayed"]) for row in locked]
    for number, (path, bodies) in enumerate(requests):
        for caller, body in zip((ada if path == "tokens" else smith, eve), bodies, strict=True):
            answer = caller.post(path, body, **{"Idempotency-Key": f"k{number}"})
            ids = answer.get("transferIds") or [answer["id"]]
            lock_outcomes.append((ids[0], answer["replayed"]))
    assert [replayed for _, replayed in lock_outcomes] == [False] * 8
    assert len({name for name, _ in lock_outcomes}) == 8
