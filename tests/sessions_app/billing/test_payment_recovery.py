"""Paid answers whose process died: what was paid stays paid, what was held comes back."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from channels.layers import channel_layers, get_channel_layer
from django.utils import timezone

from chat_app.log import fanout
from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from payments_app.models import Hold
from payments_app.money import Money
from sessions_app import database, lifespan
from sessions_app.billing import requests
from sessions_app.models import PaymentRequest, Response
from sessions_app.process import recovery
from sessions_app.store import responses
from tests import factories
from tests.client import WAIT_SECONDS, wait_until
from tests.house import quick_agent
from tests.payments_app.purses import authorize

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pytest_django import Settings

    from sessions_app.process.registry import Process

DOLLAR = Money.parse("1", "USD")


@pytest.fixture
async def process(database_threads: None, settings: Settings) -> AsyncIterator[Process]:
    """Give the runner's process of this loop."""
    settings.UAMP_GRACE_SECONDS = 0
    channel_layers.set("default", None)
    channel_layers.backends.clear()
    yield lifespan.start()
    await lifespan.shutdown()


def left_behind(status: str) -> Response:
    """Return a response of an agent that costs a dollar, whose process died."""
    agent = quick_agent("quick", "echo")
    agent.pricing = {"per_answer": "1"}
    agent.save()
    person = factories.user()
    ledger.top_up(
        key="seed",
        account=ledger.account_of_user(person.pk).id,
        amount=DOLLAR * 5,
        provider="tests",
        external_id="seed",
    )
    chat = factories.chat(person, agent)
    return factories.response(
        agent,
        chat,
        session=factories.session(person, chat),
        message=factories.message(chat, person, "Hello"),
        status=status,
        process="gone",
        lease_until=timezone.now() + timedelta(minutes=1),
    )


async def sweep(process: Process) -> None:
    """Let the leases run out, and take over what no process renews; nothing does so before."""
    past = timezone.now() - timedelta(seconds=1)
    await database.run(Response.objects.update, lease_until=past)
    await recovery.sweep(process)


def asked_for(response: Response, **fields: object) -> PaymentRequest:
    """Ask for a dollar, as the process did before it died."""
    row = requests.ask(
        response.pk, fence=1, number=1, amount=DOLLAR, payer_id=_payer(response), action=""
    )
    assert row is not None
    PaymentRequest.objects.filter(pk=row.pk).update(**fields)
    row.refresh_from_db()
    return row


def _payer(response: Response) -> int:
    assert response.session is not None
    assert response.session.user_id is not None
    return response.session.user_id


def purse(response: Response) -> str:
    """Return what the asker has left."""
    account = ledger.account_of_user(_payer(response))
    return str(ledger_rows.balance(account.id).available)


def state(response: Response) -> tuple[str, str]:
    """Return how a response ended and why."""
    row = Response.objects.get(pk=response.pk)
    return row.status, (row.error or {}).get("code", "")


def held() -> int:
    """Return how many holds are active."""
    return Hold.objects.filter(state="active").count()


def pay(response: Response, row: PaymentRequest, amount: Money = DOLLAR) -> None:
    """Pay a request while no process runs the response."""
    hold = authorize(
        key=f"pay:{row.pk}",
        account_id=ledger.account_of_user(_payer(response)).id,
        amount=amount,
        purpose="answer",
        response_id=response.pk,
    )
    PaymentRequest.objects.filter(pk=row.pk).update(status="paid", hold_id=hold.hold_id)


async def test_an_answer_that_waits_to_be_paid_is_left_in_peace(process: Process) -> None:
    response = await database.run(left_behind, "waiting")
    await database.run(asked_for, response)
    await sweep(process)
    assert await database.run(state, response) == ("waiting", "")
    assert process.runs == {}


async def test_what_was_paid_while_nobody_ran_it_goes_on_without_asking_again(
    process: Process,
) -> None:
    response = await database.run(left_behind, "waiting")
    row = await database.run(asked_for, response)
    await database.run(pay, response, row)
    await sweep(process)
    await database.run(wait_until, lambda: state(response) == ("completed", ""))
    assert await database.run(Response.objects.values_list("text", flat=True).get) == "Hello"
    assert await database.run(PaymentRequest.objects.count) == 1
    assert (await database.run(purse, response), await database.run(held)) == ("4", 0)


async def test_what_nobody_paid_in_time_ends_and_is_not_asked_for_again(process: Process) -> None:
    response = await database.run(left_behind, "waiting")
    await database.run(asked_for, response, deadline=timezone.now() - timedelta(seconds=1))
    await sweep(process)
    await database.run(wait_until, lambda: state(response) == ("failed", "payment_timeout"))
    assert await database.run(PaymentRequest.objects.count) == 1
    assert await database.run(purse, response) == "5"


async def test_what_was_held_for_an_answer_that_is_lost_comes_back(process: Process) -> None:
    response = await database.run(left_behind, "in_progress")
    row = await database.run(asked_for, response)
    await database.run(pay, response, row)
    await database.run(Response.objects.filter(pk=response.pk).update, status="in_progress")
    assert await database.run(held) == 1
    await sweep(process)
    await database.run(wait_until, lambda: state(response) == ("failed", "interrupted"))
    assert (await database.run(purse, response), await database.run(held)) == ("5", 0)
    assert (await database.run(ledger.audit)).clean


async def test_who_paid_for_an_answer_that_is_lost_is_told_what_is_left(process: Process) -> None:
    response = await database.run(left_behind, "in_progress")
    row = await database.run(asked_for, response)
    await database.run(pay, response, row)
    await database.run(responses.continue_response, response.pk, fence=1)
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(fanout.chat_group(response.chat_id), channel)
    await sweep(process)
    heard: list[dict[str, Any]] = []
    async with asyncio.timeout(WAIT_SECONDS):
        while not heard or heard[-1]["type"] != "payment.balance":
            heard.append(json.loads((await layer.receive(channel))["frame"]))
    assert [frame["type"] for frame in heard] == ["response.error", "payment.balance"]
    assert (heard[-1]["response_id"], heard[-1]["balance"]) == (response.pk, "5")
