"""Spending limits of a person by day, week, month and agent; and approvals for agents."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from payments_app import services
from payments_app.ledger.outcomes import Authorization, HoldOutcome, LimitReached
from payments_app.money import Money
from payments_app.spending import approvals, authorizations, limits, periods
from payments_app.spending.limits import Limit
from tests import factories
from tests.payments_app.funded_accounts import authorize, available, fees, new_key, usd
from tests.payments_app.tokens.issued_tokens import delegate, issue, race, rich

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from pytest_django import DjangoDbBlocker

pytestmark = pytest.mark.django_db


def limit(person: User, amount: str, *, period: str = "day", agent_id: str = "") -> None:
    limits.set_limits(person.pk, [Limit(period=period, agent_id=agent_id, amount=usd(amount))])


def hold(person: User, amount: str, agent_id: str = "", account_id: int | None = None) -> str:
    return authorize(
        key=new_key(),
        account_id=account_id or services.account_of_user(person.pk).id,
        amount=usd(amount),
        agent_id=agent_id,
    ).hold_id


def spend(person: User, amount: str, agent_id: str = "", account_id: int | None = None) -> str:
    """Capture an amount for an agent; return the transfer."""
    done = services.capture(
        key=new_key(),
        hold_id=hold(person, amount, agent_id, account_id),
        amount=usd(amount),
        splits=[fees(amount)],
        release=True,
    )
    return done.transfer_ids[0]


def left(person: User, agent_id: str = "agent", more: str = "10") -> str:
    """Return the rest of a limit, as a refusal of a large sum reports it."""
    with pytest.raises(LimitReached) as caught:
        authorizations.check(person.pk, agent_id, usd(more))
    return str(caught.value.left)


def test_without_a_limit_everything_is_allowed() -> None:
    authorizations.check(rich().pk, "agent", usd("1000000"))


def test_a_limit_counts_what_was_captured_and_what_is_held() -> None:
    ada = rich()
    limit(ada, "1")
    authorizations.check(ada.pk, "agent", usd("1"))
    spend(ada, "0.3")
    hold(ada, "0.2")
    authorizations.check(ada.pk, "agent", usd("0.5"))
    assert left(ada, more="0.500000001") == "0.5"


def within(
    person: User, amount: str, *, account_id: int = 0, key: str = "", agent_id: str = "agent"
) -> Authorization:
    """Return the demand for an answer that is paid within a person's limits."""
    return Authorization(
        key=key or new_key(),
        account_id=account_id or services.account_of_user(person.pk).id,
        amount=usd(amount),
        agent_id=agent_id,
        limits_of=person.pk,
    )


def test_a_limit_counts_what_those_before_in_a_list_took() -> None:
    ada, bob = rich("ada"), rich("bob")
    limit(ada, "1")
    token = issue(ada, "5")
    hold_requests = [
        within(ada, "0.6", account_id=token.account_id),
        within(ada, "0.5"),
        within(bob, "5"),
        within(ada, "0.4"),
        within(ada, "0.000000001"),
    ]

    answers = services.authorize_many(hold_requests)

    assert [type(answer).__name__ for answer in answers] == [
        "HoldOutcome", "LimitReached", "HoldOutcome", "HoldOutcome", "LimitReached",
    ]  # fmt: skip
    assert [str(answer.left) for answer in answers if isinstance(answer, LimitReached)] == [
        "0.4",
        "0",
    ]
    again = services.authorize_many(hold_requests)
    assert [getattr(answer, "replayed", None) for answer in again] == [True, None, True, True, None]


def test_what_the_money_refuses_does_not_count_for_a_limit() -> None:
    ada = rich()
    limit(ada, "20")
    poor = issue(ada, "1")
    refused, outcome = services.authorize_many(
        [within(ada, "15", account_id=poor.account_id), within(ada, "8")]
    )
    assert isinstance(refused, services.InsufficientFunds)
    assert isinstance(outcome, services.HoldOutcome)


def test_a_refused_reservation_leaves_its_key() -> None:
    ada = rich()
    limit(ada, "1")
    with pytest.raises(LimitReached):
        services.authorize(within(ada, "2", key="k"))
    limit(ada, "2")
    assert services.authorize(within(ada, "2", key="k")).amount == usd("2")


def test_what_is_released_or_refunded_is_not_spent() -> None:
    ada = rich()
    limit(ada, "1")
    services.void(key="v", hold_id=hold(ada, "0.6"))
    paid = spend(ada, "0.5")
    services.refund(key="r", transfer_id=paid, by=None, reason="wrong", amount=usd("0.2"))
    assert left(ada) == "0.7"


def test_a_limit_of_a_token_counts_what_it_and_its_children_spend() -> None:
    ada, helper = rich(), factories.agent("helper").pk
    token, other = issue(ada, "5", limits={"day": usd("1")}), issue(ada, "4")
    child = delegate(token, "3")
    grandchild = delegate(child, "1")
    spend(ada, "0.3", account_id=token.account_id)
    hold(ada, "0.2", account_id=grandchild.account_id)
    hold_requests = [
        within(ada, "0.6", account_id=child.account_id, agent_id=helper),
        within(ada, "0.4", account_id=child.account_id, agent_id=helper),
        within(ada, "0.2", account_id=grandchild.account_id, agent_id=helper),
        within(ada, "0.1", account_id=token.account_id),
        within(ada, "4", account_id=other.account_id),
        within(ada, "0.01", account_id=token.account_id),
        within(ada, "0.01"),
    ]

    answers = services.authorize_many(hold_requests)

    refused = [answer for answer in answers if isinstance(answer, LimitReached)]
    assert [str(refusal.left) for refusal in refused] == ["0.5", "0.1", "0"]
    assert [isinstance(answer, HoldOutcome) for answer in answers] == [
        False, True, False, True, True, False, True,
    ]  # fmt: skip


def test_limits_of_tokens_are_a_persons_own_and_apply_beside_the_others() -> None:
    ada = rich()
    token = issue(ada, "5", limits={"month": usd("3"), "day": usd("1")})
    limit_amounts = [
        (state.limit.period, str(state.limit.amount)) for state in limits.limits_of(ada.pk)
    ]
    assert limit_amounts == [("day", "1"), ("month", "3")]
    limits.set_limits(
        ada.pk,
        [
            Limit(period="day", agent_id="", amount=usd("4")),
            Limit(period="day", agent_id="", amount=usd("2"), token_id=token.id),
        ],
    )
    spend(ada, "0.5", account_id=token.account_id)
    spend(ada, "0.25")
    states = limits.limits_of(ada.pk)
    assert [(state.limit.token_id, str(state.spent)) for state in states] == [
        ("", "0.75"),
        (token.id, "0.5"),
    ]
    with pytest.raises(ValueError, match="once"):
        limits.set_limits(
            ada.pk, [Limit(period="day", agent_id="", amount=usd("1"), token_id=token.id)] * 2
        )


def test_the_same_key_with_other_limits_is_another_request() -> None:
    ada = rich()
    first = issue(ada, key="k", limits={"day": usd("1")})
    assert issue(ada, key="k", limits={"day": usd("1")}).id == first.id
    with pytest.raises(services.IdempotencyConflict):
        issue(ada, key="k", limits={"day": usd("2")})
    assert len(limits.limits_of(ada.pk)) == 1


@pytest.mark.parametrize("limits", [{"day": Money.parse("1", "CREDITS")}, {"year": usd("1")}])
def test_a_limit_that_no_token_can_have_is_refused(limits: dict[str, Money]) -> None:
    with pytest.raises(ValueError, match=r"token is in USD|year"):
        issue(rich(), limits=limits)


def test_what_a_persons_tokens_spend_counts_and_moving_it_there_does_not() -> None:
    ada = rich()
    limit(ada, "1")
    token = issue(ada, "5")
    assert left(ada) == "1"
    spend(ada, "0.4", account_id=token.account_id)
    assert left(ada) == "0.6"


def test_a_limit_on_one_agent_leaves_the_others_alone() -> None:
    ada = rich()
    limit(ada, "1", agent_id="greedy")
    spend(ada, "0.5", "other")
    hold(ada, "0.5", "other")
    spend(ada, "0.25", "greedy")
    hold(ada, "0.25", "greedy")
    authorizations.check(ada.pk, "other", usd("9"))
    assert left(ada, "greedy") == "0.5"


def test_of_several_limits_the_tightest_counts() -> None:
    ada = rich()
    limits.set_limits(
        ada.pk,
        [
            Limit(period="day", agent_id="", amount=usd("2")),
            Limit(period="month", agent_id="", amount=usd("3")),
            Limit(period="week", agent_id="agent", amount=usd("1")),
        ],
    )
    spend(ada, "0.5")
    authorizations.check(ada.pk, "other", usd("1.5"))
    with pytest.raises(LimitReached, match=r"per week .* left: 1 USD"):
        authorizations.check(ada.pk, "agent", usd("1.1"))


def test_the_limit_of_another_person_does_not_count() -> None:
    ada, bob = rich("ada"), rich("bob")
    limit(ada, "0")
    authorizations.check(bob.pk, "agent", usd("10"))
    assert left(ada) == "0"


@pytest.mark.parametrize(
    ("period", "now", "begins", "ends"),
    [
        ("day", "2026-11-21T23:59:59", "2026-11-21", "2026-11-22"),
        ("week", "2026-11-22T23:59:59", "2026-11-16", "2026-11-23"),
        ("week", "2026-11-23T00:00:00", "2026-11-23", "2026-11-30"),
        ("month", "2026-12-31T12:00:00", "2026-12-01", "2027-01-01"),
        ("month", "2028-02-29T12:00:00", "2028-02-01", "2028-03-01"),
        ("month", "2026-01-01T00:00:00", "2026-01-01", "2026-02-01"),
    ],
)
def test_periods_are_those_of_the_calendar(period: str, now: str, begins: str, ends: str) -> None:
    bounds = periods.period_of(period, datetime.fromisoformat(now).replace(tzinfo=UTC))
    assert [f"{moment:%Y-%m-%d}" for moment in bounds] == [begins, ends]


def test_a_period_is_in_utc_wherever_the_clock_hangs() -> None:
    from_home = datetime.fromisoformat("2026-11-22T01:00:00+03:00")
    assert periods.period_of("day", from_home)[0] == datetime(2026, 11, 21, tzinfo=UTC)


def test_what_was_spent_before_the_period_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ada = rich()
    limit(ada, "1")
    spend(ada, "1")
    assert left(ada) == "0"
    # Rows of the ledger are written once: it is the clock that goes on.
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    monkeypatch.setattr(authorizations, "database_now", lambda: tomorrow)
    authorizations.check(ada.pk, "agent", usd("1"))


def test_limits_are_shown_with_how_far_they_are_used() -> None:
    ada = rich()
    limit(ada, "1", period="month", agent_id="greedy")
    spend(ada, "0.25", "greedy")
    hold(ada, "0.5", "greedy")
    (state,) = limits.limits_of(ada.pk)
    assert state.limit == Limit(period="month", agent_id="greedy", amount=usd("1"))
    assert [str(state.spent), str(state.held)] == ["0.25", "0.5"]
    assert state.resets_at.day == 1


def test_setting_limits_replaces_all_of_them() -> None:
    ada = rich()
    limit(ada, "1")
    limit(ada, "2", period="week")
    assert [state.limit.period for state in limits.limits_of(ada.pk)] == ["week"]
    limits.set_limits(ada.pk, [])
    assert limits.limits_of(ada.pk) == []


def test_a_limit_set_twice_or_for_an_unknown_period_is_refused() -> None:
    ada = rich()
    day_limit = Limit(period="day", agent_id="", amount=usd("1"))
    with pytest.raises(ValueError, match="once"):
        limits.set_limits(ada.pk, [day_limit, Limit(period="day", agent_id="", amount=usd("2"))])
    with pytest.raises(ValueError, match="year"):
        limits.set_limits(ada.pk, [Limit(period="year", agent_id="", amount=usd("1"))])


@pytest.mark.django_db(transaction=True)
def test_two_answers_at_once_do_not_both_take_the_last_of_a_limit(
    django_db_blocker: DjangoDbBlocker,
) -> None:
    ada = rich()
    limit(ada, "1")

    def answer() -> None:
        with suppress(LimitReached):
            services.authorize(within(ada, "1"))

    assert race(django_db_blocker, *[answer] * 4) == [None] * 4
    assert available(services.account_of_user(ada.pk)) == "9"


# --- Approvals ---


def up_to_of(person: User, agent_id: str) -> Money | None:
    """Return the sum that an agent may take unasked."""
    pair = (person.pk, agent_id)
    return approvals.standing([pair])[pair].up_to


def test_an_approval_is_for_one_agent_until_it_is_withdrawn() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    assert up_to_of(ada, "agent") is None
    approvals.approve(ada.pk, "agent", usd("0.5"))
    approvals.approve(ada.pk, "agent", Money.parse("2", "USDC"))
    assert up_to_of(ada, "agent") == Money.parse("2", "USDC")
    assert up_to_of(ada, "other") is None
    assert up_to_of(bob, "agent") is None
    assert [(a.agent_id, str(a.up_to)) for a in approvals.approvals_of(ada.pk)] == [("agent", "2")]
    assert approvals.withdraw(ada.pk, "agent")
    assert not approvals.withdraw(ada.pk, "agent")
    assert up_to_of(ada, "agent") is None


def test_nothing_is_not_approved() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        approvals.approve(factories.user().pk, "agent", usd("0"))
