"""A lock pays the agent that it is for, which its token's audience and payer's limits allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agents_app.models import Agent
from payments_app import services
from payments_app.models import Hold, Transfer
from payments_app.spending import limits
from payments_app.spending.limits import Limit
from tests import factories
from tests.payments_app.funded_accounts import available, usd
from tests.payments_app.rest.rest_caller import Caller
from tests.payments_app.tokens.issued_tokens import issue, rich

if TYPE_CHECKING:
    from payments_app.tokens.issuance import IssuedToken

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

FIRST, SECOND = "first", "second"


@pytest.fixture
def ada() -> Caller:
    """Return a payer who lets the first agent have no more than half a dollar a day."""
    person = rich("ada")
    limit = Limit(period="day", agent_id=factories.agent(FIRST).pk, amount=usd("0.5"))
    limits.set_limits(person.pk, [limit])
    return Caller(person)


@pytest.fixture
def smith(ada: Caller) -> Caller:
    """Return the owner of two agents."""
    person = factories.user("smith")
    Agent.objects.filter(name=FIRST).update(owner=person)
    factories.agent(SECOND, owner=person)
    return Caller(person)


def earned(name: str) -> str:
    """Return an agent's earnings."""
    return available(services.account_of_agent(Agent.objects.get(name=name).pk))


def token_of(ada: Caller, *audience: str) -> IssuedToken:
    """Return a token of three dollars for these agents, or for all."""
    return issue(ada.person, "3", audience=list(audience))


# The audience of the token, the agent of the lock, whom the settlement names, the status.
LOCKS: dict[str, tuple[tuple[str, ...], str, str, int]] = {
    "locked for one, settled to the other": ((), SECOND, FIRST, 402),
    "the other way": ((), FIRST, SECOND, 402),
    "locked for none": ((), "", FIRST, 402),
    "locked for none, settled to the other": ((), "", SECOND, 402),
    "the audience is one, settled to the other": ((SECOND,), "", FIRST, 402),
    "locked for its own": ((), SECOND, SECOND, 200),
    "locked for its own, none named": ((), SECOND, "", 200),
    "the audience names it": ((SECOND,), "", SECOND, 200),
    "the audience names both": ((FIRST, SECOND), SECOND, SECOND, 200),
    "the audience names both, locked for one": ((FIRST, SECOND), SECOND, FIRST, 402),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", list(LOCKS))
def test_a_settlement_pays_the_agent_of_its_lock(ada: Caller, smith: Caller, case: str) -> None:
    audience, agent, recipient, status = LOCKS[case]
    token = token_of(ada, *audience)
    lock: dict[str, Any] = {"token": token.token, "amount": "0.4"}
    lock_data = smith.post("lock", lock | ({"agent": agent} if agent else {}))
    settle: dict[str, Any] = {"lockId": lock_data["lockId"], "amount": "0.4"}
    settle |= {"recipientId": recipient} if recipient else {}
    if status == 200:
        assert smith.post("settle", settle)["charged"] == "0.4"
        assert earned(SECOND) == "0.4"
        return
    refused = smith.refused("POST", "settle", settle)
    assert (refused["status"], refused["code"]) == (402, "payment_token_invalid")
    assert not Transfer.objects.filter(kind="charge").exists()
    assert (earned(FIRST), earned(SECOND)) == ("0", "0")
    assert Hold.objects.get(pk=lock_data["lockId"]).state == "active"
    # The platform is not an agent, and releasing takes nothing.
    fee = {"lockId": lock_data["lockId"], "amount": "0.1", "chargeType": "platform_fee"}
    assert smith.post("settle", fee)["charged"] == "0.1"
    released = smith.post("settle", {"lockId": lock_data["lockId"], "amount": 0, "release": True})
    assert released["released"] == "0.3"


@pytest.mark.parametrize("path", ["lock", "settle"])
def test_a_token_pays_no_other_agent_of_a_payee_than_its_audience(
    ada: Caller, smith: Caller, path: str
) -> None:
    token = token_of(ada, SECOND)
    name = "agent" if path == "lock" else "recipientId"
    refused = smith.refused("POST", path, {"token": token.token, "amount": "0.4", name: FIRST})
    assert (refused["status"], refused["code"]) == (402, "payment_token_invalid")
    assert not Hold.objects.exists()
    assert earned(FIRST) == "0"


def test_no_agent_is_paid_beyond_its_limit_by_a_lock_of_another(ada: Caller, smith: Caller) -> None:
    token = token_of(ada)
    body = {"token": token.token, "amount": "2"}
    assert smith.refused("POST", "lock", body | {"agent": FIRST})["code"] == "spending_limit"
    for lock in (body | {"agent": SECOND}, body):
        lock_data = smith.post("lock", lock)
        settle = {"lockId": lock_data["lockId"], "amount": "2", "recipientId": FIRST}
        assert smith.refused("POST", "settle", settle)["code"] == "payment_token_invalid"
        smith.post("settle", {"lockId": lock_data["lockId"], "amount": 0, "release": True})
    assert earned(FIRST) == "0"
