"""A request that is sent again, one that pays, and clients that leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from sessions_app.models import Response
from tests.client import wait_until
from tests.gateway_app.completions.requests import HELLO, PICTURE, ask, chunks_of, text_of
from tests.sessions_app.billing.paid_agents import token_of

if TYPE_CHECKING:
    from tests.conftest import ServerAddress
    from tests.live_server import Person


@pytest.mark.parametrize("stream", [False, True])
def test_the_same_request_under_a_key_has_the_same_answer(
    web: httpx.Client, alice: Person, *, stream: bool
) -> None:
    body = {**HELLO, "stream": stream}
    answers = [ask(web, "thinker", body, alice, **{"Idempotency-Key": "1"}) for _ in range(2)]

    assert Response.objects.count() == 1
    if stream:
        first, again = ([text_of(chunks_of(a)), chunks_of(a)[0]["id"]] for a in answers)
    else:
        first, again = ([a.json()["choices"], a.json()["id"]] for a in answers)
    assert first == again
    assert "I thought about it" in str(again)
    other = {"messages": [{"role": "user", "content": "Something else"}]}
    assert ask(web, "thinker", other, alice, **{"Idempotency-Key": "1"}).status_code == 200
    assert Response.objects.count() == 2


def test_a_key_belongs_to_its_person(web: httpx.Client, alice: Person, bob: Person) -> None:
    for person in (alice, bob):
        ask(web, "echo", HELLO, person, **{"Idempotency-Key": "1"})

    assert Response.objects.count() == 2


def test_a_refused_price_has_the_body_of_the_specification(web: httpx.Client) -> None:
    body = ask(web, "paid-echo", HELLO).json()

    assert (body["error"], body["status_code"]) == ("Payment required", 402)
    assert body["context"]["accepts"][0]["scheme"] == "token"
    assert (body["x402Version"], body["code"]) == (2, "payment_required")
    assert body["message"]


@pytest.mark.parametrize("header", ["X-PAYMENT", "X-Payment-Token"])
def test_a_payment_header_pays_once_for_a_request_and_its_repeat(
    web: httpx.Client, alice: Person, header: str
) -> None:
    headers = {header: token_of(alice), "Idempotency-Key": "1"}

    first = ask(web, "paid-echo", HELLO, None, **headers)
    again = ask(web, "paid-echo", HELLO, None, **headers)

    assert first.status_code == again.status_code == 200, first.text
    assert first.headers["PAYMENT-RESPONSE"]
    assert first.json()["choices"] == again.json()["choices"]
    assert Response.objects.count() == 1


def test_a_client_that_leaves_before_a_whole_answer_ends_it(
    demo: ServerAddress, alice: Person
) -> None:
    with (
        httpx.Client(base_url=demo.http, timeout=2, trust_env=False) as client,
        pytest.raises(httpx.ReadTimeout),
    ):
        ask(client, "slow", HELLO, alice)

    wait_until(lambda: Response.objects.get().status == "cancelled")


@pytest.mark.usefixtures("brisk")
def test_a_whole_answer_under_a_key_is_there_after_a_lost_connection(
    demo: ServerAddress, web: httpx.Client, alice: Person
) -> None:
    # A part of the answer's two seconds.
    timeout = httpx.Timeout(60, read=0.5)
    with (
        httpx.Client(base_url=demo.http, timeout=timeout, trust_env=False) as client,
        pytest.raises(httpx.ReadTimeout),
    ):
        ask(client, "slow", HELLO, alice, **{"Idempotency-Key": "1"})
    web.timeout = httpx.Timeout(60)

    answer = ask(web, "slow", HELLO, alice, **{"Idempotency-Key": "1"})

    assert answer.json()["choices"][0]["message"]["content"].endswith("word200")
    assert Response.objects.count() == 1


@pytest.mark.usefixtures("celery_worker_thread")
def test_an_answer_that_needs_a_person_is_refused_and_cancelled(
    web: httpx.Client, alice: Person
) -> None:
    content = [{"type": "text", "text": "make it black and white"}, PICTURE]
    body = {"messages": [{"role": "user", "content": content}]}

    answer = ask(web, "careful", body, alice)

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert "edit_picture" in answer.json()["error"]["message"]
    wait_until(lambda: Response.objects.get().status == "cancelled")
