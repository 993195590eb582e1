"""A token pays the agents that its audience meant, whatever they are called later."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

import pytest

from agents_app.models import Agent
from payments_app import services
from payments_app.models import Hold, PaymentToken
from payments_app.spending.audiences import NotForAgent
from payments_app.tokens import issuance
from payments_app.tokens import lookup as token_lookup
from payments_app.tokens.lookup import TokenRefused
from tests import factories
from tests.payments_app.funded_accounts import available, new_key, usd
from tests.payments_app.rest.rest_caller import Caller
from tests.payments_app.tokens.issued_tokens import delegate, issue, rich

if TYPE_CHECKING:
    from collections.abc import Callable

    from payments_app.ledger.captures import Refusal
    from payments_app.services import HoldOutcome
    from payments_app.tokens.issuance import IssuedToken

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


def _reserve(account_id: int, agent_id: str, amount: str = "0.1") -> HoldOutcome | Refusal:
    """Reserve for an answer, as the server does."""
    authorization = services.Authorization(
        key=new_key(), account_id=account_id, amount=usd(amount), agent_id=agent_id
    )
    (answer,) = services.authorize_many([authorization])
    return answer


def _paid_first() -> str:
    """Issue a token for an agent that is made later, and pay it once."""
    name = f"later-{uuid.uuid4().hex}"
    token = issue(rich(), audience=[name])
    Agent.objects.filter(name=MEANT).update(name=name)
    agent_id = Agent.objects.get(name=name).pk
    _reserve(token.account_id, agent_id)
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
    "bound when it first paid": _paid_first,
    "a payment on a chain": _on_a_chain,
}


def _take_the_name() -> None:
    Agent.objects.filter(name=MEANT).update(name="renamed")
    Agent.objects.filter(name=TAKER).update(name=MEANT)


@pytest.fixture
def agents() -> dict[str, Any]:
    """Return the owner of the agent that is meant and of the one that takes its name."""
    owners = {name: factories.user(f"owner-{name}") for name in (MEANT, TAKER)}
    rows = {name: factories.agent(name, owner=owner) for name, owner in owners.items()}
    return {name: (rows[name].pk, Caller(owners[name])) for name in rows}


@pytest.mark.sampled(2)
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
    for agent_fields in ({"agent": name}, {"agent": name, "agent_id": taker_id}):
        with pytest.raises(TokenRefused):
            token_lookup.resolve(token, **agent_fields)
        with pytest.raises(TokenRefused):
            token_lookup.by_id(row.pk, **agent_fields)
    answer = taker.post("verify", {"token": token, "expectedAudience": name})
    assert answer["valid"] is False
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


def _of_no_agent(agents: dict[str, Any]) -> tuple[IssuedToken, str]:
    """Return a token for a name that an agent takes later, and that agent's id."""
    token = issue(rich(), audience=["absent"])
    Agent.objects.filter(name=MEANT).update(name="absent")
    return token, agents[MEANT][0]


def _bound(token: IssuedToken) -> dict[str, str]:
    return dict(PaymentToken.objects.get(pk=token.id).audience_ids)


def test_looking_at_a_token_binds_nothing(agents: dict[str, Any]) -> None:
    token, agent_id = _of_no_agent(agents)
    (_, taker) = agents[TAKER]

    assert taker.post("verify", {"token": token.token, "expectedAudience": "absent"})["valid"]
    for agent_fields in ({"agent": "absent"}, {"agent": "absent", "agent_id": agent_id}):
        assert token_lookup.resolve(token.token, **agent_fields).id == token.id
        assert token_lookup.by_id(token.id, **agent_fields).id == token.id

    assert _bound(token) == {}


def test_a_reservation_that_is_refused_binds_nothing(agents: dict[str, Any]) -> None:
    token, agent_id = _of_no_agent(agents)

    assert isinstance(_reserve(token.account_id, agent_id, "5"), services.InsufficientFunds)
    agents[MEANT][1].refused("POST", "lock", {"token": token.token, "amount": "5"})
    assert _bound(token) == {}

    assert isinstance(_reserve(token.account_id, agent_id), services.HoldOutcome)
    assert _bound(token) == {"absent": agent_id}


@pytest.mark.parametrize("audience", [["absent"], ["absent", "other"]])
def test_a_name_that_was_bound_after_the_check_is_refused(
    agents: dict[str, Any], audience: list[str]
) -> None:
    token = issue(rich(), audience=audience)
    PaymentToken.objects.filter(pk=token.id).update(audience_ids={"absent": agents[MEANT][0]})

    # The agent that has the name now was checked before the other one was paid.
    Agent.objects.filter(name=TAKER).update(name="absent")
    answer = _reserve(token.account_id, agents[TAKER][0])

    assert isinstance(answer, NotForAgent)
    assert not Hold.objects.exists()
    assert _bound(token) == {"absent": agents[MEANT][0]}
