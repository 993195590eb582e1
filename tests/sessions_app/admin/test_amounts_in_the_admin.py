"""The admin shows amounts as decimal strings, and no column of smallest units as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets, quote
from django.test import Client, RequestFactory
from django.urls import reverse

from payments_app import services as ledger
from payments_app.models import Approval, PaymentToken, SpendingLimit, TopUpRequest
from payments_app.money import Money
from payments_app.spending.limits import Limit, set_limits
from payments_app.tokens.issuance import issue
from tests import factories

if TYPE_CHECKING:
    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db

UNITS: Final = {"amount", "captured", "held", "per_use_limit", "posted", "up_to"}
ROOMS: Final = ("payments_app", "sessions_app")


def admins() -> list[Any]:
    models = [model for room in ROOMS for model in apps.get_app_config(room).get_models()]
    return [admin.site.get_model_admin(m) for m in models if admin.site.is_registered(m)]


def test_no_page_of_the_admin_names_a_column_of_smallest_units() -> None:
    request = RequestFactory().get("/")
    request.user = factories.superuser()
    class_names = {type(model_admin).__name__ for model_admin in admins()}
    assert {"TopUpRequestAdmin", "SpendingLimitAdmin", "PaymentRequestAdmin"} <= class_names
    for model_admin in admins():
        inlines = model_admin.get_inline_instances(request)
        columns = {*model_admin.get_list_display(request)}
        columns.update(flatten_fieldsets(model_admin.get_fieldsets(request, model_admin.model())))
        columns.update(name for inline in inlines for name in inline.get_fields(request))
        assert not columns & UNITS, type(model_admin).__name__


@pytest.fixture
def ada() -> User:
    """Return a person with twenty dollars."""
    person = factories.user("ada")
    ledger.top_up(
        key="k",
        account=ledger.account_of_user(person.pk).id,
        amount=Money.parse("20"),
        provider="tests",
        external_id="1",
    )
    return person


def row(kind: str, ada: User) -> Any:
    """Make a row of 12.345 dollars."""
    amount = Money.parse("12.345")
    if kind == "topuprequest":
        return TopUpRequest.objects.create(
            id=f"topup_{'0' * 32}",
            provider="manual",
            account_id=ledger.account_of_user(ada.pk).id,
            user=ada,
            amount=amount.amount,
            asset="USD",
        )
    if kind == "spendinglimit":
        set_limits(ada.pk, [Limit(period="day", agent_id="", amount=amount)])
        return SpendingLimit.objects.get()
    if kind == "approval":
        return Approval.objects.create(
            user=ada, agent_id="agent_1", asset="USD", up_to=amount.amount
        )
    issue(key="t", user_id=ada.pk, amount=Money.parse("15"), expires_in=60, per_use=amount)
    return PaymentToken.objects.get()


@pytest.mark.parametrize("kind", ["topuprequest", "spendinglimit", "approval", "paymenttoken"])
def test_an_amount_is_written_in_its_currency(kind: str, ada: User) -> None:
    pk = row(kind, ada).pk
    client = Client()
    client.force_login(factories.superuser())
    change_page = client.get(reverse(f"admin:payments_app_{kind}_change", args=[quote(pk)])).text
    assert "12.345" in change_page
    assert "USD" in change_page
    listed = client.get(reverse(f"admin:payments_app_{kind}_changelist")).text
    assert ("12.345" in listed) == (kind != "paymenttoken")
    assert "12345000000" not in change_page + listed
