"""Answers to a peer that is no longer trusted end, and cost no more than what they delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agents_app.providers import scripts
from federation_app.peers import registry
from payments_app.spending import approvals
from sessions_app.models import Response
from tests.client import wait_until
from tests.federation_app.peer import SERVER, Records, add_peer
from tests.sessions_app.access.test_standing import TEXT, half
from tests.sessions_app.billing.paid_agents import clean, earned, priced, rich, usd

if TYPE_CHECKING:
    from collections.abc import Callable

    from federation_app.models import Peer
    from tests.conftest import ServerAddress
    from tests.live_server import Person

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("has_account", [False, True], ids=["visitor", "account"])
@pytest.mark.parametrize("lose", [registry.revoke, registry.suspend])
def test_the_answer_to_a_peer_ends_with_its_trust(
    federated: ServerAddress,
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
    lose: Callable[[Peer], object],
    has_account: bool,  # noqa: FBT001 a case of the table
) -> None:
    monkeypatch.setitem(scripts.SCRIPTS, "half", half)
    agent = priced("half", "half", **({"per_answer": "1"} if has_account else {}))
    approvals.approve(rich(alice).user.pk, agent.pk, usd("9"))
    peer = add_peer("payer.example", user=alice.user if has_account else None)
    with Records(federated.ws) as records:
        records.send(peer.envelope(content="talk", to=[f"{SERVER}:agents:half"]))
        wait_until(lambda: Response.objects.filter(text=TEXT).exists())
        lose(peer.row)
        wait_until(lambda: Response.objects.filter(status="failed").exists(), seconds=30)
    row = Response.objects.get()
    assert (row.status, (row.error or {})["code"]) == ("failed", "unauthorized")
    assert row.text == TEXT
    wait_until(clean)
    if has_account:
        # The operator ended it: no more than a share of the price is due.
        assert usd("0") < usd(earned(agent)) < usd("1")
    else:
        assert earned(agent) == "0"
