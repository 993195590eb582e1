"""An agent that costs a quarter, and a payment token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from payments_app import services as ledger
from payments_app.tokens import issuance
from tests.live_server import Person, quick_agent
from tests.sessions_app.billing.batches.turns import usd

if TYPE_CHECKING:
    from agents_app.models import Agent


@pytest.fixture
def agent(demo: object) -> Agent:
    """Give an agent that costs a quarter."""
    agent = quick_agent("paid", "echo")
    agent.pricing = {"per_answer": "0.25"}
    agent.save()
    return agent


@pytest.fixture
def token(alice: Person, agent: Agent) -> str:
    """Give a payment token of a dollar."""
    ledger.top_up(
        key="seed",
        account=ledger.account_of_user(alice.user.pk).id,
        amount=usd("10"),
        provider="tests",
        external_id="seed",
    )
    issued = issuance.issue(key="token", user_id=alice.user.pk, amount=usd("1"), expires_in=600)
    return issued.token
