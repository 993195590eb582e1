"""Putting money in: by hand, by Stripe, and through calls that only pretend to be Stripe's."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from payments_app import services
from payments_app.ledger.accounts import find_account
from payments_app.models import Receipt, TopUpRequest
from payments_app.services import IdempotencyConflict
from payments_app.top_ups import requests as top_ups
from payments_app.top_ups.manual import ManualProvider
from payments_app.top_ups.provider import ForeignHook
from tests import factories
from tests.payments_app.funded_accounts import new_key, usd
from tests.payments_app.rest.rest_caller import Caller
from tests.payments_app.tokens.issued_tokens import race, wallet
from tests.payments_app.top_ups import stripe_stand_in
from tests.payments_app.top_ups.stripe_stand_in import event, signature

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import DjangoDbBlocker, Settings

    from tests.payments_app.top_ups.stripe_stand_in import StandIn

pytestmark = pytest.mark.django_db

HOOK = "/api/payments/topups/hooks/stripe"
STRIPE = "payments_app.top_ups.stripe.StripeProvider"
MANUAL = "payments_app.top_ups.manual.ManualProvider"


@pytest.fixture
def stripe(settings: Settings) -> Iterator[StandIn]:
    """Let people pay by Stripe."""
    with stripe_stand_in.running() as server:
        settings.UAMP_TOPUP_PROVIDERS = [MANUAL, STRIPE]
        settings.UAMP_STRIPE_API = server.url
        settings.UAMP_STRIPE_KEY = stripe_stand_in.KEY
        settings.UAMP_STRIPE_WEBHOOK_SECRET = stripe_stand_in.SECRET
        yield server


@pytest.fixture
def ada() -> Caller:
    """Return a person without money."""
    return Caller(factories.user("ada"))


def request_top_up(
    caller: Caller, amount: str = "5", provider: str = "manual", key: str = ""
) -> Any:
    return caller.post(
        "topups",
        {"provider": provider, "amount": amount},
        **{"Idempotency-Key": key or new_key()},
    )


def call(body: bytes, **options: Any) -> Any:
    """Return the reply to a webhook."""
    header = options.pop("header", None) or signature(body, **options)
    return Client(enforce_csrf_checks=True).generic(
        "POST",
        HOOK,
        body,
        content_type="application/json",
        headers={"Stripe-Signature": header},
    )


# --- By hand ---


def test_a_person_asks_and_an_operator_grants(ada: Caller) -> None:
    request = request_top_up(ada)
    assert (request["state"], request["url"], request["amount"]) == ("open", "", "5")
    root = factories.superuser()
    top_ups.grant(request["id"], by=root.pk, reason="cash")
    assert wallet(ada.person) == "5"
    answer = ada.get(f"topups/{request['id']}")
    assert (answer["state"], answer["reason"]) == ("credited", "cash")
    row = find_account(f"user:{ada.person.pk}:USD")
    assert row is not None
    statement = ada.get("statement")["data"]
    assert [(row["kind"], row["memo"]) for row in statement] == [("top_up", "cash")]
    assert Receipt.objects.get().external_id == request["id"]


def test_a_request_is_decided_once_and_with_a_reason(ada: Caller) -> None:
    request, root = request_top_up(ada), factories.superuser()
    with pytest.raises(ValueError, match="reason"):
        top_ups.grant(request["id"], by=root.pk, reason="  ")
    top_ups.refuse(request["id"], by=root.pk, reason="no money came")
    for decide in (top_ups.grant, top_ups.refuse):
        with pytest.raises(top_ups.AlreadyDecided):
            decide(request["id"], by=root.pk, reason="again")
    assert (wallet(ada.person), ada.get(f"topups/{request['id']}")["state"]) == ("0", "refused")


def test_a_top_up_by_hand_has_no_webhook(ada: Caller) -> None:
    request_top_up(ada)
    with pytest.raises(ForeignHook):
        ManualProvider().hook(b"{}", {})
    hook = HOOK.replace("stripe", "manual")
    assert Client().post(hook, "{}", content_type="application/json").status_code == 400


def test_the_same_key_is_the_same_request(ada: Caller) -> None:
    assert request_top_up(ada, key="k")["id"] == request_top_up(ada, key="k")["id"]
    with pytest.raises(IdempotencyConflict):
        top_ups.ask(key="k", user_id=ada.person.pk, provider="manual", amount=usd("6"))
    body = {"provider": "manual", "amount": "5", "idempotencyKey": "in the body"}
    first, again = (ada.send("POST", "topups", body) for _ in range(2))
    assert first.json()["id"] == again.json()["id"]
    assert ("Idempotent-Replayed" in first, again["Idempotent-Replayed"]) == (False, "true")
    bob = Caller(factories.user("bob"))
    assert request_top_up(bob, key="k")["id"] != request_top_up(ada, key="k")["id"]


@pytest.mark.parametrize(
    "body",
    [
        {"provider": "manual", "amount": "0"},
        {"provider": "manual", "amount": "1000.01"},
        {"provider": "manual", "amount": "-1"},
        {"provider": "stripe", "amount": "1"},
        {"provider": "manual", "amount": "1", "currency": "EUR"},
        {"amount": "1"},
    ],
    ids=str,
)
def test_a_top_up_that_cannot_be_is_refused(body: dict[str, str], ada: Caller) -> None:
    assert ada.refused("POST", "topups", body)["code"] == "invalid"
    assert TopUpRequest.objects.count() == 0


def test_the_most_of_one_top_up_is_taken(ada: Caller) -> None:
    assert request_top_up(ada, "1000")["amount"] == "1000"


def test_no_other_person_sees_a_request(ada: Caller) -> None:
    request = request_top_up(ada)
    bob = Caller(factories.user("bob"))
    assert bob.refused("GET", f"topups/{request['id']}")["code"] == "not_found"
    assert bob.get("topups")["items"] == []
    assert [row["id"] for row in ada.get("topups")["items"]] == [request["id"]]
    for method, path in (("GET", "topups"), ("POST", "topups"), ("GET", "topups/providers")):
        assert Client().generic(method, f"/api/payments/{path}").status_code == 401


def test_the_providers_are_those_that_are_set(ada: Caller, stripe: StandIn) -> None:
    providers = ada.get("topups/providers")["providers"]
    assert [(provider["name"], provider["currencies"]) for provider in providers] == [
        ("manual", ["CREDITS", "USD", "USDC"]),
        ("stripe", ["USD"]),
    ]


# --- In the admin ---


def staff(*permissions: str) -> Client:
    person = factories.user(f"staff-{new_key()[:6]}", is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(person)
    return client


def admin_url(model: str, view: str, pk: str) -> str:
    return reverse(f"admin:payments_app_{model}_{view}", args=[quote(pk)])


def decide(client: Client, request_id: str, decision: str) -> Any:
    url = admin_url("topuprequest", "operate", request_id)
    return client.post(url, {"decision": decision, "reason": "cash", "key": "k"})


def test_an_operator_with_the_permission_grants_in_the_admin(ada: Caller) -> None:
    request = request_top_up(ada)
    operator = staff("view_topuprequest", "grant_topup")
    for _ in range(2):
        decide(operator, request["id"], "grant")
    assert wallet(ada.person) == "5"
    page = operator.get(admin_url("topuprequest", "change", request["id"]))
    assert page.status_code == 200


def test_an_operator_who_may_only_view_cannot_decide(ada: Caller) -> None:
    request = request_top_up(ada)
    assert decide(staff("view_topuprequest"), request["id"], "grant").status_code == 403
    assert wallet(ada.person) == "0"


@pytest.mark.parametrize("model", ["topuprequest", "paymenttoken", "spendinglimit", "approval"])
def test_the_admin_edits_none_of_these_rows(model: str) -> None:
    root = Client()
    root.force_login(factories.superuser())
    assert root.get(f"/admin/payments_app/{model}/").status_code == 200
    assert root.get(f"/admin/payments_app/{model}/add/").status_code == 403


def test_the_admin_does_not_show_what_opens_a_token(ada: Caller) -> None:
    request = request_top_up(ada)
    top_ups.grant(request["id"], by=factories.superuser().pk, reason="cash")
    token = ada.post("tokens", {"amount": "1"})
    client = staff("view_paymenttoken")
    page = client.get(admin_url("paymenttoken", "change", token["id"])).content.decode()
    assert token["id"] in page
    assert "sha256" not in page.lower()
    assert "salt" not in page.lower()


# --- Stripe ---


def test_a_payment_by_card_is_credited_when_stripe_says_so(ada: Caller, stripe: StandIn) -> None:
    request = request_top_up(ada, "12.34", "stripe")
    assert request["url"].startswith("https://checkout.stripe.example/")
    (session,) = stripe.sessions.values()
    assert (session["amount_total"], session["currency"]) == (1234, "usd")
    assert session["client_reference_id"] == request["id"]
    body = event("completed", session)
    for _ in range(3):
        assert call(body).status_code == 204
    assert call(event("async_payment_succeeded", session)).status_code == 204
    assert wallet(ada.person) == "12.34"
    assert ada.get(f"topups/{request['id']}")["state"] == "credited"
    assert services.audit().clean


def test_a_request_is_one_session_even_when_stripe_fails_or_its_answer_is_lost(
    ada: Caller, stripe: StandIn
) -> None:
    stripe.failures = 1
    request_top_up(ada, "5", "stripe", key="a")
    stripe.loses_answers = True
    body = {"provider": "stripe", "amount": "5"}
    problem = ada.refused("POST", "topups", body, **{"Idempotency-Key": "b"})
    assert (problem["status"], problem["code"]) == (402, "payment_failed")
    stripe.loses_answers = False
    assert request_top_up(ada, "5", "stripe", key="b")["url"]
    assert request_top_up(ada, "5", "stripe", key="b")["url"]
    assert len(stripe.sessions) == 2


def test_a_wrong_key_of_stripe_is_a_failed_payment(
    ada: Caller, stripe: StandIn, settings: Settings
) -> None:
    settings.UAMP_STRIPE_KEY = "sk_wrong"
    problem = ada.refused("POST", "topups", {"provider": "stripe", "amount": "5"})
    assert problem["code"] == "payment_failed"
    assert "sk_wrong" not in str(problem)


@pytest.mark.parametrize("amount", ["0.49", "1.001"])
def test_stripe_takes_whole_cents_and_fifty_at_least(
    amount: str, ada: Caller, stripe: StandIn
) -> None:
    body = {"provider": "stripe", "amount": amount}
    assert ada.refused("POST", "topups", body)["code"] == "invalid"


def session_of(ada: Caller, stripe: StandIn) -> dict[str, Any]:
    request_top_up(ada, "5", "stripe")
    (session,) = stripe.sessions.values()
    return session


def test_a_call_that_stripe_did_not_sign_moves_nothing(
    ada: Caller, stripe: StandIn, settings: Settings
) -> None:
    body = event("completed", session_of(ada, stripe))
    for answer in (
        call(body, secret="whsec_other"),
        call(body, at=int(time.time()) - 3600),
        call(body, header="t=1,v1=00"),
        call(body, header="nonsense"),
        call(body + b" ", header=signature(body)),
    ):
        assert answer.status_code == 400
    settings.UAMP_STRIPE_WEBHOOK_SECRET = ""
    assert call(body, secret="").status_code == 400
    assert wallet(ada.person) == "0"


@pytest.mark.parametrize(
    "changed",
    [
        {"amount_total": 499},
        {"amount_total": 50_000},
        {"currency": "jpy"},
        {"client_reference_id": "topup_" + "0" * 32},
    ],
    ids=str,
)
def test_a_call_that_does_not_agree_with_its_request_moves_nothing(
    changed: dict[str, Any], ada: Caller, stripe: StandIn
) -> None:
    body = event("completed", session_of(ada, stripe), **changed)
    assert call(body).status_code == 400
    assert wallet(ada.person) == "0"
    assert TopUpRequest.objects.get().state == "open"


def test_a_call_about_the_request_of_another_provider_moves_nothing(
    ada: Caller, stripe: StandIn
) -> None:
    by_hand = request_top_up(ada)
    session = session_of(ada, stripe)
    assert call(event("completed", session, client_reference_id=by_hand["id"])).status_code == 400
    assert wallet(ada.person) == "0"


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("completed", {"payment_status": "unpaid"}),
        ("completed", {"client_reference_id": None}),
        ("something_new", {}),
    ],
    ids=str,
)
def test_a_call_that_says_nothing_of_money_is_taken_and_moves_nothing(
    kind: str, changed: dict[str, Any], ada: Caller, stripe: StandIn
) -> None:
    assert call(event(kind, session_of(ada, stripe), **changed)).status_code == 204
    assert TopUpRequest.objects.get().state == "open"


def test_a_payment_that_fails_is_refused_and_one_that_comes_later_is_credited(
    ada: Caller, stripe: StandIn
) -> None:
    session = session_of(ada, stripe)
    assert call(event("expired", session)).status_code == 204
    row = TopUpRequest.objects.get()
    assert (row.state, row.reason) == ("refused", "expired")
    assert call(event("async_payment_succeeded", session)).status_code == 204
    assert call(event("expired", session)).status_code == 204
    row.refresh_from_db()
    assert (row.state, wallet(ada.person)) == ("credited", "5")


def test_a_call_that_is_too_long_or_for_no_provider_is_refused(
    ada: Caller, stripe: StandIn
) -> None:
    assert call(b"x" * 300_000).status_code == 413
    assert Client().post(HOOK.replace("stripe", "other")).status_code == 404
    assert Client().get(HOOK).status_code == 405


@pytest.mark.parametrize("kind", ["completed", "expired"])
def test_another_payment_that_names_the_request_changes_nothing(
    ada: Caller, stripe: StandIn, kind: str
) -> None:
    session = session_of(ada, stripe)
    other = event(kind, {**session, "id": "cs_test_other"})
    assert call(other).status_code == 400
    assert (wallet(ada.person), TopUpRequest.objects.get().state) == ("0", "open")
    own_event = event("completed", session)
    assert [call(own_event).status_code for _ in range(2)] == [204, 204]
    assert call(other).status_code == 400
    assert (wallet(ada.person), TopUpRequest.objects.get().state) == ("5", "credited")


def test_a_payment_whose_start_was_not_stored_is_credited_once(
    ada: Caller, stripe: StandIn
) -> None:
    session = session_of(ada, stripe)
    TopUpRequest.objects.update(reference="")
    assert call(event("completed", session)).status_code == 204
    assert call(event("completed", {**session, "id": "cs_test_other"})).status_code == 400
    assert wallet(ada.person) == "5"


@pytest.mark.django_db(transaction=True)
def test_the_same_call_at_once_is_credited_once(
    ada: Caller, stripe: StandIn, django_db_blocker: DjangoDbBlocker
) -> None:
    body = event("completed", session_of(ada, stripe))
    answers = race(django_db_blocker, *[partial(call, body)] * 4)
    assert {getattr(answer, "status_code", answer) for answer in answers} == {204}
    assert wallet(ada.person) == "5"
