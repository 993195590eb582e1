"""Payment requests for answers, and who sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessions_app.models import PaymentRequest, Response
from tests.client import TERMINAL, text_of
from tests.live_server import Dial, Person, shared_chat
from tests.sessions_app.billing.paid_agents import (
    WALLET,
    clean,
    earned,
    pay,
    priced,
    rich,
    types,
    wallet,
)

if TYPE_CHECKING:
    from pytest_django import Settings


def test_a_turn_is_paid_as_the_specification_prints_it(dial: Dial, alice: Person) -> None:
    agent = priced("paid", per_answer="0.25")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello to you")
    opening_frames = client.until("payment.required")
    assert types(opening_frames) == ["response.created", "payment.required"]
    demand = opening_frames[-1]
    assert demand["requirements"]["amount"] == "0.25"
    assert demand["requirements"]["currency"] == "USD"
    assert {"scheme": "token", "network": "uamp"} in demand["requirements"]["schemes"]
    assert WALLET in demand["requirements"]["schemes"]
    assert demand["requirements"]["expires_at"] > 0
    pay(client, demand)
    frames = client.until("payment.balance")
    assert types(frames) == [
        "payment.accepted",
        "response.delta",
        "response.done",
        "payment.balance",
    ]
    accepted, balance = frames[0], frames[-1]
    assert accepted["balance_remaining"] == "9.75"
    assert accepted["payment_id"]
    assert frames[-2]["response"]["usage"]["cost"]["total_cost"] == 0.25
    assert (balance["balance"], balance["balance_remaining"]) == ("9.75", "9.75")
    assert (balance["currency"], balance["estimated_remaining"]) == ("USD", 39)
    assert balance["threshold"] == "1.25"
    assert balance["low_balance_warning"] is False
    assert "expires_at" not in balance
    assert (str(wallet(alice).available), earned(agent)) == ("9.75", "0.25")
    assert clean()


def test_a_payment_announces_the_mandate_that_the_operator_set(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_AP2 = {
        "mandate_uri": "https://mandates.example/1",
        "credential_types": ["VerifiableCredential"],
    }
    priced("paid", per_answer="0.25")
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    demand = client.until("payment.required")[-1]
    assert demand["requirements"]["ap2"] == settings.UAMP_AP2


def test_nothing_is_asked_of_a_free_agent(dial: Dial, alice: Person) -> None:
    client = dial(alice)
    client.create_session(agent="echo")
    assert types(client.answer("Hello")) == ["response.created", "response.delta", "response.done"]
    assert not PaymentRequest.objects.exists()


def test_no_text_is_sent_before_it_is_paid(dial: Dial, alice: Person) -> None:
    priced("paid", per_answer="1")
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    client.until("payment.required")
    assert [f for f in client.during(0.5) if f["type"] == "response.delta"] == []
    assert Response.objects.get().status == "waiting"


def test_a_payer_who_has_too_little_is_refused_and_can_pay_later(dial: Dial, alice: Person) -> None:
    agent = priced("paid", per_answer="1")
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    demand = client.until("payment.required")[-1]
    pay(client, demand)
    refused = client.until("payment.error")[-1]
    assert refused["code"] == "insufficient_balance"
    assert (refused["balance_required"], refused["balance_current"]) == ("1", "0")
    assert refused["can_retry"] is True
    rich(alice, "1")
    pay(client, demand)
    assert text_of(client.until("response.done")) == "Hello"
    assert earned(agent) == "1"


def test_an_unpaid_answer_ends(dial: Dial, alice: Person, settings: Settings) -> None:
    settings.UAMP_PAYMENT_SECONDS = 0.5
    settings.UAMP_SWEEP_SECONDS = 0.3
    agent = priced("paid", per_answer="1")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    demand = client.until("payment.required")[-1]
    ended = client.until(*TERMINAL)[-1]
    assert ended["error"]["code"] == "payment_timeout"
    pay(client, demand)
    assert client.until("session.error")[-1]["error"]["code"] == "payment_not_due"
    assert (str(wallet(alice).available), earned(agent)) == ("10", "0")
    assert clean()


def test_others_in_the_chat_neither_pay_nor_see_the_payers_balance(
    dial: Dial, alice: Person, bob: Person
) -> None:
    priced("paid", per_answer="1")
    rich(alice)
    rich(bob)
    chat = shared_chat(alice, bob, agents=("paid",))
    asker, other = dial(alice), dial(bob)
    asker.create_session(chat=chat.pk)
    other.create_session(chat=chat.pk)
    asker.ask("@paid Hello")
    demand = asker.until("payment.required")[-1]
    pay(other, demand)
    pay(asker, demand)
    asker.until("payment.balance")
    received = other.until("response.done")
    assert not [f for f in received if f["type"].startswith("payment.")]
    assert "payment_not_due" in [
        f["error"]["code"] for f in received if f["type"] == "session.error"
    ]
    assert str(wallet(bob).available) == "10"


def test_the_others_see_for_whose_payment_an_answer_waits(
    dial: Dial, alice: Person, bob: Person
) -> None:
    priced("paid", per_answer="1")
    chat = shared_chat(rich(alice), bob, agents=("paid",))
    asker, other = dial(alice), dial(bob)
    asker.create_session(chat=chat.pk)
    other.create_session(chat=chat.pk)
    asker.ask("@paid Hello")
    received = asker.until("payment.required")
    demand = received[-1]
    later = dial(bob)
    later.create_session(chat=chat.pk)
    for client in (other, later):
        waits = client.until("progress")[-1]
        assert (waits["target"], waits["target_id"]) == ("response", demand["response_id"])
        assert waits["stage"] == "waiting_for_payment"
        assert waits["message"] == f"Waiting for {alice.user.username}'s payment"
        assert waits["user_id"] == str(alice.user.pk)
    pay(asker, demand)
    received += asker.until("payment.balance")
    assert "progress" not in types(received)
    for client in (other, later):
        ended = client.until("response.done")
        stages = [f["stage"] for f in ended if f["type"] == "progress"]
        assert stages == ["in_progress"]
    latest = dial(bob)
    latest.create_session(chat=chat.pk)
    latest.ask("Thanks")
    assert "progress" not in types(latest.until("message.created"))


def test_a_payer_who_reconnects_is_asked_again(dial: Dial, alice: Person) -> None:
    priced("paid", per_answer="1")
    chat = shared_chat(rich(alice), agents=("paid",))
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask("@paid Hello")
    demand = client.until("payment.required")[-1]
    client.cut()
    again = dial(alice)
    again.create_session(chat=chat.pk)
    repeated = again.until("payment.required")[-1]
    assert repeated["requirements"] == demand["requirements"]
    pay(again, repeated)
    assert text_of(again.until("response.done")) == "Hello"
