"""The payment of one HTTP request as an edge of another protocol uses it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.test import override_settings
from django.urls import include, path
from x402 import PaymentRequired
from x402.http.utils import decode_payment_required_header

from agents_app.rest.rights import ANY
from payments_app import services as ledger
from payments_app.money import Money
from payments_app.tokens import issuance
from sessions_app.models import Session, SessionTransport
from sessions_app.transports.http_exchange import HttpExchange, principal_of, protocol_view
from sessions_app.transports.http_payment import HttpPayment
from tests.live_server import quick_agent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.live_server import Person


def demand_of_the_dialect(demand: Mapping[str, Any]) -> bytes:
    """Return the body of a 402 as a protocol writes it that has `error` in its refusals."""
    return msgspec.json.encode({**demand, "error": {"message": demand["message"], "param": None}})


@protocol_view("POST")
async def ask(request: HttpRequest) -> HttpResponseBase:
    """Ask the agent that has a price, in a dialect with words of its own."""
    exchange = HttpExchange(
        request,
        await principal_of(request, protocol="uamp", scope=ANY),
        SessionTransport.COMPLETIONS,
    )
    payment = HttpPayment(request, exchange.connection, demand_body=demand_of_the_dialect)
    events = (
        {"type": "session.create", "event_id": "1", "uamp_version": "1.0", "session": {}},
        {"type": "input.text", "event_id": "2", "text": request.body.decode()},
        {"type": "response.create", "event_id": "3"},
    )
    try:
        for event in events:
            await exchange.take(json.dumps({**event, "agent": "priced"}).encode())
            if payment.refusal is not None:
                return payment.refusal
        exchange.end_when_idle()
        frames = [outgoing.text async for outgoing in exchange.connection.outgoing.frames()]
    finally:
        await exchange.close()
    reported = [json.loads(frame)["type"] for frame in frames]
    return HttpResponse(" ".join(reported), headers=payment.headers)


urlpatterns = [path("ask", ask), path("", include("uamp_project.urls"))]


@pytest.fixture
def edge(web: httpx.Client) -> Iterator[httpx.Client]:
    """Give a client of a server that has the edge of the dialect, and an agent with a price."""
    agent = quick_agent("priced", "echo")
    agent.pricing = {"per_answer": "0.25"}
    agent.save()
    with override_settings(ROOT_URLCONF=__name__):
        yield web


def test_the_402_has_the_words_of_its_dialect_and_what_x402_reads(edge: httpx.Client) -> None:
    refused = edge.post("/ask", content=b"Hello")
    assert refused.status_code == httpx.codes.PAYMENT_REQUIRED
    body = refused.json()
    assert body["error"] == {"message": body["message"], "param": None}
    assert (body["x402Version"], body["code"]) == (2, "payment_required")
    demand = decode_payment_required_header(refused.headers["PAYMENT-REQUIRED"])
    assert [offer.model_dump()["amount"] for offer in demand.accepts] == ["250000000"]


def test_a_token_in_the_address_is_in_no_part_of_the_402(edge: httpx.Client) -> None:
    refused = edge.post("/ask?payment_token=ptok_secret", content=b"Hello")
    assert refused.status_code == httpx.codes.PAYMENT_REQUIRED
    demand = decode_payment_required_header(refused.headers["PAYMENT-REQUIRED"])
    assert isinstance(demand, PaymentRequired)
    assert demand.resource is not None
    assert demand.resource.url == str(edge.base_url.join("/ask"))
    assert "ptok_secret" not in refused.text + demand.model_dump_json()


def test_a_payment_header_pays_and_its_receipt_is_a_header_of_the_answer(
    edge: httpx.Client, alice: Person
) -> None:
    account = ledger.account_of_user(alice.user.pk).id
    ten = Money.parse("10", "USD")
    ledger.top_up(key="1", account=account, amount=ten, provider="tests", external_id="1")
    issued = issuance.issue(key="2", user_id=alice.user.pk, amount=ten, expires_in=600)
    paid = edge.post("/ask", content=b"Hello", headers={"X-Payment-Token": issued.token})
    assert paid.status_code == httpx.codes.OK
    assert "response.done" in paid.text.split()
    assert "PAYMENT-RESPONSE" in paid.headers
    assert Session.objects.get().transport == "completions"
