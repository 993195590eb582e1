"""Money that moves at once: top-ups, transfers, refunds, adjustments; and what is read of it."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from payments_app import selectors, services
from payments_app.ledger.accounts import FEE_SHARDS, find_account
from payments_app.models import Account, Receipt, Transfer
from payments_app.money import AssetMismatch, InvalidAmount, Money
from tests import factories
from tests.log_lines import with_ids
from tests.payments_app.funded_accounts import (
    available,
    fees,
    fees_balance,
    funded_account,
    hold,
    new_key,
    to,
    usd,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import DjangoCaptureOnCommitCallbacks

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def sound_ledger() -> Iterator[None]:
    """After every test the whole ledger is true."""
    yield
    assert services.audit().mismatches == []


def charge(payer: services.AccountRef, agent: services.AccountRef, **about: str) -> str:
    """Charge 3 dollars, of which the platform gets 1; return the transfer."""
    return services.capture(
        key=new_key(),
        hold_id=hold(payer, "3", response_id=about.pop("response_id", "")),
        amount=usd("3"),
        splits=[to(agent, "2"), fees("1")],
        release=True,
        chat_id=about.get("chat_id", ""),
        agent_id=about.get("agent_id", ""),
        protocol=about.get("protocol", ""),
    ).transfer_ids[0]


# --- Accounts ---


def test_accounts_are_made_once_and_found_by_code() -> None:
    person = factories.user()

    first, again = services.account_of_user(person.pk), services.account_of_user(person.pk)

    assert first == again == find_account(f"user:{person.pk}:USD")
    assert services.account_of_user(person.pk, "USDC").id != first.id
    assert services.account_of_agent("agent_1").code == "agent:agent_1:USD"
    assert find_account("user:missing:USD") is None
    with pytest.raises(InvalidAmount):
        services.account_of_user(person.pk, "EUR")
    with pytest.raises(ValueError, match="banana"):
        services.ensure_account(code="x", kind="banana")


def test_fees_are_spread_over_shards_and_shown_as_one() -> None:
    payer, agent = funded_account("payer", "100"), funded_account("agent")
    for _ in range(20):
        charge(payer, agent)

    shards = Account.objects.filter(code__startswith="platform:fees:USD:")

    assert 1 < shards.count() <= FEE_SHARDS
    assert fees_balance() == usd("20")
    assert fees_balance("USDC") == Money(0, "USDC")


# --- From outside ---


def top_up(credited: services.AccountRef, **other: object) -> services.TransferOutcome:
    return services.top_up(
        **{  # type: ignore[arg-type] # a table of the same arguments
            "key": new_key(),
            "account": credited.id,
            "amount": usd("5"),
            "provider": "stripe",
            "external_id": "pi_1",
            **other,
        }
    )


def test_a_payment_is_credited_once_under_any_key() -> None:
    account = funded_account("payer")

    first, again, third = (
        top_up(account, key="a"),
        top_up(account, key="b"),
        top_up(account, key="a"),
    )

    assert [first.replayed, again.replayed, third.replayed] == [False, True, True]
    assert first.transfer_id == again.transfer_id == third.transfer_id
    assert available(account) == "5"
    assert Receipt.objects.get(external_id="pi_1").state == "confirmed"
    assert available(find_account("external:stripe:USD") or 0) == "-5"


def test_a_payment_that_is_reported_with_other_values_is_refused() -> None:
    account, other = funded_account("payer"), funded_account("other")
    top_up(account)

    for changed in ({"amount": usd("6")}, {"account": other.id}):
        with pytest.raises(services.ReceiptConflict):
            top_up(account, **changed)

    assert (available(account), available(other)) == ("5", "0")


def test_a_receipt_goes_its_way_and_a_late_success_counts() -> None:
    account = funded_account("payer")

    def tell(state: str) -> str:
        return services.record_receipt(
            provider="stripe",
            external_id="pi_1",
            account_id=account.id,
            amount=usd("5"),
            state=state,
        )

    assert [tell("received"), tell("submitted"), tell("failed")] == [
        "received", "submitted", "failed",
    ]  # fmt: skip
    assert available(account) == "0"
    top_up(account, payload={"id": "pi_1"})
    assert tell("failed") == "confirmed"
    assert available(account) == "5"
    with pytest.raises(ValueError, match="Only top_up"):
        tell("confirmed")
    with pytest.raises(ValueError, match="provider"):
        top_up(account, external_id="")
    assert Receipt.objects.get().state == "confirmed"


def test_money_from_outside_goes_inside() -> None:
    top_up(funded_account("payer"))
    outside = find_account("external:stripe:USD")
    assert outside is not None

    with pytest.raises(services.SameAccount):
        top_up(outside, external_id="pi_2")
    with pytest.raises(InvalidAmount):
        top_up(funded_account("payer"), amount=usd("0"), external_id="pi_3")


# --- Transfers ---


def test_a_transfer_moves_money_once() -> None:
    one, two = funded_account("one", "5"), funded_account("two")

    for _ in range(2):
        done = services.transfer(
            key="k", debit=one.id, credit=two.id, amount=usd("2"), memo="Thanks"
        )

    assert done.replayed
    assert (available(one), available(two)) == ("3", "2")
    assert Transfer.objects.get(pk=done.transfer_id).memo == "Thanks"


def test_a_transfer_that_cannot_be_is_refused_by_name() -> None:
    one, two = funded_account("one", "5"), funded_account("two")
    coins = services.account_of_agent("agent_1", "USDC")
    hold(one, "4")

    def move(debit: int, credit: int, amount: Money) -> None:
        services.transfer(key="k", debit=debit, credit=credit, amount=amount)

    with pytest.raises(services.InsufficientFunds, match="available: 1,"):
        move(one.id, two.id, usd("2"))
    with pytest.raises(services.SameAccount):
        move(one.id, one.id, usd("1"))
    with pytest.raises(services.UnknownAccount):
        move(one.id, 10**9, usd("1"))
    with pytest.raises(AssetMismatch):
        move(one.id, coins.id, usd("1"))
    for amount in ("0", "-1"):
        with pytest.raises(InvalidAmount):
            move(one.id, two.id, usd(amount))

    assert (available(one), available(two)) == ("1", "0")


def test_an_adjustment_has_a_reason_and_another_side() -> None:
    operator, account = factories.user(), funded_account("payer", "5")

    for key, amount in (("a", "2"), ("b", "-3"), ("b", "-3")):
        done = services.adjust(
            key=key, account=account.id, amount=usd(amount), by=operator.pk, reason="Goodwill"
        )

    row = Transfer.objects.get(pk=done.transfer_id)
    assert (row.kind, row.memo, row.by_id) == ("adjust", "Goodwill", operator.pk)
    assert available(account) == "4"
    suspense = find_account("suspense:USD")
    assert suspense is not None
    assert available(suspense) == "1"
    for amount, reason, error in (
        ("-5", "x", services.InsufficientFunds),
        ("1", " ", ValueError),
        ("0", "x", InvalidAmount),
    ):
        with pytest.raises(error):
            services.adjust(
                key="c", account=account.id, amount=usd(amount), by=operator.pk, reason=reason
            )
    with pytest.raises(services.SameAccount):
        services.adjust(key="d", account=suspense.id, amount=usd("1"), by=operator.pk, reason="x")


# --- Refunds ---


def refund(transfer_id: str, amount: str | None = None, key: str = "") -> services.TransferOutcome:
    return services.refund(
        key=key or new_key(),
        transfer_id=transfer_id,
        amount=None if amount is None else usd(amount),
        by=None,
        reason="Wrong answer",
    )


def test_a_refund_takes_back_from_those_who_got() -> None:
    payer, agent = funded_account("payer", "5"), funded_account("agent")
    paid = charge(payer, agent, response_id="resp_1", agent_id="agent_1")

    done = refund(paid)

    assert (available(payer), available(agent)) == ("5", "0")
    assert fees_balance() == usd("0")
    row = Transfer.objects.get(pk=done.transfer_id)
    assert (row.kind, row.reverses_id, row.response_id, row.agent_id, row.memo) == (
        "refund", paid, "resp_1", "agent_1", "Wrong answer",
    )  # fmt: skip


def test_refunds_in_parts_never_exceed_what_was_paid() -> None:
    payer, agent = funded_account("payer", "5"), funded_account("agent")
    paid = charge(payer, agent)

    refund(paid, "1", key="a")
    refund(paid, "1", key="a")
    refund(paid, "0.000000001")
    with pytest.raises(services.NotRefundable, match=r"left: 1\.999999999"):
        refund(paid, "2")
    assert refund(paid).amount == usd("1.999999999")
    for amount in (None, "0.000000001"):
        with pytest.raises(services.NotRefundable):
            refund(paid, amount)

    assert (available(payer), available(agent)) == ("5", "0")
    assert fees_balance() == usd("0")


def test_what_cannot_be_refunded_is_refused_by_name() -> None:
    payer, agent, other = (
        funded_account("payer", "5"),
        funded_account("agent"),
        funded_account("other"),
    )
    paid = charge(payer, agent)

    with pytest.raises(services.UnknownTransfer):
        refund("tr_missing")
    with pytest.raises(services.NotRefundable, match="refund cannot be refunded"):
        refund(refund(paid, "1").transfer_id)
    with pytest.raises(InvalidAmount):
        refund(paid, "0")
    with pytest.raises(AssetMismatch):
        services.refund(key="k", transfer_id=paid, amount=Money(1, "USDC"), by=None, reason="Wrong")
    with pytest.raises(ValueError, match="reason"):
        services.refund(key="k", transfer_id=paid, by=None, reason="")
    services.transfer(key="t", debit=agent.id, credit=other.id, amount=usd("1"))
    with pytest.raises(services.InsufficientFunds):
        refund(paid)


def test_a_top_up_is_paid_back_to_the_outside() -> None:
    account = funded_account("payer")

    refund(top_up(account).transfer_id)

    assert available(account) == "0"


# --- Reading ---


def test_spending_is_read_from_the_ledgers_rows() -> None:
    person = factories.user()
    payer, agent = services.account_of_user(person.pk), funded_account("agent")
    top_up(payer, amount=usd("50"))
    charge(payer, agent, response_id="r1", agent_id="a1", chat_id="c1", protocol="uamp")
    paid = charge(payer, agent, response_id="r2", agent_id="a1", chat_id="c2", protocol="a2a")
    charge(payer, agent, response_id="r3", agent_id="a2", chat_id="c2", protocol="uamp")
    refund(paid, "1.5")
    since = timezone.now() - timedelta(hours=1)

    assert selectors.user_spend_by_day(person.pk, "USD", since) == [
        (timezone.now().date(), usd("7.5"))
    ]
    assert [
        (row.name, str(row.amount))
        for row in selectors.usage_by("agent", since=since, account_id=payer.id)
    ] == [
        ("a1", "4.5"),
        ("a2", "3"),
    ]
    by = {
        dimension: {row.name: str(row.amount) for row in selectors.usage_by(dimension)}
        for dimension in ("chat", "protocol", "user", "response", "day")
    }
    assert by == {
        "chat": {"c1": "3", "c2": "4.5"},
        "protocol": {"uamp": "6", "a2a": "1.5"},
        "user": {str(person.pk): "7.5"},
        "day": {str(timezone.now().date()): "7.5"},
        "response": {"r1": "3", "r2": "1.5", "r3": "3"},
    }
    assert selectors.usage_by("agent", chat_id="c2", user_id=person.pk)[0].amount == usd("3")
    assert selectors.user_spend_by_day(person.pk, "USD", timezone.now() + timedelta(hours=1)) == []


def test_a_statement_is_read_page_by_page() -> None:
    payer, agent = funded_account("payer", "50"), funded_account("agent")
    for _ in range(5):
        charge(payer, agent)

    pages = []
    before = None
    while page := selectors.statement(payer.id, before=before, limit=4):
        pages.append([str(row.amount) for row in page])
        before = page[-1].entry_id

    assert pages == [["-3"] * 4, ["-3", "50"]]
    with pytest.raises(services.UnknownAccount):
        selectors.balance(10**9)


# --- Log lines ---


def test_each_movement_writes_a_line_with_its_id_once_it_is_committed(
    caplog: pytest.LogCaptureFixture,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    payer, agent = funded_account("payer", "9"), services.account_of_agent("agent_log")
    charged = charge(payer, agent, response_id="resp_log")
    key = new_key()

    def refunded() -> services.TransferOutcome:
        return services.refund(
            key=key, transfer_id=charged, by=None, reason="wrong", amount=usd("1")
        )

    with with_ids(caplog, logging.INFO) as lines:
        with django_capture_on_commit_callbacks(execute=True):
            done = refunded()
            assert lines == []
        (line,) = lines
        assert line.getMessage() == "refund of 1 USD was posted"
        assert (line.payment_id, line.response_id) == (done.transfer_id, "resp_log")
        assert line.ids == f" [response=resp_log payment={done.transfer_id}]"
        with django_capture_on_commit_callbacks(execute=True):
            assert refunded().replayed
        assert lines == [line]
