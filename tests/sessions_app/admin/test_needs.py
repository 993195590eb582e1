"""The needs on the operators' home: each number leads to exactly the rows that it counts."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.core.cache import cache
from django.urls import reverse
from django.utils import timezone

from payments_app import adjustments
from payments_app import services as ledger
from payments_app.ledger.freezing import freeze
from payments_app.models import LedgerState
from payments_app.top_ups import requests as top_ups
from sessions_app.models import PaymentRequest, Webhook
from tests import factories
from tests.payments_app.funded_accounts import usd
from tests.sessions_app.admin.test_home import paid_answer, signed_in

pytestmark = pytest.mark.django_db
NEED = re.compile(r'<a href="([^"]+)"><strong>([^<]+)</strong> ([^<]+)</a>')


@pytest.fixture(autouse=True)
def _fresh() -> None:
    cache.clear()


def test_each_need_leads_to_the_rows_that_it_counts() -> None:
    answer = paid_answer()
    person, session = answer.chat.created_by, answer.session
    assert person is not None
    assert session is not None
    demand: dict[str, Any] = {
        "response": answer, "payer": person, "asked_in": answer.chat_id, "amount": 1,
        "asset": "USD", "reason": "llm_usage", "deadline": timezone.now() + timedelta(minutes=5),
    }  # fmt: skip
    PaymentRequest.objects.create(number=1, status="paid", decided_at=timezone.now(), **demand)
    refused = factories.queued_turn(person, session, status="failed", code="forbidden")
    factories.queued_turn(person, session)
    lately, long_ago = timezone.now(), timezone.now() - timedelta(days=60)
    hook = {"chat": answer.chat, "url": "https://example.org/"}
    disabled = Webhook.objects.create(name="one", disabled_at=lately, **hook)
    Webhook.objects.create(name="two", disabled_at=long_ago, **hook)
    Webhook.objects.create(name="three", **hook)
    top_up, _ = top_ups.ask(key="a", user_id=person.pk, provider="manual", amount=usd("5"))
    decided, _ = top_ups.ask(key="b", user_id=person.pk, provider="manual", amount=usd("5"))
    top_ups.refuse(decided.pk, by=factories.user("decider").pk, reason="no")
    wallet = ledger.account_of_user(person.pk)
    adjustment = adjustments.adjust(
        key="large", scope="s", account=wallet.id, amount=usd("500"),
        by=factories.user("second").pk, reason="x",
    ).request  # fmt: skip
    assert adjustment is not None
    waiting = PaymentRequest.objects.create(number=2, status="waiting", **demand)
    freeze("a mismatch")
    LedgerState.objects.update(report=[["sum", "x", 1], ["sum", "y", 2]])

    root = signed_in(factories.superuser())
    page = root.get(reverse("admin:index")).content.decode()
    needs = {
        unescape(label).strip(): (unescape(url), value) for url, value, label in NEED.findall(page)
    }
    expected = {
        "pending payments": waiting,
        "refused queued messages": refused,
        "webhooks disabled in the last 14 days": disabled,
        "pending top-ups": top_up,
        "adjustments that need a second operator": adjustment,
    }
    for label, row in expected.items():
        url, value = needs[label]
        assert value == "1", label
        assert [listed.pk for listed in root.get(url).context["cl"].result_list] == [row.pk], label
    books = reverse("admin:payments_app_ledgerstate_changelist")
    assert needs["Payouts are frozen"] == (books, "!")
    assert needs["Failed ledger checks"] == (books, "2")
