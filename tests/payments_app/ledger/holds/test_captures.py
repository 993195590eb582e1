"""Captures: what was used is split, and nothing is taken twice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from payments_app import services
from payments_app.models import Idempotency, Transfer
from payments_app.money import AssetMismatch, InvalidAmount, Money
from payments_app.services import Authorization, Capture, CaptureOutcome, HoldOutcome, Split
from tests.payments_app.funded_accounts import (
    available,
    capture_response,
    fees,
    fees_balance,
    funded_account,
    held,
    hold,
    to,
    usd,
    void_response,
)
from tests.payments_app.ledger.holds.hold_state import state

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db


def test_what_was_used_is_split_and_the_rest_goes_back() -> None:
    payer, agent = funded_account("payer", "10"), funded_account("agent")
    hold_id = hold(payer, "4", response_id="resp_1")

    done = services.capture(
        key="c",
        hold_id=hold_id,
        amount=usd("3"),
        splits=[to(agent, "2.7"), fees("0.3")],
        kind="platform_llm",
        memo="An answer",
        chat_id="chat_1",
        agent_id="agent_1",
        protocol="uamp",
        release=True,
    )

    assert (done.captured, done.released, done.left) == (usd("3"), usd("1"), usd("0"))
    assert (available(payer), held(payer), available(agent)) == ("7", "0", "2.7")
    assert fees_balance() == usd("0.3")
    assert state(hold_id) == "settled"
    row = Transfer.objects.get(pk=done.transfer_ids[0])
    assert (row.kind, row.memo, row.amount, row.hold_id) == (
        "platform_llm", "An answer", usd("3").amount, hold_id,
    )  # fmt: skip
    assert (row.response_id, row.chat_id, row.agent_id, row.protocol) == (
        "resp_1", "chat_1", "agent_1", "uamp",
    )  # fmt: skip


def test_many_captures_are_answered_place_by_place() -> None:
    rich, other, agent = (
        funded_account("rich", "10"),
        funded_account("other", "5"),
        funded_account("agent"),
    )
    for response_id, payer in (("a", rich), ("b", rich), ("c", other), ("d", other)):
        hold(payer, "2", response_id=response_id)
    void_response(key="d", response_id="d")
    stored_outcome = capture_response(
        key="known", response_id="c", amount=usd("1"), splits=[to(agent, "1")]
    )

    def ask(key: str, response_id: str, amount: str, *splits: Split) -> Capture:
        return Capture(
            key=key,
            response_id=response_id,
            amount=usd(amount),
            splits=splits,
            kind="charge",
            release=response_id != "c",
        )

    answers = services.capture_many(
        [
            ask("1", "a", "1.5", to(agent, "1"), fees("0.5")),
            ask("2", "b", "3", to(agent, "3")),
            ask("known", "c", "1", to(agent, "1")),
            ask("4", "d", "1", to(agent, "1")),
            ask("5", "e", "1", to(agent, "1")),
        ]
    )

    assert [type(answer).__name__ for answer in answers] == [
        "CaptureOutcome", "OverCapture", "CaptureOutcome", "HoldNotActive", "UnknownHold",
    ]  # fmt: skip
    first, _, again, *_ = answers
    assert isinstance(first, CaptureOutcome)
    assert (first.captured, first.released, first.available) == (usd("1.5"), usd("0.5"), usd("6.5"))
    assert len(first.transfer_ids) == 1
    assert again == replace(stored_outcome, replayed=True)
    assert (available(rich), held(rich)) == ("6.5", "2")
    assert (available(other), held(other)) == ("3", "1")
    assert (available(agent), fees_balance()) == ("2", usd("0.5"))
    assert not Idempotency.objects.filter(key__in=("2", "4", "5")).exists()


def test_a_hold_is_in_a_list_of_captures_once() -> None:
    payer, agent = funded_account("payer", "10"), funded_account("agent")
    hold_id = hold(payer, "2", response_id="a")
    request = Capture(key="1", hold_id=hold_id, amount=usd("1"), splits=[to(agent, "1")])
    other = Capture(key="2", response_id="a", amount=usd("1"), splits=[to(agent, "1")])

    for requests in ([request, other], [request, replace(request, key="2")]):
        with pytest.raises(ValueError, match="once in a list"):
            services.capture_many(requests)

    assert (available(payer), held(payer), available(agent)) == ("8", "2", "0")
    assert not Idempotency.objects.filter(key__in=("1", "2")).exists()


def test_many_take_as_many_statements_as_one(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    payers = [funded_account(f"payer{number}", "10") for number in range(12)]
    agent = funded_account("agent")
    authorizations = [
        Authorization(key=f"h{payer.id}", account_id=payer.id, amount=usd("2"), response_id=str(i))
        for i, payer in enumerate(payers)
    ]
    with django_assert_max_num_queries(7):
        assert all(
            isinstance(outcome, HoldOutcome) for outcome in services.authorize_many(authorizations)
        )
    requests = [
        Capture(
            key=f"c{i}",
            response_id=str(i),
            amount=usd("1"),
            splits=[to(agent, "1")],
            release=True,
        )
        for i in range(12)
    ]
    with django_assert_max_num_queries(10):
        services.capture_many(requests)
    assert available(agent) == "12"


def test_a_hold_is_captured_several_times() -> None:
    payer, agent = funded_account("payer", "10"), funded_account("agent")
    hold_id = hold(payer, "4")

    for number in range(4):
        done = services.capture(
            key=f"c{number}", hold_id=hold_id, amount=usd("1"), splits=[to(agent, "1")]
        )

    assert done.left == usd("0")
    assert (available(payer), held(payer), available(agent)) == ("6", "0", "4")
    assert state(hold_id) == "active"
    with pytest.raises(services.OverCapture):
        services.capture(key="c4", hold_id=hold_id, amount=usd("1"), splits=[to(agent, "1")])
    ended = services.capture(key="end", hold_id=hold_id, amount=usd("0"), splits=[], release=True)
    assert (ended.transfer_ids, state(hold_id)) == ((), "settled")


def test_capturing_with_the_same_key_takes_once() -> None:
    payer, agent = funded_account("payer", "10"), funded_account("agent")
    hold_id = hold(payer, "4")

    def capture(amount: str) -> services.CaptureOutcome:
        return services.capture(
            key="c", hold_id=hold_id, amount=usd(amount), splits=[to(agent, amount)]
        )

    first, again = capture("1"), capture("1")

    assert again.replayed
    assert again.transfer_ids == first.transfer_ids
    assert available(agent) == "1"
    with pytest.raises(services.IdempotencyConflict):
        capture("2")


def test_no_more_is_captured_than_is_held() -> None:
    payer, agent = funded_account("payer", "10"), funded_account("agent")
    hold_id = hold(payer, "4")

    with pytest.raises(services.OverCapture) as refused:
        services.capture(key="c", hold_id=hold_id, amount=usd("5"), splits=[to(agent, "5")])

    assert refused.value.left == usd("4")
    assert available(agent) == "0"


@pytest.mark.parametrize("parts", [["1"], ["1", "1.000000001"], [], ["3", "-1"], ["2", "0"]])
def test_splits_add_up(parts: list[str]) -> None:
    payer, agent = funded_account("payer", "10"), funded_account("agent")
    hold_id = hold(payer, "4")

    with pytest.raises(services.SplitMismatch):
        services.capture(
            key="c",
            hold_id=hold_id,
            amount=usd("2"),
            splits=[to(agent, part) for part in parts],
        )

    assert (available(agent), held(payer)) == ("0", "4")


def test_an_account_in_two_splits_gets_both() -> None:
    payer, agent = funded_account("payer", "10"), funded_account("agent")

    services.capture(
        key="c",
        hold_id=hold(payer, "4"),
        amount=usd("3"),
        splits=[to(agent, "1"), to(agent, "2")],
    )

    assert available(agent) == "3"


def test_the_payer_cannot_be_paid_a_part() -> None:
    payer = funded_account("payer", "10")

    with pytest.raises(services.SameAccount):
        services.capture(
            key="c", hold_id=hold(payer, "4"), amount=usd("1"), splits=[to(payer, "1")]
        )


def test_assets_do_not_mix_in_a_capture() -> None:
    payer = funded_account("payer", "10")
    coins = services.account_of_agent("agent_1", "USDC")
    hold_id = hold(payer, "4")

    with pytest.raises(AssetMismatch):
        services.capture(key="a", hold_id=hold_id, amount=usd("1"), splits=[to(coins, "1")])
    usdc = Money(1, "USDC")
    with pytest.raises(AssetMismatch):
        services.capture(key="b", hold_id=hold_id, amount=usdc, splits=[Split(coins.id, usdc)])

    assert held(payer) == "4"


def test_nothing_is_captured_only_to_end_a_hold() -> None:
    hold_id = hold(funded_account("payer", "10"), "4")

    with pytest.raises(InvalidAmount):
        services.capture(key="a", hold_id=hold_id, amount=usd("0"), splits=[])
    services.capture(key="b", hold_id=hold_id, amount=usd("0"), splits=[], release=True)

    assert state(hold_id) == "released"


def test_an_unknown_hold_and_one_that_ended_are_refused_by_name() -> None:
    payer = funded_account("payer", "10")
    hold_id = hold(payer, "4")
    services.void(key="v", hold_id=hold_id)

    with pytest.raises(services.UnknownHold):
        services.void(key="w", hold_id="hold_missing")
    with pytest.raises(services.UnknownHold):
        void_response(key="x", response_id="")
    with pytest.raises(services.HoldNotActive) as refused:
        services.capture(key="c", hold_id=hold_id, amount=usd("1"), splits=[fees("1")])

    assert refused.value.state == "released"
