"""Whatever an operator grants is in the audit, whichever key the form came with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from audit_app.models import AuditRecord
from payments_app import adjustments, services
from payments_app.ledger.freezing import freeze
from payments_app.models import Idempotency, LedgerState, Receipt, Transfer
from payments_app.top_ups import requests as top_ups
from tests import factories
from tests.payments_app.funded_accounts import available, fees, funded_account, hold, to, usd

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db

USED = "admin:used"
"""A key that an adjustment was made with."""
MINE: dict[str, str] = {"reason": "Because", "key": USED}


@pytest.fixture
def client() -> Client:
    """Return an operator's browser, in which the key was used for an adjustment."""
    client = Client()
    client.force_login(factories.superuser())
    account = funded_account("someone", "1")
    order(client, "account", account.id, direction="credit", amount="1")
    assert Idempotency.objects.filter(scope="admin", key=USED).exists()
    return client


def order(client: Client, model: str, pk: Any, **fields: str) -> Any:
    url = reverse(f"admin:payments_app_{model}_operate", args=[quote(pk)])
    page: Any = client.post(url, {**MINE, **fields})
    if page.status_code == 200 and page.context["preview"]:
        page = client.post(url, {**MINE, **fields, "confirmed": page.context["preview"]})
    return page


def top_up() -> str:
    person = factories.user("person")
    row, _ = top_ups.ask(key="k", user_id=person.pk, provider="manual", amount=usd("500"))
    return row.pk


def large_adjustment() -> int:
    row = adjustments.adjust(
        key="large", scope="s", account=funded_account("rich", "1").id, amount=usd("500"),
        by=factories.user("second").pk, reason="x",
    ).request  # fmt: skip
    assert row is not None
    return row.pk


def frozen() -> int:
    freeze("a mismatch")
    return LedgerState.objects.get().pk


def account() -> int:
    return funded_account("payer", "10").id


def reservation() -> str:
    return hold(funded_account("payer", "10"), "4")


def charge() -> str:
    return services.capture(
        key="c",
        hold_id=hold(funded_account("payer", "10"), "3"),
        amount=usd("3"),
        splits=[to(funded_account("agent"), "2"), fees("1")],
    ).transfer_ids[0]


def receipt() -> int:
    services.record_receipt(
        provider="x402", external_id="lost", account_id=account(), amount=usd("5")
    )
    return Receipt.objects.get(external_id="lost").pk


GRANTED: list[tuple[str, Callable[[], Any], dict[str, str], str]] = [
    ("topuprequest", top_up, {"decision": "grant"}, "top_up.decided"),
    ("topuprequest", top_up, {"decision": "refuse"}, "top_up.decided"),
    ("adjustmentrequest", large_adjustment, {"decision": "approve"}, "balance.adjusted"),
    ("adjustmentrequest", large_adjustment, {"decision": "refuse"}, "balance.adjusted"),
    ("ledgerstate", frozen, {}, "ledger.unfrozen"),
]
"""Operations that the key of the form does not stand for: (model, row, form, audit action)."""
REFUSED: list[tuple[str, Callable[[], Any], dict[str, str]]] = [
    ("account", account, {"direction": "credit", "amount": "2"}),
    ("account", account, {"direction": "credit", "amount": "500"}),
    ("hold", reservation, {}),
    ("transfer", charge, {}),
    ("receipt", receipt, {}),
]
"""Operations of the ledger, which knows the key."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("model", "row", "form", "action"), GRANTED)
def test_what_is_granted_under_a_used_key_is_recorded(
    client: Client, model: str, row: Callable[[], Any], form: dict[str, str], action: str
) -> None:
    pk = row()
    before = AuditRecord.objects.filter(action=action).count()

    assert order(client, model, pk, **form).status_code == 302

    (record,) = AuditRecord.objects.filter(action=action).order_by("pk")[before:]
    assert (record.object_id, record.reason) == (str(pk), "Because")


@pytest.mark.parametrize(("model", "row", "form"), REFUSED)
def test_the_ledger_does_nothing_else_under_a_used_key(
    client: Client, model: str, row: Callable[[], Any], form: dict[str, str]
) -> None:
    pk = row()
    before = list(AuditRecord.objects.values_list("pk")), Transfer.objects.count()

    page = order(client, model, pk, **form)

    assert "was used" in page.content.decode()
    assert (list(AuditRecord.objects.values_list("pk")), Transfer.objects.count()) == before


def test_payouts_that_were_not_frozen_are_not_recorded_as_allowed_again(client: Client) -> None:
    pk = frozen()
    for _ in range(2):
        assert order(client, "ledgerstate", pk).status_code == 302
    assert AuditRecord.objects.filter(action="ledger.unfrozen").count() == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("model", "row", "form"), REFUSED)
def test_a_form_sent_twice_is_recorded_once(
    client: Client, model: str, row: Callable[[], Any], form: dict[str, str]
) -> None:
    pk = row()
    before = AuditRecord.objects.count()

    first = order(client, model, pk, **form, key="new")
    then = available(funded_account("payer"))
    again = order(client, model, pk, **form, key="new")

    assert (first.status_code, again.status_code) == (302, 302)
    assert available(funded_account("payer")) == then
    assert AuditRecord.objects.count() == before + 1
