"""What a cancelled answer costs if the server that ends it is not the one that began it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from sessions_app import database
from sessions_app.billing import requests
from sessions_app.models import Response, Session
from tests import factories
from tests.client import wait_until
from tests.payments_app.funded_accounts import authorize
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
    from django.contrib.auth.models import User

    from sessions_app.process.registry import Process

__all__ = ["process"]

TOOLS: list[dict[str, Any]] = [{"type": "function", "function": {"name": "look"}}]
CALL: dict[str, Any] = {
    "type": "tool_call",
    "tool_call": {"id": "call_1", "name": "look", "arguments": '{"query": "the answer"}'},
}
RESULT: dict[str, Any] = {
    "type": "tool_result",
    "tool_result": {"call_id": "call_1", "result": '"seen"'},
}


def declare_tools(response: Response, *, in_session: bool) -> None:
    """Declare the client's tool in the session of a response, or in its request."""
    if in_session:
        Session.objects.filter(pk=response.session_id).update(config={"tools": TOOLS})
    else:
        request = {**response.request, "tools": TOOLS}
        Response.objects.filter(pk=response.pk).update(request=request)


def cancel(response: Response, by: User | None, output: list[dict[str, Any]]) -> None:
    """Leave a response with this output, cancelled by a person while no process runs it."""
    Response.objects.filter(pk=response.pk).update(
        output=output, cancel_requested_at=timezone.now(), cancel_requested_by=by
    )


def asker_of(response: Response) -> User | None:
    return None if response.session is None else response.session.user


@pytest.mark.parametrize("in_session", [True, False])
async def test_a_call_that_reached_the_client_is_delivered_in_any_process(
    process: Process, *, in_session: bool
) -> None:
    response = await database.run(left_behind, "waiting")
    paid = await database.run(asked_for, response)
    await database.run(pay, response, paid)
    # It stands at a top-up, after the call that had the whole answer in its arguments.
    await database.run(Response.objects.filter(pk=response.pk).update, status="in_progress")
    await database.run(lambda: declare_tools(response, in_session=in_session))
    await database.run(lambda: ask_again(response))
    await database.run(lambda: cancel(response, asker_of(response), [CALL, RESULT]))
    await sweep(process)
    await database.run(wait_until, lambda: state(response) == ("cancelled", ""))
    assert await database.run(asker_balance, response) == "4"
    assert await database.run(active_holds) == 0


def ask_again(response: Response) -> None:
    """Have a response wait for another payment."""
    row = requests.ask(response.pk, fence=1, number=2, amount=DOLLAR, payer_id=None, action="topup")
    assert row is not None


@pytest.mark.parametrize("in_session", [True, False])
async def test_a_clients_own_tool_is_free_in_any_process(
    process: Process, *, in_session: bool
) -> None:
    pricing = {"per_answer": "1", "tools": {"look": "0.5"}}
    response = await database.run(left_behind, "waiting", pricing)
    paid = await database.run(asked_for, response)
    await database.run(pay, response, paid, DOLLAR * 2)
    await database.run(lambda: declare_tools(response, in_session=in_session))
    await database.run(lambda: cancel(response, asker_of(response), [CALL, RESULT]))
    await sweep(process)
    await database.run(wait_until, lambda: state(response) == ("cancelled", ""))
    assert await database.run(asker_balance, response) == "4"
    assert (await database.run(ledger.audit)).clean


def held_by(response: Response, person: User) -> int:
    """Hold a dollar of a person for a response; return their account."""
    account = ledger.account_of_user(person.pk).id
    ledger.top_up(
        key="seed:owner", account=account, amount=DOLLAR, provider="tests", external_id="owner"
    )
    authorize(
        key="owner",
        account_id=account,
        amount=DOLLAR,
        purpose="answer",
        response_id=response.pk,
    )
    return account


async def test_the_person_whose_money_is_held_pays_the_price_of_what_they_stop(
    process: Process,
) -> None:
    # The owner of the chat paid, chose that askers pay from now on, and cancelled.
    response = await database.run(left_behind, "in_progress")
    owner = await database.run(factories.user, "owner")
    account = await database.run(held_by, response, owner)
    text = [{"type": "text", "text": "One word"}]
    await database.run(lambda: cancel(response, owner, text))
    await sweep(process)
    await database.run(wait_until, lambda: state(response) == ("cancelled", ""))
    assert str((await database.run(ledger_rows.balance, account)).posted) == "0"
    assert await database.run(asker_balance, response) == "5"


async def test_another_owner_who_paid_a_part_does_not_make_the_asker_pay_the_rest(
    process: Process,
) -> None:
    response = await database.run(left_behind, "in_progress", {"per_answer": "2"})
    owner = await database.run(factories.user, "owner")
    await database.run(held_by, response, owner)
    paid = await database.run(asked_for, response)
    await database.run(pay, response, paid)
    text = [{"type": "text", "text": "One word"}]
    await database.run(lambda: cancel(response, owner, text))
    await sweep(process)
    await database.run(wait_until, lambda: state(response) == ("cancelled", ""))
    assert float(await database.run(asker_balance, response)) > 4
    assert (await database.run(ledger.audit)).clean
