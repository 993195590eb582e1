"""The charges per day and agent on the page Money: a range of days, and their export."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from audit_app.models import AuditRecord
from payments_app import services as ledger
from payments_app.money import Money
from payments_app.reporting.usage import usage_of_person
from sessions_app.models import ChargeHour, CountedHour
from sessions_app.reporting.charged_days import charged_days
from tests import factories
from tests.sessions_app.admin.test_money_admin import DASHBOARD, charged, signed_in

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db

EXPORT = f"{DASHBOARD}charges.csv"
DAY = datetime(2026, 3, 5, 10, tzinfo=UTC)
MARCH = {"first": "2026-03-01", "last": "2026-03-31"}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


def counted(hour: datetime, agent_id: str, amount: str) -> None:
    """Write the charges of a counted hour."""
    CountedHour.objects.get_or_create(hour=hour, defaults={"is_complete": True})
    units = Money.parse(amount).amount
    ChargeHour.objects.create(
        hour=hour, agent_id=agent_id, protocol="uamp", asset="USD", amount=units
    )


def rows_of(page: Any) -> list[list[str]]:
    return list(csv.reader(page.content.decode().splitlines()))


def test_a_range_shows_the_days_of_old_charges_and_exports_the_same() -> None:
    agent = factories.agent("=HYPERLINK(1)")
    counted(DAY, agent.pk, "1.5")
    counted(DAY + timedelta(hours=1), agent.pk, "0.25")
    counted(DAY - timedelta(days=30), agent.pk, "9")
    client = signed_in("Finance")
    assert "2026-03-05" not in client.get(DASHBOARD).content.decode()
    page = client.get(DASHBOARD, MARCH).content.decode()
    assert '<th scope="row">2026-03-05</th><td>1.75</td>' in page
    assert f"{EXPORT}?first=2026-03-01&amp;last=2026-03-31" in page
    assert "not counted" not in page

    export = client.get(EXPORT, MARCH)
    assert export["Content-Type"] == "text/csv; charset=utf-8"
    assert rows_of(export) == [
        ["day", "agent_id", "agent", "amount", "asset"],
        ["2026-03-05", agent.pk, "'=HYPERLINK(1)", "1.75", "USD"],
    ]
    record = AuditRecord.objects.get(action="charges.exported")
    assert record.detail == "2026-03-01 to 2026-03-31"


def test_the_charges_of_this_hour_are_in_the_range() -> None:
    response = charged("1")
    today = timezone.now().date().isoformat()
    export = signed_in("Finance").get(EXPORT)
    assert rows_of(export)[1:] == [[today, response.agent_id, "paid", "1", "USD"]]


def test_uncounted_hours_with_transfers_are_named() -> None:
    charged("1")
    client = signed_in("Finance")
    before = timezone.now().date() - timedelta(days=2)
    quiet = {"first": str(before), "last": str(before)}
    assert "not counted" not in client.get(DASHBOARD, quiet).content.decode()
    # Seen two hours later, this hour is neither counted nor current.
    later = charged_days(
        timezone.now().date(),
        timezone.now().date() + timedelta(days=1),
        timezone.now() + timedelta(hours=2),
    )
    assert (later.missing_hours > 0, later.rows) == (True, [])


@pytest.mark.parametrize(
    ("days", "error"),
    [
        ({"first": "2026-13-01"}, "Enter a valid date."),
        ({"first": "2026-03-02", "last": "2026-03-01"}, "The range ends before it begins."),
        ({"first": "2020-01-01", "last": "2026-03-01"}, "The range has more than 366 days."),
    ],
)
def test_an_invalid_range_is_refused(days: dict[str, str], error: str) -> None:
    charged()
    client = signed_in("Finance")
    page = client.get(DASHBOARD, days)
    assert page.status_code == 200
    assert error in page.content.decode()
    assert "<rect" not in page.content.decode()
    assert EXPORT not in page.content.decode()
    refused = client.get(EXPORT, days)
    assert (refused.status_code, error in refused.content.decode()) == (400, True)
    assert not AuditRecord.objects.filter(action="charges.exported").exists()


@pytest.mark.parametrize(("role", "status"), [("plain", 403), ("Support", 403), ("Auditor", 200)])
def test_who_exports_charges(role: str, status: int) -> None:
    assert signed_in(role).get(EXPORT).status_code == status
    assert AuditRecord.objects.filter(action="charges.exported").exists() is (status == 200)


def test_a_year_takes_as_many_queries_as_a_month() -> None:
    agent = factories.agent("paid")
    client = signed_in("Finance")
    for number in range(30):
        counted(DAY + timedelta(hours=number), agent.pk, "1")
    client.get(DASHBOARD, MARCH)
    with CaptureQueriesContext(connection) as month:
        client.get(DASHBOARD, MARCH)
    for number in range(100, 300):
        counted(DAY + timedelta(hours=number), agent.pk, "1")
    with CaptureQueriesContext(connection) as year:
        client.get(DASHBOARD, {"first": "2025-12-01", "last": "2026-11-01"})
    # One run of uncounted hours more, between the counted ones.
    assert len(year) <= len(month) + 1


def test_charged_and_earned_today_are_labelled_for_what_they_are() -> None:
    charged("1", fee="0.1")
    page = signed_in("Finance").get(DASHBOARD).content.decode()
    assert '<dt>Charged today, less refunds (UTC)</dt><dd data-card="charged">1 USD</dd>' in page
    assert '<dt>This server\'s share today (UTC)</dt><dd data-card="revenue">0.1 USD</dd>' in page
    assert "Revenue" not in page


def test_a_refund_is_not_a_charge() -> None:
    response = charged("1")
    ledger.refund_answer(
        key="refund", scope="tests", response_id=response.pk, by=None, reason="it was wrong"
    )
    page = signed_in("Finance").get(DASHBOARD).content.decode()
    assert '<th scope="row">ada-paid</th><td>0</td><td>1</td>' in page
    ada = User.objects.get(username="ada-paid")
    (used,) = usage_of_person(ada.pk, ["agent"], since=DAY, asset="USD")
    assert (str(used.amount), used.charges) == ("0", 1)
