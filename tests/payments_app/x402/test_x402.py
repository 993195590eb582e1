"""Payment by HTTP headers, with the official client of x402 where it signs for real."""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from eth_account import Account
from x402 import x402ClientSync
from x402.http.clients.requests import x402_requests
from x402.http.utils import decode_payment_required_header, decode_payment_response_header
from x402.mechanisms.evm.exact.client import ExactEvmScheme
from x402.mechanisms.evm.exact.v1.client import ExactEvmSchemeV1
from x402.schemas.v1 import PaymentRequirementsV1

from payments_app import selectors, services
from payments_app import x402 as ours
from payments_app.models import PaymentToken, Receipt, Transfer
from payments_app.money import Money
from payments_app.services import Split
from payments_app.tokens import lookup as token_lookup
from payments_app.x402 import PaymentNotTaken, offers
from tests import factories
from tests.payments_app.funded_accounts import authorize, available, new_key, usd
from tests.payments_app.tokens.issued_tokens import issue, race, rich
from tests.payments_app.x402 import facilitator
from tests.threads import join_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_django import DjangoDbBlocker, Settings
    from x402.schemas.payments import PaymentRequirements

    from tests.payments_app.x402.facilitator import Facilitator, Mode

pytestmark = pytest.mark.django_db

PAY_TO = "0x" + "ab" * 20
PRICE = "0.01"


def demand(price: str = PRICE, agent: str = "echo") -> dict[str, Any]:
    return ours.requirements(
        usd(price), resource_url="http://localhost/uamp", description="An answer", agent=agent
    )


def encoded(document: object) -> str:
    return base64.b64encode(json.dumps(document).encode()).decode()


def refusal(
    headers: dict[str, str], body: dict[str, Any] | None = None, user_id: int | None = None
) -> PaymentNotTaken:
    with pytest.raises(PaymentNotTaken) as caught:
        ours.accept(headers, body or demand(), user_id=user_id)
    return caught.value


@pytest.fixture
def chain(settings: Settings) -> Iterator[Facilitator]:
    """Let answers be paid on a chain, through a facilitator of the test."""
    with facilitator.running() as server:
        settings.UAMP_X402_FACILITATOR = server.url
        settings.UAMP_X402_PAY_TO = PAY_TO
        settings.UAMP_X402_SECONDS = 30
        yield server


# --- The 402 ---


def test_one_body_serves_every_client() -> None:
    body = ours.requirements(
        usd(PRICE),
        resource_url="http://localhost/uamp",
        description="An answer",
        agent="echo",
        response_id="resp_1",
    )
    assert (body["error"], body["status_code"], body["x402Version"]) == ("Payment required", 402, 2)
    (offer,) = body["accepts"]
    assert (offer["scheme"], offer["network"], offer["amount"]) == (
        "token",
        "uamp:main",
        "10000000",
    )
    (seed,) = body["context"]["accepts"]
    assert (seed["scheme"], seed["network"], seed["amount"]) == ("token", "uamp", "0.01")
    assert seed["maxAmountRequired"] == "0.01"
    assert body["response_id"] == "resp_1"


def test_the_header_is_what_the_official_library_reads(chain: Facilitator) -> None:
    body = demand("0.0100001")
    headers = ours.required_headers(body)
    read: Any = decode_payment_required_header(headers["PAYMENT-REQUIRED"])
    assert [(one.scheme, one.network, one.amount) for one in read.accepts] == [
        ("token", "uamp:main", "10000100"),
        ("exact", "eip155:8453", "10001"),
    ]
    assert read.resource.url == "http://localhost/uamp"
    assert headers["Cache-Control"] == "no-store"
    assert "PAYMENT-RESPONSE" in headers["Access-Control-Expose-Headers"]


def test_without_a_facilitator_nothing_is_offered_on_a_chain() -> None:
    assert [offer["scheme"] for offer in demand()["accepts"]] == ["token"]


def test_credits_are_not_paid_on_a_chain(chain: Facilitator) -> None:
    assert offers.exact_offer(Money.parse("1", "CREDITS")) is None


@pytest.mark.parametrize(
    ("text", "asset", "atomic"),
    [("0.01", "USD", 10_000), ("0.010000001", "USD", 10_001), ("1", "USDC", 1_000_000)],
)
def test_on_a_chain_amounts_are_rounded_up(text: str, asset: str, atomic: int) -> None:
    assert offers.on_chain(Money.parse(text, asset)) == atomic


# --- Tokens ---


@pytest.mark.parametrize("form", ["opaque", "jwt"])
@pytest.mark.parametrize(
    "way",
    ["PAYMENT-SIGNATURE", "x-payment v1", "x-payment v1 without version", "bare", "base64",
     "X-Payment-Token"],
)  # fmt: skip
def test_a_token_is_taken_from_every_header(way: str, form: str) -> None:
    token = issue(rich(), form=form, audience=["echo"])
    body = demand()
    v1 = {"scheme": "token", "network": "uamp", "payload": {"token": token.token, "amount": PRICE}}
    headers = {
        "PAYMENT-SIGNATURE": {
            "PAYMENT-SIGNATURE": encoded(
                {
                    "x402Version": 2,
                    "payload": {"token": token.token},
                    "accepted": body["accepts"][0],
                }
            )
        },
        "x-payment v1": {"X-PAYMENT": encoded({"x402Version": 1, **v1})},
        "x-payment v1 without version": {"x-payment": encoded(v1)},
        "bare": {"X-Payment": token.token},
        "base64": {"X-PAYMENT": base64.b64encode(token.token.encode()).decode()},
        "X-Payment-Token": {"X-Payment-Token": token.token},
    }[way]
    taken = ours.accept(headers, body)
    assert taken is not None
    assert (taken.token_id, taken.account_id) == (token.id, token.account_id)
    answer = decode_payment_response_header(taken.response_headers["PAYMENT-RESPONSE"])
    assert (answer.success, answer.transaction) == (True, token.id)
    assert (
        taken.response_headers["X-PAYMENT-RESPONSE"] == (taken.response_headers["PAYMENT-RESPONSE"])
    )


@pytest.mark.parametrize("form", ["opaque", "jwt"])
@pytest.mark.parametrize("what", ["version 2", "version 1", "token"])
@pytest.mark.parametrize(
    "spell",
    [
        lambda data: base64.urlsafe_b64encode(data).decode(),
        lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="),
        lambda data: base64.b64encode(data).decode().rstrip("="),
        lambda data: base64.b64encode(data).decode() + "=",
        lambda data: base64.b64encode(b"\n " + data + b" \n").decode(),
        lambda data: base64.encodebytes(data).decode().replace("\n", " "),
    ],
    ids=["for URLs", "for URLs without padding", "without padding", "padded", "spaced", "lines"],
)
def test_a_payment_is_taken_in_every_spelling_of_base64(
    spell: Callable[[bytes], str], what: str, form: str
) -> None:
    token = issue(rich(), form=form)
    payload = {"payload": {"token": token.token, "note": "ÿþ??>>"}}
    document = {
        "version 2": {"x402Version": 2, "accepted": demand()["accepts"][0], **payload},
        "version 1": {"x402Version": 1, "scheme": "token", "network": "uamp", **payload},
        "token": None,
    }[what]
    whole = token.token if document is None else json.dumps(document, ensure_ascii=False)
    header = "PAYMENT-SIGNATURE" if what == "version 2" else "X-PAYMENT"
    assert taken({header: spell(whole.encode())}).token_id == token.id


def test_a_request_without_payment_has_none() -> None:
    assert ours.accept({"Content-Type": "application/json", "X-PAYMENT": " "}, demand()) is None


@pytest.mark.parametrize(
    "value",
    [
        "hello world",
        "%%%",
        "x" * 20_000,
        encoded([1]),
        encoded({"x402Version": 3, "scheme": "token", "payload": {"token": "x"}}),
        encoded({"scheme": "token", "payload": {}}),
        encoded({"scheme": "token", "payload": {"token": 7}}),
        encoded({"scheme": "token"}),
        encoded({"x402Version": [], "scheme": "token", "payload": {"token": "x"}}),
        encoded({"x402Version": True, "scheme": "token", "payload": {"token": "x"}}),
        encoded({"x402Version": {}, "accepted": {"scheme": "token"}, "payload": {"token": "x"}}),
        encoded({"payload": {}, "accepted": {"scheme": 1}}),
        base64.b64encode(b'{"a":1,"a":2}').decode(),
        base64.b64encode(b'{"a":').decode(),
        "ptok_unknown",
        "a.b.c",
    ],
    ids=lambda value: value[:12],
)
def test_what_is_no_payment_is_refused(value: str) -> None:
    assert refusal({"X-PAYMENT": value}).code == "token_invalid"


def test_a_token_for_another_agent_or_with_too_little_is_refused() -> None:
    ada = rich()
    foreign = issue(ada, audience=["other"])
    assert refusal({"X-PAYMENT": foreign.token}).code == "token_invalid"
    poor = issue(ada, "0.005")
    error = refusal({"X-PAYMENT": poor.token})
    assert error.code == "insufficient_balance"
    assert "available: $0.005" in str(error)


def test_no_more_than_a_token_allows_for_one_use_is_taken() -> None:
    token = issue(rich(), per_use=usd("0.009"))
    assert refusal({"X-PAYMENT": token.token}).code == "rate_limited"
    assert taken({"X-PAYMENT": token.token}, "0.009").token_id == token.id


def test_a_token_in_another_asset_is_refused() -> None:
    token = issue(rich())
    credits_wanted = ours.requirements(
        Money.parse("0.01", "CREDITS"), resource_url="http://x", description="", agent="echo"
    )
    assert refusal({"X-PAYMENT": token.token}, credits_wanted).code == "token_invalid"


def test_an_unknown_scheme_is_refused() -> None:
    value = encoded({"scheme": "barter", "payload": {}})
    assert refusal({"X-PAYMENT": value}).code == "payment_failed"


def test_exact_is_refused_where_there_is_no_facilitator() -> None:
    value = encoded({"scheme": "exact", "payload": {"authorization": {}}})
    assert refusal({"X-PAYMENT": value}).code == "payment_failed"


# --- On a chain ---


def signed(body: dict[str, Any], signer: Any = None, **accepted: Any) -> dict[str, str]:
    """Return the header that the official client makes of a 402."""
    client = x402ClientSync()
    client.register("eip155:*", ExactEvmScheme(signer or Account.create()))
    read: Any = decode_payment_required_header(ours.required_headers(body)["PAYMENT-REQUIRED"])
    exact: PaymentRequirements = read.accepts[1]
    read.accepts = [exact.model_copy(update=accepted)]
    made = client.create_payment_payload(read)
    return {
        "PAYMENT-SIGNATURE": base64.b64encode(
            made.model_dump_json(by_alias=True, exclude_none=True).encode()
        ).decode()
    }


def taken(headers: dict[str, str], price: str = PRICE) -> ours.Accepted:
    done = ours.accept(headers, demand(price))
    assert done is not None
    return done


def test_a_payment_on_a_chain_is_credited_into_a_token_of_its_own(chain: Facilitator) -> None:
    signer = Account.create()
    done = taken(signed(demand(), signer))
    assert (done.scheme, done.payer) == ("exact", signer.address)
    assert str(done.available) == PRICE
    token = token_lookup.by_id(done.token_id, agent="echo")
    assert (token.account_id, token.owner_id) == (done.account_id, None)
    with pytest.raises(token_lookup.TokenRefused):
        token_lookup.by_id(done.token_id, agent="other")
    assert chain.received[PAY_TO] == 10_000
    receipt = Receipt.objects.get(provider="x402")
    assert (receipt.state, receipt.amount) == ("confirmed", usd(PRICE).amount)
    answer = decode_payment_response_header(done.response_headers["PAYMENT-RESPONSE"])
    assert (answer.success, answer.payer) == (True, signer.address)
    assert answer.transaction in chain.settled.values()
    assert services.audit().clean


def test_what_an_answer_leaves_over_is_spent_with_the_secret_of_the_first_answer(
    chain: Facilitator,
) -> None:
    headers = signed(demand())
    done = taken(headers)
    answer = decode_payment_response_header(done.response_headers["PAYMENT-RESPONSE"])
    assert answer.extra is not None
    secret = answer.extra["token"]
    charge(done.account_id, "0.004")
    assert str(taken({"X-PAYMENT": secret}, "0.006").available) == "0.006"
    again = refusal(headers)
    assert again.code == "payment_used"
    assert "used" in str(again)


def charge(account_id: int, amount: str) -> None:
    hold = authorize(key=new_key(), account_id=account_id, amount=usd(amount))
    agent = services.account_of_agent("agent_1")
    services.capture(
        key=new_key(),
        hold_id=hold.hold_id,
        amount=usd(amount),
        splits=[Split(agent.id, usd(amount))],
        release=True,
    )


@pytest.mark.parametrize("way", ["person", "secret"])
def test_the_same_payment_again_is_its_senders_alone_and_moves_nothing(
    chain: Facilitator, way: str
) -> None:
    headers = signed(demand())
    user_id = 7 if way == "person" else None
    first = ours.accept(headers, demand(), user_id=user_id)
    assert first is not None
    for other in (None, 8):
        with pytest.raises(PaymentNotTaken) as caught:
            ours.accept(headers, demand(), user_id=other)
        assert caught.value.code == "payment_used"
    assert refusal({**headers, "X-Payment-Token": "ptok_missing"}).code == "payment_used"
    shown = {"X-Payment-Token": first.secret} if way == "secret" else {}
    second = ours.accept({**headers, **shown}, demand(), user_id=user_id)
    assert second is not None
    assert (first.token_id, str(second.available)) == (second.token_id, PRICE)
    assert chain.asked["settle"] == 1
    answer = decode_payment_response_header(second.response_headers["PAYMENT-RESPONSE"])
    assert answer.transaction in chain.settled.values()
    assert answer.extra == {"token": first.secret}


def test_a_payment_that_a_person_sent_is_not_another_ones_before_it_is_credited(
    chain: Facilitator,
) -> None:
    headers = signed(demand())
    chain.mode = "500 after settling"
    with pytest.raises(PaymentNotTaken, match="Send the same payment again"):
        ours.accept(headers, demand(), user_id=7)
    chain.mode = "ok"
    assert refusal(headers).code == "payment_used"
    assert Receipt.objects.get().state == "submitted"
    done = ours.accept(headers, demand(), user_id=7)
    assert done is not None
    assert str(done.available) == PRICE


@pytest.mark.parametrize("credited", [False, True], ids=["submitted", "credited"])
@pytest.mark.parametrize("thief", ["another address", "a person", "another form", "a token"])
def test_a_visitors_payment_is_not_another_ones_before_it_was_taken(
    chain: Facilitator, thief: str, *, credited: bool
) -> None:
    """The money moved and the answer was lost: the chain shows the payment to every reader."""
    headers = signed(demand())
    chain.mode = "500 after settling"
    with pytest.raises(PaymentNotTaken, match="Send the same payment again"):
        ours.accept(headers, demand(), visitor="192.0.2.1")
    if credited:
        client = Client()
        client.force_login(factories.superuser())
        page = reverse("admin:payments_app_receipt_operate", args=[Receipt.objects.get().pk])
        assert client.post(page, {"key": "k", "reason": "seen on the chain"}).status_code == 302
    chain.mode = "ok"
    shown, sender = dict(headers), {"visitor": "192.0.2.1"}
    match thief:
        case "another address":
            sender["visitor"] = "192.0.2.2"
        case "a token":
            shown["X-Payment-Token"], sender["visitor"] = issue(rich()).token, "192.0.2.2"
        case "another form":
            document = json.loads(base64.b64decode(headers["PAYMENT-SIGNATURE"]))
            document["resource"]["description"] = "Another answer"
            shown = {"PAYMENT-SIGNATURE": encoded(document)}
    with pytest.raises(PaymentNotTaken) as caught:
        ours.accept(shown, demand(), user_id=7 if thief == "a person" else None, **sender)
    assert caught.value.code == "payment_used"
    done = ours.accept(headers, demand(), visitor="192.0.2.1")
    assert done is not None
    assert str(done.available) == PRICE
    assert services.audit().clean


def test_a_known_authorization_with_another_signature_is_refused(chain: Facilitator) -> None:
    headers = signed(demand())
    taken(headers)
    document = json.loads(base64.b64decode(headers["PAYMENT-SIGNATURE"]))
    document["payload"]["signature"] = "0x" + "00" * 65
    assert refusal({"PAYMENT-SIGNATURE": encoded(document)}).code == "token_invalid"


def altered(headers: dict[str, str], **authorization: str) -> dict[str, str]:
    document = json.loads(base64.b64decode(headers["PAYMENT-SIGNATURE"]))
    document["payload"]["authorization"].update(authorization)
    return {"PAYMENT-SIGNATURE": encoded(document)}


def test_a_forged_payment_leaves_no_row(chain: Facilitator) -> None:
    forged = altered(signed(demand()), **{"from": Account.create().address})
    assert "invalid_signature" in str(refusal(forged))
    assert Receipt.objects.count() == PaymentToken.objects.count() == 0
    assert chain.asked["settle"] == 0


@pytest.mark.parametrize(
    "change",
    [
        {"from": "0x12"},
        {"nonce": "0x12"},
        {"value": "1e9"},
        {"value": "-1"},
        {"value": "٣٠٠٠٠"},
        {"value": "9" * 30},
        {"value": "9" * 18},
        {"value": "0"},
    ],
    ids=str,
)
def test_an_authorization_that_is_not_whole_is_refused_before_the_facilitator_is_asked(
    chain: Facilitator, change: dict[str, str]
) -> None:
    assert refusal(altered(signed(demand()), **change)).code == "token_invalid"
    assert not chain.asked


def test_an_unused_payment_is_still_for_one_agent(chain: Facilitator) -> None:
    headers = signed(demand())
    shown = {"X-Payment-Token": taken(headers).secret}
    assert refusal({**headers, **shown}, demand(agent="other")).code == "token_invalid"


def test_a_payment_that_is_known_with_another_amount_is_refused(chain: Facilitator) -> None:
    headers = signed(demand())
    chain.mode = "500 after settling"
    refusal(headers)
    Receipt.objects.update(amount=usd("0.02").amount)
    chain.mode = "ok"
    assert refusal(headers).code == "token_invalid"
    assert Receipt.objects.get().state == "submitted"


def test_less_than_is_demanded_is_refused_and_more_is_credited_whole(chain: Facilitator) -> None:
    error = refusal(signed(demand("0.009")), demand())
    assert error.code == "insufficient_balance"
    assert not chain.asked
    assert str(taken(signed(demand("0.02"))).available) == "0.02"


@pytest.mark.parametrize(
    "accepted",
    [{"pay_to": "0x" + "cd" * 20}, {"network": "eip155:84532"}, {"asset": "0x" + "12" * 20}],
    ids=str,
)
def test_what_the_client_says_it_accepted_does_not_count(
    chain: Facilitator, accepted: dict[str, Any]
) -> None:
    headers = signed(demand())
    document = json.loads(base64.b64decode(headers["PAYMENT-SIGNATURE"]))
    alias = {"pay_to": "payTo"}
    document["accepted"].update({alias.get(k, k): v for k, v in accepted.items()})
    assert refusal({"PAYMENT-SIGNATURE": encoded(document)}).code == "payment_failed"
    assert not chain.asked


def test_money_that_would_go_to_another_account_is_refused(chain: Facilitator) -> None:
    elsewhere = altered(signed(demand()), to="0x" + "cd" * 20)
    assert "recipient" in str(refusal(elsewhere))


@pytest.mark.parametrize("document", [{}, {"permit2Authorization": {}}], ids=str)
def test_other_ways_on_a_chain_are_refused(chain: Facilitator, document: dict[str, Any]) -> None:
    value = encoded({"x402Version": 1, "scheme": "exact", "network": "base", "payload": document})
    assert refusal({"X-PAYMENT": value}).code == "payment_failed"


def v1_header(network: str = "base") -> dict[str, str]:
    """Return what a client of version 1 sends."""
    wanted = PaymentRequirementsV1(
        scheme="exact",
        network=network,
        max_amount_required="10000",
        resource="http://localhost/uamp",
        pay_to=PAY_TO,
        max_timeout_seconds=60,
        asset="0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        extra={"name": "USD Coin", "version": "2"},
    )
    payload = ExactEvmSchemeV1(Account.create()).create_payment_payload(wanted)
    document = {"x402Version": 1, "scheme": "exact", "network": network, "payload": payload}
    return {"X-PAYMENT": encoded(document)}


def test_a_payment_of_version_1_is_taken(chain: Facilitator) -> None:
    assert str(taken(v1_header()).available) == PRICE
    assert chain.received[PAY_TO] == 10_000


def test_a_payment_of_version_1_on_another_network_is_refused(chain: Facilitator) -> None:
    assert refusal(v1_header("base-sepolia")).code == "payment_failed"
    assert not chain.asked


# --- Facilitators that misbehave ---


@pytest.mark.parametrize("mode", ["invalid", "500 at verify", "no json"])
def test_what_is_not_verified_is_not_settled_and_leaves_no_row(
    chain: Facilitator, mode: Mode
) -> None:
    headers = signed(demand())
    chain.mode = mode
    assert refusal(headers).code == "payment_failed"
    assert (chain.asked["settle"], Receipt.objects.count()) == (0, 0)
    chain.mode = "ok"
    assert str(taken(headers).available) == PRICE


@pytest.mark.parametrize("mode", ["500 after settling", "late"])
def test_an_answer_that_is_lost_is_found_by_the_same_payment_again(
    chain: Facilitator, mode: Mode, settings: Settings
) -> None:
    headers = signed(demand())
    chain.mode = mode
    # Only what is late on purpose is too late: a machine with other work takes longer.
    settings.UAMP_X402_SECONDS = 1 if mode == "late" else 30
    for _ in range(2):
        assert "Send the same payment again" in str(refusal(headers))
        assert Receipt.objects.get().state == "submitted"
    chain.mode = "ok"
    settings.UAMP_X402_SECONDS = 30
    done = taken(headers)
    assert str(done.available) == PRICE
    assert str(taken({**headers, "X-Payment-Token": done.secret}).available) == PRICE
    assert chain.received[PAY_TO] == 10_000
    assert chain.asked["verify"] == 1, "what was submitted is not verified anew: its nonce is used"
    assert services.audit().clean


def test_a_facilitator_that_forgets_what_it_settled_credits_nothing_by_itself(
    chain: Facilitator,
) -> None:
    headers = signed(demand())
    chain.mode = "500 after settling"
    refusal(headers)
    chain.mode = "forgets"
    assert "nonce_already_used" in str(refusal(headers))
    assert Receipt.objects.get().state == "submitted"
    assert PaymentToken.objects.count() == 0


def test_what_a_facilitator_forgot_is_credited_by_an_operator_and_spent_by_its_payer(
    chain: Facilitator,
) -> None:
    headers = signed(demand())
    chain.mode = "500 after settling"
    refusal(headers)
    chain.mode = "forgets"
    refusal(headers)
    receipt = Receipt.objects.get()
    client = Client()
    client.force_login(factories.superuser())
    page = reverse("admin:payments_app_receipt_operate", args=[receipt.pk])
    row = reverse("admin:payments_app_receipt_change", args=[receipt.pk])
    assert page in client.get(row).content.decode()
    assert receipt.external_id in client.get(page).content.decode()
    assert client.get(row.replace(str(receipt.pk), "x")).status_code == 302

    for key in ("k", "k", "another"):
        assert client.post(page, {"key": key, "reason": "seen on the chain"}).status_code == 302

    assert page not in client.get(row).content.decode()
    assert Transfer.objects.filter(kind="top_up").count() == 1
    done = taken(headers)
    assert str(done.available) == PRICE
    answer = decode_payment_response_header(done.response_headers["PAYMENT-RESPONSE"])
    assert answer.extra == {"token": done.secret}
    assert refusal(headers).code == "payment_used"
    assert str(taken({**headers, "X-Payment-Token": done.secret}).available) == PRICE
    charge(done.account_id, PRICE)
    assert "used" in str(refusal(headers))
    assert services.audit().clean


@pytest.mark.parametrize("is_late", [False, True], ids=["credited", "credited late"])
def test_a_payment_that_an_operator_refunded_buys_nothing_more(
    chain: Facilitator, *, is_late: bool
) -> None:
    headers = signed(demand())
    if is_late:
        chain.mode = "500 after settling"
        refusal(headers, user_id=7)
        chain.mode = "ok"
    first = ours.accept(headers, demand(), user_id=7)
    assert first is not None
    credited = Transfer.objects.get(kind="top_up")
    services.refund(key="refund", transfer_id=credited.pk, by=None, reason="asked for")

    asked = chain.asked["settle"]
    assert refusal(headers, user_id=7).code == "payment_used"
    assert refusal({"X-PAYMENT": first.secret}).code == "insufficient_balance"
    assert refusal(headers).code == "payment_used"

    assert chain.asked["settle"] == asked
    assert Transfer.objects.filter(kind="top_up").count() == 1
    assert services.audit().clean


def test_a_payment_that_was_not_carried_out_may_be_tried_again(chain: Facilitator) -> None:
    headers = signed(demand())
    chain.mode = "not carried out"
    assert "transaction_reverted" in str(refusal(headers))
    chain.mode = "ok"
    assert str(taken(headers).available) == PRICE


def test_another_amount_than_was_signed_is_not_credited(chain: Facilitator) -> None:
    chain.mode = "another amount"
    assert refusal(signed(demand())).code == "payment_failed"
    assert Receipt.objects.get().state == "submitted"


def test_a_facilitator_that_is_away_is_said_and_nothing_is_written(settings: Settings) -> None:
    settings.UAMP_X402_FACILITATOR = "http://127.0.0.1:1/"
    settings.UAMP_X402_PAY_TO = PAY_TO
    assert refusal(signed(demand())).code == "payment_failed"
    assert Receipt.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_the_same_payment_four_times_at_once_is_credited_once(
    chain: Facilitator, django_db_blocker: DjangoDbBlocker
) -> None:
    headers = signed(demand())
    found = race(django_db_blocker, *[lambda: taken(headers).token_id] * 4)
    (token_id,) = [one for one in found if isinstance(one, str)]
    refused = [one for one in found if isinstance(one, PaymentNotTaken)]
    assert {one.code for one in refused} == {"payment_used"}
    account = PaymentToken.objects.get(pk=token_id).account_id
    assert available(account) == PRICE
    assert chain.received[PAY_TO] == 10_000
    assert services.audit().clean


# --- The official client at a door of ours ---


class PaidRoute(BaseHTTPRequestHandler):
    """A paid route as a transport makes one: demand, take, charge, answer."""

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Return the payer."""
        body = demand()
        try:
            done = ours.accept(dict(self.headers), body)
        except PaymentNotTaken as error:
            self._answer(402, {**body, "error": str(error)}, ours.required_headers(body))
        else:
            if done is None:
                self._answer(402, body, ours.required_headers(body))
            else:
                charge(done.account_id, "0.007")
                self._answer(200, {"answer": "paid"}, dict(done.response_headers))
        finally:
            connection.close()

    def _answer(self, status: int, body: dict[str, Any], headers: dict[str, str]) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(text))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)


@pytest.fixture
def route(django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), PaidRoute)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    join_threads([thread])


@pytest.mark.django_db(transaction=True)
def test_the_official_client_pays_with_its_key(chain: Facilitator, route: str) -> None:
    client = x402ClientSync()
    client.register("eip155:*", ExactEvmScheme(Account.create()))
    with x402_requests(client) as session:
        answers = [session.get(route, timeout=10) for _ in range(2)]
    assert [answer.json() for answer in answers] == [{"answer": "paid"}] * 2
    receipt = decode_payment_response_header(answers[0].headers["PAYMENT-RESPONSE"])
    assert receipt.success
    assert chain.received[PAY_TO] == 20_000
    assert available(services.account_of_agent("agent_1")) == "0.014"
    assert str(selectors.usage_by("kind")[0].amount) == "0.014"


class TokenScheme:
    """The scheme of our own network, for the official client."""

    scheme = "token"

    def __init__(self, token: str) -> None:
        self.token = token

    def create_payment_payload(self, requirements: PaymentRequirements) -> dict[str, Any]:
        """Return what the header carries."""
        assert requirements.network == "uamp:main"
        return {"token": self.token}


@pytest.mark.django_db(transaction=True)
def test_the_official_client_pays_with_a_token(route: str) -> None:
    token = issue(rich(), "0.02", form="jwt")
    client = x402ClientSync()
    client.register("uamp:*", TokenScheme(token.token))
    client.set_spend_controls(controls=False)
    with x402_requests(client) as session:
        answers = [session.get(route, timeout=10) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 402]
    assert "available: $0.006" in answers[-1].json()["error"]
