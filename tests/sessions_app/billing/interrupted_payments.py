"""Responses of a process that died while they waited for a payment."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from channels.layers import channel_layers
from django.utils import timezone

from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from payments_app.models import Hold
from payments_app.money import Money
from sessions_app import database, lifespan
from sessions_app.billing import requests
from sessions_app.models import PaymentRequest, Response
from sessions_app.process import recovery
from tests import factories
from tests.live_server import quick_agent
from tests.payments_app.funded_accounts import authorize

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


def left_behind(status: str, pricing: dict[str, Any] | None = None) -> Response:
    """Return a response whose process died, of an agent that costs a dollar or `pricing`."""
    agent = quick_agent("quick", "echo")
    agent.pricing = pricing or {"per_answer": "1"}
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


def asker_balance(response: Response) -> str:
    """Return the asker's balance."""
    account = ledger.account_of_user(_payer(response))
    return str(ledger_rows.balance(account.id).available)


def state(response: Response) -> tuple[str, str]:
    """Return the state of a response and the reason of its end."""
    row = Response.objects.get(pk=response.pk)
    return row.status, (row.error or {}).get("code", "")


def active_holds() -> int:
    """Return the number of active holds."""
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
