"""Operations on money: offered where they can work, and closed to Support."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.core.cache import cache
from django.urls import NoReverseMatch, reverse

from audit_app.models import AuditRecord
from payments_app import services as ledger
from payments_app.ledger.freezing import freeze
from payments_app.models import Hold, Receipt, Transfer
from payments_app.money import Money
from payments_app.top_ups import requests as top_ups
from sessions_app.models import Response
from tests import factories
from tests.sessions_app.admin.test_money_admin import (
    DASHBOARD,
    charged,
    hold_for,
    page_of,
    signed_in,
    usd,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _fresh() -> None:
    cache.clear()


def test_nothing_is_offered_where_it_cannot_work() -> None:
    response, client = charged(), signed_in("superuser")
    ended = Hold.objects.get(response_id=response.pk)
    open_hold = hold_for(response)

    def is_offered(kind: str, pk: Any) -> bool:
        links = client.get(page_of(f"payments_app_{kind}", pk)).context["links"]
        assert "Audit" in [link["label"] for link in links]
        return any("/operate/" in link["url"] for link in links)

    assert not is_offered("hold", ended.pk)
    assert is_offered("hold", open_hold.pk)
    # It is cancelled, which pays for what was delivered.
    Response.objects.filter(pk=response.pk).update(status="in_progress", finished_at=None)
    assert not is_offered("hold", open_hold.pk)

    amount = Money.parse("5", "USD")
    person = factories.user("person")
    request, _ = top_ups.ask(key="k", user_id=person.pk, provider="manual", amount=amount)
    assert is_offered("topuprequest", request.pk)
    top_ups.refuse(request.pk, by=factories.user("decider").pk, reason="no")
    assert not is_offered("topuprequest", request.pk)

    ledger.record_receipt(
        provider="x402", external_id="lost", account_id=open_hold.account_id, amount=amount
    )
    receipt = Receipt.objects.get(external_id="lost")
    assert is_offered("receipt", receipt.pk)
    ledger.top_up(
        key="credited",
        account=open_hold.account_id,
        amount=amount,
        provider="x402",
        external_id="lost",
    )
    assert not is_offered("receipt", receipt.pk)

    freeze("a mismatch")
    assert is_offered("ledgerstate", 1)
    assert ledger.unfreeze()
    assert not is_offered("ledgerstate", 1)


def test_support_reads_and_moves_no_money() -> None:
    """Each page of the ledger, each operation of it, and what is exported."""
    response = charged()
    open_hold = hold_for(response)
    person = factories.user("person")
    top_ups.ask(key="k", user_id=person.pk, provider="manual", amount=usd("5"))
    ledger.record_receipt(
        provider="x402", external_id="lost", account_id=open_hold.account_id, amount=usd("5")
    )
    ledger.audit()
    before = (Transfer.objects.count(), AuditRecord.objects.count())
    support = signed_in("Support")
    pages = [DASHBOARD, f"{DASHBOARD}charges.csv"]
    for model in apps.get_app_config("payments_app").get_models():
        if model not in admin.site._registry:
            continue
        name = f"payments_app_{model._meta.model_name}"
        pages.append(reverse(f"admin:{name}_changelist"))
        row = model._default_manager.first()
        if row is None:
            continue
        pages.append(page_of(name, row.pk))
        for view in ("operate", "statement"):
            with suppress(NoReverseMatch):
                pages.append(page_of(name, row.pk, view))
    operations = [page for page in pages if "/operate/" in page]
    assert len(operations) >= 5
    for page in pages:
        assert support.get(page).status_code in {403, 404}, page
    body = {"key": "admin:k", "reason": "x", "decision": "grant", "direction": "credit"}
    for page in operations:
        assert support.post(page, {**body, "amount": "1"}).status_code == 403, page
    assert (Transfer.objects.count(), AuditRecord.objects.count()) == before
