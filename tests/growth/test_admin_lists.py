"""Every list of the admin among 100,000 rows: the first page, and a rare filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from tests.growth.costs import counted

if TYPE_CHECKING:
    from tests.growth.rows import FilledTables

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(600)]

# A list counts up to 10,000 rows for its pages, and reads the rows of one.
PAGE = 45_000
FEW = 1_000
RARE = {
    "sessions_app.response": ("status__exact=failed",),
    "sessions_app.session": ("status__exact=active", "transport__exact=batch"),
    "sessions_app.toolcall": ("status__exact=failed", "kind__exact=agent"),
    "sessions_app.paymentrequest": ("status__exact=expired",),
    "chat_app.chat": ("kind__exact=group",),
    "chat_app.message": ("role=tool", "status=failed"),
    "chat_app.chatevent": ("type=participant.left",),
}
LISTS = {model._meta.label_lower: model for model in admin.site._registry}


def test_every_list_reads_few_rows(filled: FilledTables) -> None:
    client = Client()
    client.force_login(filled.root)
    found = {}
    for label, model in LISTS.items():
        if model._default_manager.count() < FEW:
            continue
        address = reverse(f"admin:{label.replace('.', '_')}_changelist")
        for query in ("", *RARE.get(label, ())):
            with counted() as cost:
                answer = client.get(f"{address}?{query}")
            assert answer.status_code == 200, (label, query)
            if cost.amount >= PAGE:
                found[f"{label}?{query}"] = str(cost)
    assert not found, "\n\n".join(f"{name}: {cost}" for name, cost in found.items())
