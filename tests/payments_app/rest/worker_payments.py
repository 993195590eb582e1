"""Tokens and locks of a payer, and the earnings of the agent `worker`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_app.models import Agent
from payments_app import services
from tests.payments_app.funded_accounts import available
from tests.payments_app.tokens.issued_tokens import issue

if TYPE_CHECKING:
    from payments_app.tokens.issuance import IssuedToken
    from tests.payments_app.rest.rest_caller import Caller


def worker_earned() -> str:
    agent = Agent.objects.get(name="worker")
    return available(services.account_of_agent(agent.pk))


def token_of(caller: Caller, amount: str = "1", **fields: Any) -> IssuedToken:
    return issue(caller.person, amount, **fields)


def lock(caller: Caller, token: IssuedToken, amount: Any = "0.5", **more: Any) -> Any:
    return caller.post("lock", {"token": token.token, "amount": amount, **more})
