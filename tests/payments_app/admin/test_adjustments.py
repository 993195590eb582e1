"""Adjustments in the admin: shown before they are made, and large ones made by two people."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from audit_app.models import AuditRecord
from payments_app.models import AdjustmentRequest, Transfer
from tests import factories
from tests.payments_app.funded_accounts import available, funded_account, usd

pytestmark = pytest.mark.django_db


def finance(name: str) -> Client:
    user = factories.user(name, is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(
            codename__in=("view_account", "adjust_account"), content_type__app_label="payments_app"
        )
    )
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def account() -> int:
    """Return an account with ten dollars."""
    return funded_account("payer", "10").id


def post(client: Client, model: str, pk: int, **fields: str) -> Any:
    url = reverse(f"admin:payments_app_{model}_operate", args=[quote(pk)])
    return client.post(url, {"key": "k", "reason": "paid in cash", **fields})


def test_an_adjustment_is_shown_before_it_is_made(account: int) -> None:
    client = finance("fay")
    form = {"direction": "debit", "amount": "4"}
    response = post(client, "account", account, **form)
    preview = response.context["preview"]
    assert preview == ("Debit 4 USD: the available balance changes from 10 USD to 6 USD.")
    assert 'value="Confirm"' in response.content.decode()
    assert usd(available(account)) == usd("10")
    # What the person confirms has to be what happens.
    changed = post(client, "account", account, **{**form, "amount": "5"}, confirmed=preview)
    assert "Debit 5 USD" in changed.context["preview"]
    assert usd(available(account)) == usd("10")
    assert post(client, "account", account, **form, confirmed=preview).status_code == 302
    assert usd(available(account)) == usd("6")


def test_the_page_that_asks_to_confirm_sends_what_was_entered(account: int) -> None:
    client = finance("fay")
    response = post(client, "account", account, direction="debit", amount="4")
    form = response.context["form"]
    values = {name: form[name].value() for name in form.fields}
    assert (values["amount"], values["reason"], values["direction"]) == (
        "4",
        "paid in cash",
        "debit",
    )
    assert post(client, "account", account, **values).status_code == 302
    assert usd(available(account)) == usd("6")


def requested_adjustment(client: Client, account: int) -> AdjustmentRequest:
    """Ask for 250 dollars, twice with one form."""
    form = {"direction": "credit", "amount": "250"}
    preview = post(client, "account", account, **form).context["preview"]
    assert preview.endswith("A second operator has to approve it.")
    for _ in range(2):
        assert post(client, "account", account, **form, confirmed=preview).status_code == 302
    return AdjustmentRequest.objects.get()


def test_a_large_adjustment_is_made_by_a_second_operator_and_once(account: int) -> None:
    fay, finn = finance("fay"), finance("finn")
    row = requested_adjustment(fay, account)
    assert usd(available(account)) == usd("10")
    own_approval = post(fay, "adjustmentrequest", row.pk, decision="approve", key="own")
    assert "another operator has to decide" in own_approval.content.decode()
    assert usd(available(account)) == usd("10")
    approval = post(finn, "adjustmentrequest", row.pk, decision="approve", key="second")
    assert approval.status_code == 302
    assert usd(available(account)) == usd("260")
    again = post(finn, "adjustmentrequest", row.pk, decision="approve", key="third")
    assert "The adjustment is already made." in again.content.decode()
    assert usd(available(account)) == usd("260")
    row.refresh_from_db()
    transfer = Transfer.objects.get(pk=row.transfer_id)
    assert (row.state, transfer.memo) == ("made", "paid in cash")
    (record,) = AuditRecord.objects.filter(action="balance.adjusted", kind__endswith="request")
    assert record.actor is not None
    assert record.actor.username == "finn"


def test_an_adjustment_may_be_withdrawn_and_is_not_made_then(account: int) -> None:
    fay, finn = finance("fay"), finance("finn")
    row = requested_adjustment(fay, account)
    assert post(fay, "adjustmentrequest", row.pk, decision="refuse", key="w").status_code == 302
    late = post(finn, "adjustmentrequest", row.pk, decision="approve", key="late")
    assert "already declined" in late.content.decode()
    assert usd(available(account)) == usd("10")
    page = finn.get(reverse("admin:payments_app_adjustmentrequest_change", args=[row.pk]))
    assert page.context["links"] == []


def test_no_operator_asks_for_money_of_their_own() -> None:
    client = finance("fay")
    own_account = funded_account("own", "1")
    from payments_app.models import Account  # noqa: PLC0415

    Account.objects.filter(pk=own_account.id).update(owner_id=int(client.session["_auth_user_id"]))
    form = {"direction": "credit", "amount": "250"}
    preview = post(client, "account", own_account.id, **form).context["preview"]
    refused = post(client, "account", own_account.id, **form, confirmed=preview)
    assert "your own money" in refused.content.decode()
    assert not AdjustmentRequest.objects.exists()
