"""Holds: reserve, capture, release, expire; what is said twice happens once."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from django.db import transaction

from payments_app import selectors, services
from payments_app.ledger import expiry
from payments_app.models import Entry, Hold, Idempotency, Transfer
from payments_app.money import AssetMismatch, InvalidAmount, Money
from payments_app.services import Authorization, Capture, CaptureOutcome, HoldOutcome, Split
from payments_app.spending import authorizations
from tests.payments_app.funded_accounts import (
    authorize,
    available,
    capture_response,
    fees,
    fees_balance,
    funded_account,
    held,
    hold,
    new_key,
    to,
    usd,
    void_response,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def sound_ledger() -> Iterator[None]:
    """After every test the whole ledger is true."""
    yield
    assert services.audit().mismatches == []


def state(hold_id: str) -> str:
    return Hold.objects.get(pk=hold_id).state


# --- Reserve ---


def test_a_hold_reserves_and_says_what_is_left() -> None:
    payer = funded_account("payer", "10")

    done = authorize(key="k", account_id=payer.id, amount=usd("4"), response_id="resp_1")

    assert (done.amount, done.available, done.replayed) == (usd("4"), usd("6"), False)
    assert (available(payer), held(payer)) == ("6", "4")
    assert [row.hold_id for row in selectors.holds_of_response("resp_1")] == [done.hold_id]


def test_more_than_is_available_is_refused_and_says_how_much_is() -> None:
    payer = funded_account("payer", "10")
    hold(payer, "4")

    with pytest.raises(services.InsufficientFunds, match="available: 6,") as refused:
        hold(payer, "6.000000001")

    assert refused.value.available == usd("6")
    assert held(payer) == "4"


def test_a_refused_key_may_be_tried_again() -> None:
    payer = funded_account("payer")
    with pytest.raises(services.InsufficientFunds):
        hold(payer, "1", key="k")
    services.top_up(
        key="t", account=payer.id, amount=usd("1"), provider="test", external_id="later"
    )

    hold(payer, "1", key="k")

    assert held(payer) == "1"


def test_the_same_key_gives_the_same_hold() -> None:
    payer = funded_account("payer", "10")
    first = authorize(key="k", account_id=payer.id, amount=usd("4"), expires_in=60)

    again = authorize(key="k", account_id=payer.id, amount=usd("4"), expires_in=50)

    assert again.replayed
    assert (again.hold_id, again.expires_at) == (first.hold_id, first.expires_at)
    assert held(payer) == "4"


def test_the_same_key_for_something_else_is_a_conflict() -> None:
    payer = funded_account("payer", "10")
    hold_id = hold(payer, "4", key="k")

    for other in (
        lambda: hold(payer, "5", key="k"),
        lambda: hold(payer, "4", key="k", response_id="resp_1"),
        lambda: services.void(key="k", hold_id=hold_id),
    ):
        with pytest.raises(services.IdempotencyConflict):
            other()

    assert held(payer) == "4"


def test_keys_of_two_scopes_are_two() -> None:
    payer = funded_account("payer", "10")

    for scope in ("user:1", "user:2"):
        authorize(key="k", scope=scope, account_id=payer.id, amount=usd("4"))

    assert held(payer) == "8"


@pytest.mark.parametrize("key", ["", "k" * 256])
def test_a_key_has_a_length(key: str) -> None:
    with pytest.raises(ValueError, match="1 to 255"):
        authorize(key=key, account_id=funded_account("payer", "1").id, amount=usd("1"))


@pytest.mark.parametrize("amount", ["0", "-1"])
def test_a_hold_is_of_something(amount: str) -> None:
    with pytest.raises(InvalidAmount):
        hold(funded_account("payer", "1"), amount)


def test_a_hold_needs_an_account_of_its_asset_and_a_time() -> None:
    payer = funded_account("payer", "1")

    with pytest.raises(services.UnknownAccount):
        authorize(key="a", account_id=10**9, amount=usd("1"))
    with pytest.raises(AssetMismatch):
        authorize(key="b", account_id=payer.id, amount=Money(1, "USDC"))
    with pytest.raises(ValueError, match="must be positive"):
        authorize(key="c", account_id=payer.id, amount=usd("1"), expires_in=0)

    assert held(payer) == "0"


def test_a_refusal_leaves_the_callers_transaction_usable() -> None:
    payer = funded_account("payer", "1")
    with transaction.atomic():
        with pytest.raises(services.InsufficientFunds):
            hold(payer, "2")
        hold(payer, "1")

    assert held(payer) == "1"


def test_many_are_answered_place_by_place() -> None:
    rich, poor = funded_account("rich", "10"), funded_account("poor", "1")
    known = hold(rich, "1", key="known")

    def ask(key: str, account_id: int, amount: str) -> Authorization:
        return Authorization(key=key, account_id=account_id, amount=usd(amount))

    answers = services.authorize_many(
        [
            ask("b", poor.id, "2"),
            ask("a", rich.id, "3"),
            ask("known", rich.id, "1"),
            ask("a", rich.id, "3"),
            ask("known", rich.id, "7"),
            ask("c", 10**9, "1"),
            ask("d", poor.id, "1"),
            ask("e", poor.id, "1"),
            ask("f", rich.id, "0"),
        ]
    )

    assert [type(answer).__name__ for answer in answers] == [
        "InsufficientFunds", "HoldOutcome", "HoldOutcome", "HoldOutcome", "IdempotencyConflict",
        "UnknownAccount", "HoldOutcome", "InsufficientFunds", "InvalidAmount",
    ]  # fmt: skip
    holds = [answer for answer in answers if isinstance(answer, HoldOutcome)]
    assert [one.replayed for one in holds] == [False, True, True, False]
    assert holds[0].hold_id == holds[2].hold_id
    assert holds[1].hold_id == known
    assert (held(rich), held(poor)) == ("4", "1")
    assert not Idempotency.objects.filter(key__in=("b", "c", "e", "f")).exists()


# --- Capture ---


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
    known = capture_response(key="known", response_id="c", amount=usd("1"), splits=[to(agent, "1")])

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
    assert again == replace(known, replayed=True)
    assert (available(rich), held(rich)) == ("6.5", "2")
    assert (available(other), held(other)) == ("3", "1")
    assert (available(agent), fees_balance()) == ("2", usd("0.5"))
    assert not Idempotency.objects.filter(key__in=("2", "4", "5")).exists()


def test_a_hold_is_in_a_list_of_captures_once() -> None:
    payer, agent = funded_account("payer", "10"), funded_account("agent")
    hold_id = hold(payer, "2", response_id="a")
    one = Capture(key="1", hold_id=hold_id, amount=usd("1"), splits=[to(agent, "1")])
    other = Capture(key="2", response_id="a", amount=usd("1"), splits=[to(agent, "1")])

    for asked in ([one, other], [one, replace(one, key="2")]):
        with pytest.raises(ValueError, match="once in a list"):
            services.capture_many(asked)

    assert (available(payer), held(payer), available(agent)) == ("8", "2", "0")
    assert not Idempotency.objects.filter(key__in=("1", "2")).exists()


def test_many_take_as_many_statements_as_one(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    payers = [funded_account(f"payer{number}", "10") for number in range(12)]
    agent = funded_account("agent")
    wanted = [
        Authorization(key=f"h{payer.id}", account_id=payer.id, amount=usd("2"), response_id=str(i))
        for i, payer in enumerate(payers)
    ]
    with django_assert_max_num_queries(7):
        assert all(isinstance(one, HoldOutcome) for one in services.authorize_many(wanted))
    asked = [
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
        services.capture_many(asked)
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


def test_an_account_that_stands_in_two_splits_gets_both() -> None:
    payer, agent = funded_account("payer", "10"), funded_account("agent")

    services.capture(
        key="c",
        hold_id=hold(payer, "4"),
        amount=usd("3"),
        splits=[to(agent, "1"), to(agent, "2")],
    )

    assert available(agent) == "3"


def test_who_pays_gets_no_part() -> None:
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


# --- Several holds that act as one ---


def test_the_holds_of_a_response_give_the_oldest_first() -> None:
    payer, sponsor, agent = (
        funded_account("payer", "10"),
        funded_account("sponsor", "10"),
        funded_account("agent"),
    )
    first = hold(payer, "2", response_id="resp_1")
    second = hold(sponsor, "3", response_id="resp_1")

    done = capture_response(
        key="c",
        response_id="resp_1",
        amount=usd("4"),
        splits=[to(agent, "2.5"), fees("1.5")],
        release=True,
    )

    assert (done.captured, done.released) == (usd("4"), usd("1"))
    assert [Transfer.objects.get(pk=pk).amount for pk in done.transfer_ids] == [
        usd("2").amount,
        usd("2").amount,
    ]
    assert (available(payer), available(sponsor), available(agent)) == ("8", "8", "2.5")
    assert [state(first), state(second)] == ["settled", "settled"]
    with pytest.raises(services.HoldNotActive):
        void_response(key="v", response_id="resp_1")


def test_a_hold_that_is_extended_gives_as_one() -> None:
    payer, agent = funded_account("payer", "10"), funded_account("agent")
    hold_id = hold(payer, "2")
    more = authorizations.extend(limits_of=None, key="e", hold_id=hold_id, amount=usd("1"))
    again = authorizations.extend(limits_of=None, key="e", hold_id=hold_id, amount=usd("1"))

    done = services.capture(key="c", hold_id=hold_id, amount=usd("2.5"), splits=[to(agent, "2.5")])

    assert (again.hold_id, again.replayed) == (more.hold_id, True)
    assert done.left == usd("0.5")
    assert held(payer) == "0.5"
    assert services.void(key="v", hold_id=hold_id).released == usd("0.5")
    assert [state(hold_id), state(more.hold_id)] == ["settled", "settled"]
    with pytest.raises(services.HoldNotActive):
        authorizations.extend(limits_of=None, key="f", hold_id=hold_id, amount=usd("1"))
    with pytest.raises(services.UnknownHold):
        authorizations.extend(limits_of=None, key="g", hold_id="hold_missing", amount=usd("1"))


def test_an_extension_counts_where_its_hold_does() -> None:
    payer = funded_account("payer", "10")
    about = {"chat_id": "chat_1", "credential": "key:7", "asker_id": 7, "agent_id": "agent_1"}
    first = authorize(key="k", account_id=payer.id, amount=usd("2"), **about)

    more = authorizations.extend(limits_of=None, key="e", hold_id=first.hold_id, amount=usd("1"))

    assert Hold.objects.filter(pk=more.hold_id).values(*about).get() == about


def test_holds_of_two_assets_do_not_act_as_one() -> None:
    hold(funded_account("payer", "10"), "1", response_id="resp_1")
    coins = services.ensure_account(code="user:coins:USDC", kind="user", asset="USDC")
    five = Money(5, "USDC")
    services.top_up(key="t", account=coins.id, amount=five, provider="p", external_id="1")
    authorize(key="k", account_id=coins.id, amount=five, response_id="resp_1")

    with pytest.raises(AssetMismatch):
        void_response(key="v", response_id="resp_1")


# --- Release and expiry ---


def test_what_is_voided_goes_back_once() -> None:
    payer = funded_account("payer", "10")
    hold_id = hold(payer, "4")

    assert services.void(key="v", hold_id=hold_id).released == usd("4")
    assert services.void(key="v", hold_id=hold_id).replayed
    with pytest.raises(services.HoldNotActive):
        services.void(key="w", hold_id=hold_id)

    assert (available(payer), state(hold_id)) == ("10", "released")


def test_a_void_after_a_capture_gives_back_the_rest() -> None:
    payer, agent = funded_account("payer", "10"), funded_account("agent")
    hold_id = hold(payer, "4")
    services.capture(key="c", hold_id=hold_id, amount=usd("3"), splits=[to(agent, "3")])

    assert services.void(key="v", hold_id=hold_id).released == usd("1")

    assert (available(payer), state(hold_id)) == ("7", "settled")


def brief(payer: services.AccountRef, amount: str) -> str:
    """Return a hold whose time is over."""
    hold_id = authorize(
        key=new_key(), account_id=payer.id, amount=usd(amount), expires_in=0.001
    ).hold_id
    time.sleep(0.003)
    return hold_id


def test_holds_past_their_time_expire_and_no_others() -> None:
    payer, agent = funded_account("payer", "10"), funded_account("agent")
    lasting = hold(payer, "1")
    untouched, part, whole = brief(payer, "1"), brief(payer, "2"), brief(payer, "3")
    services.capture(key="p", hold_id=part, amount=usd("0.5"), splits=[to(agent, "0.5")])
    services.capture(key="w", hold_id=whole, amount=usd("3"), splits=[to(agent, "3")])

    assert expiry.expire_holds() == 3
    assert expiry.expire_holds() == 0

    assert [state(one) for one in (lasting, untouched, part, whole)] == [
        "active", "expired", "expired", "settled",
    ]  # fmt: skip
    assert (available(payer), held(payer)) == ("5.5", "1")


def test_a_renewed_hold_does_not_expire() -> None:
    payer = funded_account("payer", "10")
    held_for = {
        name: authorize(
            key=name, account_id=payer.id, amount=usd("1"), response_id=name, expires_in=seconds
        ).hold_id
        for name, seconds in {"runs": 0.001, "left": 0.001, "long": 1000, "free": 1000}.items()
    }
    services.void(key="v", hold_id=held_for["free"])
    time.sleep(0.003)

    assert services.renew(["runs", "long", "free"], seconds=600) == 1
    assert services.renew(["runs", "long", "free"], seconds=600) == 0
    assert services.renew([], seconds=600) == 0
    assert expiry.expire_holds() == 1

    states = {name: state(hold_id) for name, hold_id in held_for.items()}
    assert states == {"runs": "active", "left": "expired", "long": "active", "free": "released"}


def test_expiry_takes_a_batch_at_a_time() -> None:
    payer = funded_account("payer", "10")
    for _ in range(3):
        brief(payer, "1")

    assert [expiry.expire_holds(2), expiry.expire_holds(2)] == [2, 1]


def test_what_is_over_but_not_swept_is_still_captured() -> None:
    payer, agent = funded_account("payer", "10"), funded_account("agent")
    hold_id = brief(payer, "1")

    services.capture(
        key="c", hold_id=hold_id, amount=usd("1"), splits=[to(agent, "1")], release=True
    )

    assert expiry.expire_holds() == 0
    assert available(agent) == "1"


def test_an_expired_hold_gives_nothing() -> None:
    hold_id = brief(funded_account("payer", "10"), "1")
    expiry.expire_holds()

    with pytest.raises(services.HoldNotActive) as refused:
        services.capture(key="c", hold_id=hold_id, amount=usd("1"), splits=[fees("1")])

    assert refused.value.state == "expired"
    assert Entry.objects.filter(transfer__hold=hold_id).count() == 0
    assert Hold.objects.get(pk=hold_id).captured == 0
