"""Paid answers whose process died: what was paid stays paid, what was held comes back."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from channels.layers import get_channel_layer
from django.utils import timezone

from agents_app.models import Agent
from chat_app.log import fanout
from payments_app import services as ledger
from sessions_app import database
from sessions_app.models import PaymentRequest, Response
from sessions_app.store import responses
from tests.client import WAIT_SECONDS, wait_until
from tests.sessions_app.billing.interrupted_payments import (
    DOLLAR,
    active_holds,
    asked_for,
    asker_balance,
    left_behind,
    pay,
    process,
    state,
    sweep,
)

if TYPE_CHECKING:
    from sessions_app.process.registry import Process

__all__ = ["process"]


async def test_an_answer_that_waits_to_be_paid_is_left_in_peace(process: Process) -> None:
    response = await database.run(left_behind, "waiting")
    await database.run(asked_for, response)
    await sweep(process)
    assert await database.run(state, response) == ("waiting", "")
    assert process.runs == {}


async def test_an_answer_paid_while_no_process_ran_it_continues_without_asking_again(
    process: Process,
) -> None:
    response = await database.run(left_behind, "waiting")
    row = await database.run(asked_for, response)
    await database.run(pay, response, row)
    await sweep(process)
    await database.run(wait_until, lambda: state(response) == ("completed", ""))
    assert await database.run(Response.objects.values_list("text", flat=True).get) == "Hello"
    assert await database.run(PaymentRequest.objects.count) == 1
    assert (await database.run(asker_balance, response), await database.run(active_holds)) == (
        "4",
        0,
    )


async def test_what_was_not_paid_in_time_ends_and_is_not_asked_for_again(process: Process) -> None:
    response = await database.run(left_behind, "waiting")
    await database.run(asked_for, response, deadline=timezone.now() - timedelta(seconds=1))
    await sweep(process)
    await database.run(wait_until, lambda: state(response) == ("failed", "payment_timeout"))
    assert await database.run(PaymentRequest.objects.count) == 1
    assert await database.run(asker_balance, response) == "5"


async def test_the_hold_of_a_lost_answer_is_released(process: Process) -> None:
    response = await database.run(left_behind, "in_progress")
    row = await database.run(asked_for, response)
    await database.run(pay, response, row)
    await database.run(Response.objects.filter(pk=response.pk).update, status="in_progress")
    assert await database.run(active_holds) == 1
    await sweep(process)
    await database.run(wait_until, lambda: state(response) == ("failed", "interrupted"))
    assert (await database.run(asker_balance, response), await database.run(active_holds)) == (
        "5",
        0,
    )
    assert (await database.run(ledger.audit)).clean


async def test_the_payer_of_a_lost_answer_is_sent_the_balance(
    process: Process,
) -> None:
    response = await database.run(left_behind, "in_progress")
    row = await database.run(asked_for, response)
    await database.run(pay, response, row)
    await database.run(responses.continue_response, response.pk, fence=1)
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(fanout.chat_group(response.chat_id), channel)
    await sweep(process)
    received: list[dict[str, Any]] = []
    async with asyncio.timeout(WAIT_SECONDS):
        while not received or received[-1]["type"] != "payment.balance":
            received.append(json.loads((await layer.receive(channel))["frame"]))
    assert [frame["type"] for frame in received] == ["response.error", "payment.balance"]
    assert (received[-1]["response_id"], received[-1]["balance"]) == (response.pk, "5")


# --- The price changes meanwhile ---

PRICES: list[dict[str, str]] = [{}, {"per_answer": "4"}, {"per_answer": "0.1"}]


def change_price(response: Response, pricing: dict[str, str]) -> None:
    agent = Agent.objects.get(pk=response.agent_id)
    agent.pricing = pricing
    agent.save()


@pytest.mark.parametrize("pricing", PRICES, ids=["free", "dearer", "cheaper"])
async def test_an_answer_that_continues_elsewhere_has_the_price_it_was_started_at(
    process: Process, pricing: dict[str, str]
) -> None:
    response = await database.run(left_behind, "waiting")
    row = await database.run(asked_for, response)
    await database.run(pay, response, row)
    await database.run(change_price, response, pricing)
    await sweep(process)
    await database.run(wait_until, lambda: state(response) == ("completed", ""))
    assert (await database.run(asker_balance, response), await database.run(active_holds)) == (
        "4",
        0,
    )
    assert (await database.run(ledger.audit)).clean


@pytest.mark.parametrize("pricing", PRICES, ids=["free", "dearer", "cheaper"])
async def test_an_answer_that_is_lost_releases_what_it_held_at_any_price(
    process: Process, pricing: dict[str, str]
) -> None:
    response = await database.run(left_behind, "in_progress")
    row = await database.run(asked_for, response)
    await database.run(pay, response, row, DOLLAR * 3)
    await database.run(Response.objects.filter(pk=response.pk).update, status="in_progress")
    await database.run(change_price, response, pricing)
    await sweep(process)
    await database.run(wait_until, lambda: state(response) == ("failed", "interrupted"))
    assert (await database.run(asker_balance, response), await database.run(active_holds)) == (
        "5",
        0,
    )
