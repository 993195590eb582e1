"""Agents with a price, people with money, and what they paid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from payments_app.models import Hold
from payments_app.money import Money
from payments_app.tokens import issuance
from tests.live_server import Person, quick_agent

if TYPE_CHECKING:
    from agents_app.models import Agent
    from tests.client import Frame, UampClient

WALLET = {"scheme": "balance", "network": "uamp"}


def usd(text: str) -> Money:
    """Return an amount of dollars."""
    return Money.parse(text, "USD")


def rich(who: Person, amount: str = "10") -> Person:
    """Give a person money."""
    ledger.top_up(
        key=f"seed:{who.user.pk}:{amount}",
        account=ledger.account_of_user(who.user.pk).id,
        amount=usd(amount),
        provider="tests",
        external_id=f"seed:{who.user.pk}:{amount}",
    )
    return who


def token_of(who: Person) -> str:
    """Return a payment token of a dollar."""
    user_id = rich(who).user.pk
    return issuance.issue(key="token", user_id=user_id, amount=usd("1"), expires_in=600).token


def priced(name: str, script: str = "echo", **pricing: Any) -> Agent:
    """Make an agent that has a price."""
    agent = quick_agent(name, script)
    agent.pricing = pricing
    agent.save()
    return agent


def wallet(who: Person) -> ledger_rows.Balance:
    """Return a person's balance."""
    return ledger_rows.balance(ledger.account_of_user(who.user.pk).id)


def earned(agent: Agent) -> str:
    """Return an agent's earnings."""
    return str(ledger_rows.balance(ledger.account_of_agent(agent.pk).id).posted)


def types(frames: list[Frame]) -> list[str]:
    """Return the types of frames, a run of deltas as one; the usage is sent in between."""
    types_in_order: list[str] = []
    for frame in frames:
        if frame["type"] != "usage.delta" and not (
            types_in_order and types_in_order[-1] == frame["type"] == "response.delta"
        ):
            types_in_order.append(frame["type"])
    return types_in_order


def pay(client: UampClient, demand: Frame, **payment: Any) -> str:
    """Answer `payment.required`."""
    return client.send(
        "payment.submit", response_id=demand["response_id"], payment=payment or WALLET
    )


def clean() -> bool:
    """Return whether the ledger adds up and holds nothing."""
    return ledger.audit().clean and not Hold.objects.filter(state="active").exists()
