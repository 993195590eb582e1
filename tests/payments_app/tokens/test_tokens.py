"""The money of payment tokens: passed on, topped up, given back, and spent once."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from payments_app import services
from payments_app.models import PaymentToken
from payments_app.services import InsufficientFunds
from payments_app.tokens import endings, issuance, top_ups
from payments_app.tokens import lookup as token_lookup
from payments_app.tokens.lookup import TokenRefused
from tests.payments_app.funded_accounts import authorize, fees, new_key, usd
from tests.payments_app.tokens.issued_tokens import (
    delegate,
    expire,
    issue,
    race,
    refusal,
    rich,
    wallet,
)

if TYPE_CHECKING:
    from pytest_django import DjangoDbBlocker

    from payments_app.tokens.issuance import IssuedToken

pytestmark = pytest.mark.django_db


# --- Passed on ---


def test_a_child_takes_its_money_from_its_parent() -> None:
    ada = rich()
    parent = issue(ada, "1", per_use=usd("0.3"))
    child = delegate(parent, "0.4")
    assert [str(token_lookup.resolve(t.token).available) for t in (parent, child)] == ["0.6", "0.4"]
    token_account = token_lookup.resolve(child.token, agent="helper")
    assert (token_account.owner_id, token_account.depth, token_account.per_use) == (
        ada.pk,
        1,
        usd("0.3"),
    )
    assert refusal(child.token, agent="echo") == "token_invalid"
    assert wallet(ada) == "9"


def test_more_than_the_parent_has_is_refused_with_what_it_has() -> None:
    parent = issue(rich(), "0.2")
    with pytest.raises(InsufficientFunds, match=r"available: 0\.2"):
        delegate(parent, "0.3")
    assert PaymentToken.objects.count() == 1


def test_a_child_ends_with_its_parent_at_the_latest() -> None:
    parent = issue(rich(), expires_in=100)
    assert delegate(parent, expires_in=1000).expires_at == parent.expires_at
    assert delegate(parent).expires_at == parent.expires_at
    sooner = delegate(parent, expires_in=10)
    assert sooner.expires_at < parent.expires_at


def test_a_child_is_not_for_an_agent_that_the_parent_is_not_for() -> None:
    parent = issue(rich(), audience=["echo"])
    assert delegate(parent, to="echo").audience == ("echo",)
    for to, audience in (("stranger", ()), ("echo", ["stranger"])):
        with pytest.raises(TokenRefused) as caught:
            delegate(parent, to=to, audience=audience)
        assert caught.value.code == "token_invalid"


def test_a_token_is_passed_on_five_times_and_not_six() -> None:
    token = issue(rich())
    for depth in range(1, 6):
        token = delegate(token, "0.1")
        assert token.depth == depth
    with pytest.raises(TokenRefused, match="at most 5"):
        delegate(token, "0.1")


def test_a_token_has_a_limit_of_open_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuance, "MAX_CHILDREN", 2)
    ada = rich()
    parent = issue(ada, "1")
    first = delegate(parent, key="first")
    second = delegate(parent)
    with pytest.raises(TokenRefused, match="at most 2 open") as caught:
        delegate(parent)
    assert caught.value.code == "token_invalid"
    assert PaymentToken.objects.count() == 3
    assert str(token_lookup.resolve(parent.token).available) == "0.8"
    # A repeat makes no child, and a child has a limit of its own.
    assert delegate(parent, key="first").token == first.token
    delegate(first, "0.05")
    # An expired one counts until its money is back.
    expire(second)
    with pytest.raises(TokenRefused):
        delegate(parent)
    endings.return_available()
    third = delegate(parent)
    endings.revoke(token_id=third.id, user_id=ada.pk)
    delegate(parent)


@pytest.mark.parametrize("end", ["expired", "revoked"])
def test_a_token_that_ended_is_not_passed_on(end: str) -> None:
    ada = rich()
    parent = issue(ada)
    if end == "expired":
        expire(parent)
    else:
        endings.revoke(token_id=parent.id, user_id=ada.pk)
    with pytest.raises(TokenRefused):
        delegate(parent)


# --- Top-up ---


def test_a_top_up_moves_more_into_the_same_token() -> None:
    ada = rich()
    token = issue(ada)
    for _ in range(2):
        top_ups.top_up(key="once", token_id=token.id, user_id=ada.pk, amount=usd("2"))
    assert str(token_lookup.resolve(token.token).available) == "3"
    assert wallet(ada) == "7"


def test_a_token_is_topped_up_by_its_owner_only_and_while_it_lasts() -> None:
    ada, bob = rich("ada"), rich("bob")
    token = issue(ada)
    with pytest.raises(token_lookup.UnknownToken):
        top_ups.top_up(key="k", token_id=token.id, user_id=bob.pk, amount=usd("1"))
    expire(token)
    with pytest.raises(TokenRefused):
        top_ups.top_up(key="k", token_id=token.id, user_id=ada.pk, amount=usd("1"))
    assert (wallet(ada), wallet(bob)) == ("9", "10")


# --- Ends ---


def hold(token: IssuedToken, amount: str) -> str:
    return authorize(key=new_key(), account_id=token.account_id, amount=usd(amount)).hold_id


def test_revoking_returns_the_unheld_rest_and_ends_the_children() -> None:
    ada = rich()
    parent = issue(ada, "2")
    child = delegate(parent, "1")
    hold_id = hold(child, "0.25")
    assert endings.revoke(token_id=parent.id, user_id=ada.pk) == usd("1.75")
    assert wallet(ada) == "9.75"
    assert refusal(child.token) == "token_invalid"
    with pytest.raises(InsufficientFunds):
        hold(child, "0.01")
    services.capture(
        key="c", hold_id=hold_id, amount=usd("0.2"), splits=[fees("0.2")], release=True
    )
    assert endings.return_available() == 1
    assert wallet(ada) == "9.8"
    assert services.audit().clean


def test_what_a_child_has_left_goes_back_to_a_parent_that_lasts() -> None:
    ada = rich()
    parent = issue(ada, "2")
    child = delegate(parent, "1")
    endings.revoke(token_id=child.id, user_id=ada.pk)
    assert str(token_lookup.resolve(parent.token).available) == "2"
    assert wallet(ada) == "8"


def test_the_sweep_gives_back_what_expired_once() -> None:
    ada = rich()
    token, lasting = issue(ada, "2"), issue(ada, "1")
    assert endings.return_available() == 0
    expire(token)
    assert [endings.return_available(), endings.return_available()] == [1, 0]
    assert wallet(ada) == "9"
    assert PaymentToken.objects.get(pk=token.id).closed_at is not None
    assert str(token_lookup.resolve(lasting.token).available) == "1"


def test_the_periodic_job_gives_back_what_expired() -> None:
    ada = rich()
    token = issue(ada, "2")
    hold_outcome = authorize(
        key="h", account_id=token.account_id, amount=usd("0.5"), expires_in=0.001
    )
    expire(token)
    time.sleep(0.003)
    services.expire_and_audit()
    assert (wallet(ada), hold_outcome.amount) == ("10", usd("0.5"))


def test_a_refund_to_a_finished_token_is_returned_too() -> None:
    ada = rich()
    token = issue(ada, "1")
    paid = services.capture(
        key="c", hold_id=hold(token, "1"), amount=usd("1"), splits=[fees("1")], release=True
    )
    expire(token)
    endings.return_available()
    services.refund(key="r", transfer_id=paid.transfer_ids[0], by=None, reason="wrong")
    assert endings.return_available() == 0
    assert endings.return_available(thorough=True) == 1
    assert wallet(ada) == "10"


def test_a_stranger_sees_and_ends_nothing() -> None:
    ada, bob = rich("ada"), rich("bob")
    token = issue(ada)
    with pytest.raises(token_lookup.UnknownToken):
        endings.revoke(token_id=token.id, user_id=bob.pk)
    with pytest.raises(token_lookup.UnknownToken):
        endings.tree(token.id, bob.pk)
    assert endings.tokens_of(bob.pk) == []
    assert token_lookup.resolve(token.token).id == token.id


def test_the_tree_shows_all_that_was_passed_on() -> None:
    ada = rich()
    root = issue(ada, "3", name="trip")
    left, right = delegate(root, "1", to="a", audience=["c"]), delegate(root, "1", to="b")
    leaf = delegate(left, "0.5", to="c")
    endings.revoke(token_id=right.id, user_id=ada.pk)
    tree = endings.tree(root.id, ada.pk)
    assert (tree.id, tree.name, str(tree.available)) == (root.id, "trip", "2")
    assert [(c.id, c.status) for c in tree.children] == [(left.id, "active"), (right.id, "revoked")]
    assert [c.id for c in tree.children[0].children] == [leaf.id]
    assert [t.id for t in endings.tokens_of(ada.pk)][-1] == root.id


@pytest.mark.parametrize(
    "fields",
    [
        {"expires_in": 0},
        {"expires_in": -1},
        {"expires_in": 1e12},
        {"form": "paper"},
        {"name": "x" * 101},
        {"audience": [""]},
        {"audience": ["x"] * 51},
    ],
    ids=str,
)
def test_a_token_that_cannot_be_is_not_made(fields: dict[str, Any]) -> None:
    ada = rich()
    with pytest.raises(ValueError, match=r"token|name|audience"):
        issue(ada, **fields)
    assert wallet(ada) == "10"


# --- Races ---


@pytest.mark.django_db(transaction=True)
def test_two_holds_on_a_token_for_one_are_one(django_db_blocker: DjangoDbBlocker) -> None:
    token = issue(rich(), "1")
    outcomes = race(django_db_blocker, *[lambda: hold(token, "1")] * 4)
    assert sum(isinstance(outcome, str) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, InsufficientFunds) for outcome in outcomes) == 3


@pytest.mark.django_db(transaction=True)
def test_passing_on_and_revoking_at_once_leaves_no_child_behind(
    django_db_blocker: DjangoDbBlocker,
) -> None:
    ada = rich()
    for _ in range(5):
        parent = issue(ada, "1")
        race(
            django_db_blocker,
            partial(delegate, parent, "0.5"),
            partial(endings.revoke, token_id=parent.id, user_id=ada.pk),
            partial(delegate, parent, "0.3"),
        )
        children = PaymentToken.objects.filter(parent_id=parent.id)
        assert all(child.revoked_at is not None for child in children)
        assert wallet(ada) == "10"
    assert services.audit().clean


@pytest.mark.django_db(transaction=True)
def test_two_at_once_do_not_both_make_the_last_child(
    django_db_blocker: DjangoDbBlocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuance, "MAX_CHILDREN", 1)
    parent = issue(rich(), "1")
    outcomes = race(django_db_blocker, *[partial(delegate, parent, "0.1")] * 4)
    assert sum(isinstance(outcome, TokenRefused) for outcome in outcomes) == 3
    assert PaymentToken.objects.filter(parent_id=parent.id).count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_same_key_at_once_is_one_token(django_db_blocker: DjangoDbBlocker) -> None:
    ada = rich()
    tokens = race(django_db_blocker, *[lambda: issue(ada, key="same").token] * 4)
    assert len(set(map(str, tokens))) == 1
    assert wallet(ada) == "9"
