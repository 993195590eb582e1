"""No operator decides about money of their own: each decision, on each kind of account."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, TypeAlias

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from audit_app.models import AuditRecord
from payments_app import adjustments, services
from payments_app.models import Hold, Transfer
from payments_app.services import OwnMoney
from payments_app.tokens import issuance
from payments_app.top_ups import requests as top_ups
from tests import factories
from tests.payments_app.funded_accounts import authorize, available, new_key, usd

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User

    from chat_app.models import Chat

pytestmark = pytest.mark.django_db

Decide: TypeAlias = "Callable[[int, int], object]"
"""Decides about money of an account, as the person of an id."""


def fund(account: int, amount: str = "10") -> str:
    """Bring money in from outside; return the transfer."""
    key = new_key()
    done = services.top_up(
        key=key, account=account, amount=usd(amount), provider="test", external_id=key
    )
    return done.transfer_id


def shop() -> int:
    """Return the account of a shop."""
    return services.ensure_account(code=f"user:{new_key()}:USD", kind="user").id


def adjust(account: int, by: int) -> object:
    return services.adjust(key=new_key(), account=account, amount=usd("5"), by=by, reason="x")


def take_away(account: int, by: int) -> object:
    return services.adjust(key=new_key(), account=account, amount=usd("-5"), by=by, reason="x")


def credit(account: int, by: int) -> object:
    return services.top_up(
        key=new_key(), account=account, amount=usd("5"), provider="test", external_id="1", by=by
    )


def refund(account: int, by: int) -> object:
    paid = services.transfer(key=new_key(), debit=account, credit=shop(), amount=usd("2"))
    return services.refund(key=new_key(), transfer_id=paid.transfer_id, by=by, reason="x")


def void(account: int, by: int) -> object:
    hold = authorize(key=new_key(), account_id=account, amount=usd("2"))
    return services.void(key=new_key(), hold_id=hold.hold_id, by=by)


def of_person(owner: User) -> int:
    return services.account_of_user(owner.pk).id


def of_agent(owner: User) -> int:
    agent = factories.agent(f"agent-{owner.username}", owner=owner)
    return services.account_of_agent(agent.pk).id


def of_token(owner: User) -> int:
    code = f"token:{new_key()}"
    return services.ensure_account(code=code, kind="token", owner_id=owner.pk).id


def of_pool(owner: User) -> int:
    """Return the pool of a chat that they own."""
    return pool_of(factories.chat(owner))


def of_joined_pool(owner: User) -> int:
    """Return the pool of a chat of someone else's that they are a member of."""
    return pool_of(factories.chat(factories.user("host"), owner))


def of_left_pool(owner: User) -> int:
    """Return the pool of a chat that they left, and might be in again tomorrow."""
    chat = factories.chat(factories.user("host"), owner)
    chat.participants.filter(user=owner).update(left_at=timezone.now())
    return pool_of(chat)


def of_payment(owner: User) -> int:
    """Return the account of a payment on a chain that they sent, which was not carried out."""
    account = services.ensure_account(code=f"token:{new_key()}", kind="token").id
    services.record_receipt(
        provider="x402",
        external_id=new_key(),
        account_id=account,
        amount=usd("5"),
        state="submitted",
        payload={"user": owner.pk, "visitor": None},
    )
    return account


def of_token_from_payment(owner: User) -> int:
    """Return the account of a token made from one made from such a payment."""
    account, token_id = of_payment(owner), new_key()
    issuance.make_for_payer(token_id, account, name="x402", audience=[])
    fund(account, "4")
    for amount in ("3", "1"):
        child = issuance.delegate(
            key=new_key(),
            caller_id=owner.pk,
            amount=usd(amount),
            delegate_to="echo",
            parent_id=token_id,
        )
        token_id = child.id
    return child.account_id


ACCOUNTS = [
    of_person, of_agent, of_token, of_pool, of_joined_pool, of_left_pool, of_payment,
    of_token_from_payment,
]  # fmt: skip


def pool_of(chat: Chat) -> int:
    """Return the pool of a chat."""
    return services.ensure_account(code=f"pool:{chat.pk}:USD", kind="pool").id


@pytest.mark.parametrize("account_of", ACCOUNTS)
@pytest.mark.parametrize("decide", [adjust, take_away, credit, refund, void])
def test_no_operator_decides_about_money_of_their_own(
    decide: Decide, account_of: Callable[[User], int]
) -> None:
    owner, other = factories.superuser(), factories.user("other")
    account = account_of(owner)
    fund(account)
    before = Transfer.objects.count()

    with pytest.raises(OwnMoney, match="another operator"):
        decide(account, owner.pk)

    assert Transfer.objects.filter(by=owner).count() == 0
    assert Transfer.objects.count() <= before + 1
    decide(account, other.pk)


@pytest.mark.parametrize("account_of", ACCOUNTS)
def test_no_operator_credits_a_payment_of_their_own(account_of: Callable[[User], int]) -> None:
    owner, other = factories.superuser(), factories.user("other")
    account = account_of(owner)
    before = available(account)
    services.record_receipt(
        provider="x402", external_id="lost", account_id=account, amount=usd("7"), state="submitted"
    )
    payment = {"provider": "x402", "external_id": "lost", "account": account, "amount": usd("7")}

    with pytest.raises(OwnMoney, match="another operator"):
        services.top_up(key="a", by=owner.pk, **payment)  # type: ignore[arg-type]

    assert available(account) == before
    services.top_up(key="b", by=other.pk, **payment)  # type: ignore[arg-type]
    assert usd(available(account)) == usd(before) + usd("7")


@pytest.mark.parametrize("account_of", ACCOUNTS)
def test_no_operator_refuses_an_adjustment_of_their_own_money(
    account_of: Callable[[User], int],
) -> None:
    owner, other = factories.superuser(), factories.user("other")
    account = account_of(owner)
    row = adjustments.adjust(
        key="k", account=account, amount=usd("-500"), by=other.pk, reason="x", scope="s"
    ).request
    assert row is not None

    for decide in (adjustments.refuse, adjustments.approve):
        with pytest.raises(OwnMoney, match="another operator"):
            decide(row.pk, by=owner.pk, reason="mine")

    row.refresh_from_db()
    assert row.state == "open"
    adjustments.refuse(row.pk, by=other.pk, reason="withdrawn")


def test_a_payee_may_refund_a_payment() -> None:
    seller, buyer = factories.user("seller"), factories.user("buyer")
    theirs, mine = of_person(buyer), of_person(seller)
    fund(theirs)
    paid = services.transfer(key="1", debit=theirs, credit=mine, amount=usd("2"))

    services.refund(key="2", transfer_id=paid.transfer_id, by=seller.pk, reason="sorry")

    assert available(theirs) == str(usd("10"))


@pytest.mark.parametrize("decide", [top_ups.grant, top_ups.refuse])
def test_no_operator_decides_about_a_request_of_their_own(decide: Callable[..., object]) -> None:
    ada = factories.superuser()
    row, _ = top_ups.ask(key="k", user_id=ada.pk, provider="manual", amount=usd("5"))

    with pytest.raises(OwnMoney, match="another operator"):
        decide(row.pk, by=ada.pk, reason="mine")

    row.refresh_from_db()
    assert (row.state, available(of_person(ada))) == ("open", "0")
    decide(row.pk, by=factories.user("other").pk, reason="hers")


def test_an_operator_who_is_alone_corrects_a_balance_at_the_command_line() -> None:
    ada, printed = factories.superuser(), StringIO()

    call_command("adjust_balance", ada.username, "2.50", reason="cash", stdout=printed)
    call_command("adjust_balance", ada.username, "--reason=back", "--", "-1", stdout=printed)

    assert available(of_person(ada)) == str(usd("1.50"))
    assert printed.getvalue().splitlines()[-1] == f"{ada.username} has 1.5 USD."
    row = AuditRecord.objects.order_by("pk")[0]
    assert (row.action, row.actor, row.reason) == ("balance.adjusted", None, "cash")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["carol", "1"], "no account named carol"),
        (["admin", "x"], "amount"),
        (["admin", "0"], "zero"),
        (["admin", "--", "-1"], "available"),
    ],
)
def test_a_correction_that_cannot_be_made_is_refused(words: list[str], message: str) -> None:
    factories.user("admin")

    with pytest.raises(CommandError, match=message):
        call_command("adjust_balance", "--reason=x", *words)

    assert not AuditRecord.objects.exists()


def test_an_asker_cannot_void_what_another_person_pays() -> None:
    asker, payer, other = (factories.user(name) for name in ("asker", "payer", "other"))
    account = of_person(payer)
    fund(account, "5")
    outcome = authorize(
        key=new_key(), account_id=account, amount=usd("2"), response_id="resp_1", asker_id=asker.pk
    )
    with pytest.raises(OwnMoney, match="your own answer"):
        services.void(key=new_key(), hold_id=outcome.hold_id, by=asker.pk)
    assert Hold.objects.get().state == "active"
    assert services.void(key=new_key(), hold_id=outcome.hold_id, by=other.pk).released == usd("2")
