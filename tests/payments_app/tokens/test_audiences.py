"""A token pays the agents that its audience meant, whatever they are called later."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

import pytest

from agents_app.models import Agent
from payments_app import services
from payments_app.models import PaymentToken
from payments_app.tokens import issuance
from payments_app.tokens import lookup as token_lookup
from payments_app.tokens.lookup import TokenRefused
from tests import factories
from tests.payments_app.funded_accounts import available
from tests.payments_app.rest.rest_caller import Caller
from tests.payments_app.tokens.issued_tokens import delegate, issue, rich

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

MEANT, TAKER = "meant", "taker"


def _issued() -> str:
    return issue(rich(), audience=[MEANT]).token


def _issued_in_capitals() -> str:
    return issue(rich(), audience=[MEANT.upper()]).token


def _of_a_renamed_parent() -> str:
    parent = issue(rich(), audience=[MEANT, "other"])
    _take_the_name()
    return str(delegate(parent, to=MEANT).token)


def _delegated() -> str:
    return str(delegate(issue(rich()), to=MEANT).token)


def _seen_first() -> str:
    """Issue a token for an agent that is made later, and pay it once."""
    name = f"later-{uuid.uuid4().hex}"
    token = issue(rich(), audience=[name])
    Agent.objects.filter(name=MEANT).update(name=name)
    agent_id = Agent.objects.get(name=name).pk
    token_lookup.by_id(token.id, agent=name, agent_id=agent_id)
    Agent.objects.filter(pk=agent_id).update(name="renamed")
    Agent.objects.filter(name=TAKER).update(name=name)
    return token.token


def _on_a_chain() -> str:
    account = issuance.token_account("pt_chain", "USD", None)
    issuance.make_for_payer("pt_chain", account, name="x402", audience=[MEANT])
    return issuance.secret_of("pt_chain")


TOKENS: Final[dict[str, Callable[[], str]]] = {
    "issued": _issued,
    "in capitals": _issued_in_capitals,
    "delegated": _delegated,
    "delegated after the change": _of_a_renamed_parent,
    "bound when it was seen first": _seen_first,
    "a payment on a chain": _on_a_chain,
}


def _take_the_name() -> None:
    Agent.objects.filter(name=MEANT).update(name="renamed")
    Agent.objects.filter(name=TAKER).update(name=MEANT)


@pytest.fixture
def agents() -> dict[str, Any]:
    """Return the owner of the agent that is meant and of the one that takes its name."""
    owners = {name: factories.user(f"owner-{name}") for name in (MEANT, TAKER)}
    made = {name: factories.agent(name, owner=owner) for name, owner in owners.items()}
    return {name: (made[name].pk, Caller(owners[name])) for name in made}


@pytest.mark.parametrize("case", TOKENS)
def test_an_agent_that_takes_the_name_is_not_paid(agents: dict[str, Any], case: str) -> None:
    token = TOKENS[case]()
    if Agent.objects.filter(name=TAKER).exists():
        _take_the_name()
    (meant_id, meant), (taker_id, taker) = agents[MEANT], agents[TAKER]
    name = Agent.objects.get(pk=taker_id).name
    row = PaymentToken.objects.get(pk=token_lookup.resolve(token).id)

    refused = taker.refused("POST", "settle", {"token": token, "amount": "0.01", "agent": name})
    assert (refused["status"], refused["code"]) == (402, "payment_token_invalid")
    for named in ({"agent": name}, {"agent": name, "agent_id": taker_id}):
        with pytest.raises(TokenRefused):
            token_lookup.resolve(token, **named)
        with pytest.raises(TokenRefused):
            token_lookup.by_id(row.pk, **named)
    shown = taker.post("verify", {"token": token, "expectedAudience": name})
    assert shown["valid"] is False
    assert available(services.account_of_agent(taker_id)) == "0"
    assert list(row.audience_ids.values()) == [meant_id]

    assert token_lookup.resolve(token, agent="renamed", agent_id=meant_id).id == row.pk
    if case != "a payment on a chain":
        meant.post("settle", {"token": token, "amount": "0.01", "agent": "renamed"})
        assert available(services.account_of_agent(meant_id)) != "0"


def test_a_name_of_no_agent_means_the_first_one_that_is_paid(agents: dict[str, Any]) -> None:
    token = issue(rich(), audience=["absent"])
    assert token_lookup.resolve(token.token, agent="absent").id == token.id
    Agent.objects.filter(name=MEANT).update(name="Absent")
    agents[MEANT][1].post("lock", {"token": token.token, "amount": "0.1"})
    assert PaymentToken.objects.get(pk=token.id).audience_ids == {"absent": agents[MEANT][0]}
    Agent.objects.filter(pk=agents[MEANT][0]).delete()
    Agent.objects.filter(name=TAKER).update(name="absent")
    with pytest.raises(TokenRefused):
        token_lookup.resolve(token.token, agent="absent")
