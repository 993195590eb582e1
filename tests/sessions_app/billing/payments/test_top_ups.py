"""Answers that outgrow their reservation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from payments_app.spending import approvals
from sessions_app.models import Response
from tests.client import TERMINAL, wait_until
from tests.sessions_app.billing.paid_agents import clean, earned, pay, priced, rich, usd, wallet

if TYPE_CHECKING:
    from tests.live_server import Dial, Person


@pytest.mark.usefixtures("brisk")
def test_a_text_that_grows_beyond_its_reservation_pauses_until_it_is_topped_up(
    dial: Dial, alice: Person
) -> None:
    agent = priced("paid", "slow", output_per_1k="1")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.send("input.text", text="Count")
    client.send("response.create", response={"max_tokens": 100})
    first = client.until("payment.required")[-1]
    assert "extra" not in first
    pay(client, first)
    more = client.until("payment.required", timeout=30)[-1]
    assert more["extra"] == {"action": "topup"}
    assert more["requirements"]["extra"]["action"] == "topup"
    assert more["response_id"] == first["response_id"]
    quiet = client.during(0.6)
    assert [f for f in quiet if f["type"] == "response.delta"] == []
    frames = [more]
    while frames[-1]["type"] not in TERMINAL:
        pay(client, frames[-1])
        frames = client.until(*TERMINAL, "payment.required", timeout=30)
    assert frames[-1]["type"] == "response.done"
    output = frames[-1]["response"]["output"][0]["text"]
    assert output.split() == [f"word{n}" for n in range(1, 201)]
    assert Response.objects.count() == 1
    wait_until(lambda: earned(agent) == "0.2")
    assert clean()


@pytest.mark.usefixtures("brisk")
def test_a_payer_who_revokes_an_approval_is_asked_for_the_rest(dial: Dial, alice: Person) -> None:
    agent = priced("paid", "slow", output_per_1k="1")
    rich(alice)
    approvals.approve(alice.user.pk, agent.pk, usd("5"))
    client = dial(alice)
    client.create_session(agent="paid")
    client.send("input.text", text="Count")
    client.send("response.create", response={"max_tokens": 100})
    client.until("payment.accepted")
    held_amount = wallet(alice).held
    approvals.withdraw(alice.user.pk, agent.pk)
    reported, demand = client.until("payment.required", timeout=30)[-2:]
    assert (reported["type"], reported["code"]) == ("payment.error", "mandate_revoked")
    assert reported["can_retry"] is True
    assert reported["balance_required"] == demand["requirements"]["amount"]
    assert demand["extra"] == {"action": "topup"}
    assert wallet(alice).held == held_amount
    frames = [demand]
    while frames[-1]["type"] not in TERMINAL:
        pay(client, frames[-1])
        frames = client.until(*TERMINAL, "payment.required", timeout=30)
        assert "mandate_revoked" not in [frame.get("code") for frame in frames]
    assert frames[-1]["type"] == "response.done"
    wait_until(lambda: earned(agent) == "0.2")
    assert clean()
