"""Remote agents over HTTP that demand a payment with x402, paid with a token of their server."""

from __future__ import annotations

import base64
import json
from asyncio import to_thread
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.models import Agent
from agents_app.remote.protocols.demands import demand_in
from agents_app.selectors import get_spec
from payments_app.models import Hold, PaymentToken
from tests.agents_app.remote.remote_agents import failure, remote_agent, request_of, run, text_of
from tests.agents_app.remote.test_loopback import far
from tests.client import wait_until
from tests.sessions_app.billing.paid_agents import clean, earned, pay, priced, rich, wallet
from tests.sessions_app.turn.delegation import answer_text
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

BUDGET = "/api/payments/onward/far"
PROTOCOLS = ("completions", "responses", "uamp_http")
ASKED, BOUGHT = "/v1/chat/completions", "/api/payments/tokens"
AT_THE_ADDRESS = (("a2a", "/v1"), ("ag_ui", "/v1"))


def budget(web: httpx.Client, who: Person) -> dict[str, str]:
    """Return the parts of the budget of `far` that are left, held and spent."""
    amounts = web.get(BUDGET, headers=who.headers).json()
    return {name: amounts[name] for name in ("left", "held", "spent")}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_over_http_is_paid_on_both_servers(
    demo: ServerAddress,
    dial: Dial,
    web: httpx.Client,
    alice: Person,
    bob: Person,
    protocol: str,
) -> None:
    dear = priced("dear", per_answer="0.02")
    row = far(demo, bob, protocol, "dear", options={"pays_per_answer": "0.05"}, owner=bob.user)
    row.pricing = {"per_answer": "0.25"}
    row.save()
    for who in (alice, bob):
        rich(who)
    web.put(BUDGET, headers=bob.headers, json={"amount": "0.5"})
    client = dial(alice)
    created = client.create_session(agent="far")
    client.ask("hello there")
    pay(client, client.until("payment.required")[-1])
    frames = client.until("response.done", "response.error")
    assert answer_text(frames) == "hello there"

    wait_until(lambda: earned(dear) == "0.02")
    wait_until(lambda: budget(web, bob) == {"left": "0.48", "held": "0", "spent": "0.02"})
    assert str(wallet(bob).available) == "9.98"
    assert str(wallet(alice).available) == "9.75"
    assert earned(Agent.objects.get(name="far")) == "0.25"
    path = f"/api/v1/chats/{created['chat']}/payments"
    receipt = web.get(path, headers=alice.headers).json()["data"][0]
    assert (receipt["amount"], receipt["paid_onward"]) == ("0.25", "0.02")
    assert clean()


@pytest.mark.parametrize(
    ("amount", "options"),
    [("0.019", {"pays_per_answer": "0.05"}), ("1", {"pays_per_answer": "0.01"}), ("1", {})],
)
def test_a_demand_beyond_the_budget_buys_no_token(
    demo: ServerAddress,
    dial: Dial,
    web: httpx.Client,
    alice: Person,
    bob: Person,
    amount: str,
    options: dict[str, str],
) -> None:
    priced("dear", per_answer="0.02")
    far(demo, bob, "uamp_http", "dear", options=options, owner=bob.user)
    rich(bob)
    web.put(BUDGET, headers=bob.headers, json={"amount": amount})
    client = dial(alice)
    client.create_session(agent="far")
    client.ask("hello there")
    assert client.until("response.error")[-1]["error"]["code"] == "quota_exceeded"
    assert not PaymentToken.objects.exists()
    assert budget(web, bob) == {"left": amount, "held": "0", "spent": "0"}
    assert str(wallet(bob).posted) == "10"
    wait_until(lambda: not Hold.objects.filter(state="active").exists())
    assert Agent.objects.get(name="far").failures == 0, "the other side did nothing wrong"


# --- Servers that lie ---

OFFER: dict[str, Any] = {
    "scheme": "token",
    "network": "uamp:main",
    "asset": "USD",
    "amount": "20000000",
    "payTo": "dear",
    "extra": {"tokenType": "jwt", "decimals": 9},
}


def demand(*offers: object, **members: object) -> bytes:
    """Return the body of a 402."""
    return json.dumps({"x402Version": 2, "accepts": list(offers), **members}).encode()


def path_of(exchange: Exchange) -> str:
    """Return the path that was posted to."""
    return exchange.head.split()[1]


def header_of(exchange: Exchange, name: str) -> str:
    """Return a header of a request."""
    lines = [line.partition(": ") for line in exchange.head.split("\r\n")]
    return next((value for key, _, value in lines if key.lower() == name), "")


A2A_DONE = {
    "id": "t",
    "status": {"state": "TASK_STATE_COMPLETED"},
    "artifacts": [{"artifactId": "a", "parts": [{"text": "Paid."}]}],
}
ANSWERS: dict[str, list[dict[str, Any]]] = {
    "a2a": [{"jsonrpc": "2.0", "id": 1, "result": {"task": A2A_DONE}}],
    "ag_ui": [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Paid."},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
    ],
    "completions": [
        {"choices": [{"index": 0, "delta": {"content": "Paid."}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ],
}
"""The events of a paid answer, by protocol."""


async def outcome_of(
    web: httpx.Client, bob: Person, shop: Any, protocol: str = "completions"
) -> tuple[str, list[Exchange], dict[str, str]]:
    """Return the text or the error of an answer, what was requested, and the budget then."""

    async def respond(exchange: Exchange) -> None:
        if path_of(exchange) == BOUGHT:
            await exchange.refuse(*shop["token"], "Connection: close")
        elif header_of(exchange, "payment-signature") and "again" not in shop:
            await exchange.send(STREAM_HEAD)
            for event in ANSWERS[protocol]:
                await exchange.chunk(**event)
        else:
            body = shop.get("demand", demand(OFFER))
            await exchange.refuse("402 Payment Required", body, "Connection: close")

    async with serve(respond) as wire:
        options = {"pays_per_answer": "0.05"}
        make_agent = partial(
            remote_agent,
            wire.url,
            protocol=protocol,
            key="sesame",
            options=options,
            owner=bob.user,
        )
        row = await to_thread(make_agent)
        await to_thread(partial(web.put, BUDGET, headers=bob.headers, json={"amount": "0.1"}))
        spec = await to_thread(get_spec, row.pk)
        if "fails" in shop:
            _, error = await failure(spec, request_of())
            text = str(error.code)
        else:
            text = text_of((await run(spec, request_of()))[0])
        await to_thread(wait_until, lambda: budget(web, bob)["held"] == "0")
    return text, wire.exchanges, await to_thread(budget, web, bob)


@pytest.mark.parametrize(("protocol", "path"), [("completions", ASKED), *AT_THE_ADDRESS])
async def test_the_token_is_bought_for_the_demand_and_sent_with_the_same_request(
    web: httpx.Client, bob: Person, protocol: str, path: str
) -> None:
    sold = ("201 Created", b'{"id": "tok_1", "token": "pt_secret"}')
    text, exchanges, counted = await outcome_of(web, bob, {"token": sold}, protocol)
    assert text == "Paid."
    first, bought, second = exchanges
    assert [path_of(exchange) for exchange in exchanges] == [path, BOUGHT, path]
    assert first.body == second.body
    assert bought.body == {
        "amount": "0.02",
        "currency": "USD",
        "audience": ["dear"],
        "expiresIn": 3600,
    }
    assert header_of(bought, "authorization") == "Bearer sesame"
    payment = json.loads(base64.b64decode(header_of(second, "payment-signature")))
    assert payment == {"x402Version": 2, "accepted": OFFER, "payload": {"token": "pt_secret"}}
    assert counted == {"left": "0.08", "held": "0", "spent": "0.02"}


SOLD = ("201 Created", b'{"token": "pt_secret"}')


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("shop", "code", "paths", "spent"),
    [
        # It demands again what was paid: nothing is paid twice, and the first payment counts.
        ({"again": True, "token": SOLD}, "quota_exceeded", [ASKED, BOUGHT, ASKED], "0.02"),
        ({"token": ("402 Payment Required", b"{}")}, "quota_exceeded", [ASKED, BOUGHT], "0"),
        ({"token": ("307 Temporary Redirect", b"", "Location: http://169.254.169.254/")},
         "quota_exceeded", [ASKED, BOUGHT], "0"),
        ({"token": ("201 Created", b'{"token": 7}')}, "provider_error", [ASKED, BOUGHT], "0"),
        ({"token": ("201 Created", b'{"token": "' + b"x" * 10**6 + b'"}')},
         "provider_error", [ASKED, BOUGHT], "0"),
        ({"demand": demand({**OFFER, "amount": "60000000"})}, "quota_exceeded", [ASKED], "0"),
        ({"demand": demand({**OFFER, "scheme": "exact"})}, "quota_exceeded", [ASKED], "0"),
    ],
)  # fmt: skip
async def test_a_shop_that_lies_is_paid_once_at_most(
    web: httpx.Client, bob: Person, shop: dict[str, Any], code: str, paths: list[str], spent: str
) -> None:
    error_code, exchanges, counted = await outcome_of(web, bob, {"fails": True, **shop})
    assert error_code == code
    assert [path_of(exchange) for exchange in exchanges] == paths
    assert counted["spent"] == spent


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{]",
        b"[" * 100_000,
        b"[]",
        demand(),
        demand(OFFER, x402Version=1),
        demand(OFFER, x402Version="2"),
        demand(7, None, {}),
        b'{"x402Version": 2, "accepts": {"scheme": "token"}}',
        *(
            demand({**OFFER, name: value})
            for name, value in [
                ("asset", "EUR"),
                ("network", "eip155:1"),
                ("network", ["uamp"]),
                ("amount", "-1"),
                ("amount", "1.5"),
                ("amount", 20),
                ("amount", "9" * 31),
                ("payTo", ""),
                ("payTo", "x" * 101),
                ("extra", {"decimals": 99}),
                ("extra", {"decimals": True}),
                ("extra", {}),
                ("extra", None),
            ]
        ),
    ],
)
def test_an_offer_that_cannot_be_read_is_not_paid(body: bytes) -> None:
    assert demand_in({}, body) is None


@pytest.mark.parametrize(
    ("amount", "decimals", "dollars"),
    [("20000000", 9, "0.02"), ("100", 0, "100"), ("1", 18, "0.000000000000000001"), ("0", 2, "0")],
)
def test_an_offer_in_the_smallest_unit_is_read(amount: str, decimals: int, dollars: str) -> None:
    offer = {**OFFER, "amount": amount, "extra": {"decimals": decimals}}
    exact = {"scheme": "exact", "network": "eip155:8453", "amount": "1"}
    header = base64.b64encode(demand(exact, offer)).decode()
    for headers, body in (({}, demand(exact, offer)), ({"PAYMENT-REQUIRED": header}, b"<html>")):
        read_demand = demand_in(headers, body)
        assert read_demand is not None
        assert (read_demand.amount, read_demand.payee) == (dollars, "dear")


@pytest.mark.parametrize(
    "spell",
    [
        lambda data: base64.urlsafe_b64encode(data).decode(),
        lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="),
        lambda data: base64.b64encode(data).decode().rstrip("="),
        lambda data: f" {base64.b64encode(data).decode()} ",
    ],
    ids=["for URLs", "for URLs without padding", "without padding", "spaced"],
)
def test_a_demand_is_read_in_every_spelling_of_base64(spell: Callable[[bytes], str]) -> None:
    document = {"x402Version": 2, "accepts": [{**OFFER, "description": "ÿþ??>>."}]}
    header = spell(json.dumps(document, ensure_ascii=False).encode())
    assert demand_in({"PAYMENT-REQUIRED": header}, b"") is not None
