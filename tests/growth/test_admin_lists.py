"""Every list of the admin among 100,000 rows: the first page, and filters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from audit_app.admin.column_search import COUNTED_ROWS
from tests.growth.admin_lists import PAGE, WINDOW, address_of, grown_lists
from tests.growth.bulk_rows import ROWS
from tests.growth.costs import counted

if TYPE_CHECKING:
    from tests.growth.bulk_rows import FilledTables

pytestmark = [
    pytest.mark.long,
    pytest.mark.postgres,
    pytest.mark.django_db,
    pytest.mark.timeout(600),
]


@pytest.mark.parametrize(
    ("label", "query"),
    [
        ("chat_app.message", "role=tool"),
        ("chat_app.chatevent", "type=message.read"),
        ("payments_app.transfer", "asset=CREDITS"),
        ("payments_app.hold", "state=active"),
    ],
)
def test_a_search_further_back_reads_one_window(
    label: str, query: str, filled: FilledTables
) -> None:
    client = Client()
    client.force_login(filled.root)
    places, address = 0, address_of(label, query)
    while address:
        with counted() as cost:
            answer = client.get(address)
        assert answer.status_code == 200, address
        # Near the oldest row, PostgreSQL reads and sorts what is left instead.
        assert cost.amount < WINDOW + 2 * COUNTED_ROWS, f"{address} {cost}"
        further = answer.context["cl"].further
        address = address_of(label, further.removeprefix("?")) if further else ""
        places += 1
    assert places >= ROWS // COUNTED_ROWS


def test_every_list_reads_few_rows(filled: FilledTables) -> None:
    client = Client()
    client.force_login(filled.root)
    high_costs = {}
    for label, query in grown_lists():
        with counted() as cost:
            answer = client.get(address_of(label, query))
        assert answer.status_code == 200, (label, query)
        if cost.amount >= (WINDOW if answer.context["cl"].examined else PAGE):
            high_costs[f"{label}?{query}"] = str(cost)
    assert not high_costs, "\n\n".join(f"{name}: {cost}" for name, cost in high_costs.items())


def test_time_lines_read_few_rows(filled: FilledTables) -> None:
    client = Client()
    client.force_login(filled.root)
    chat = reverse("admin:sessions_app_chat_timeline", args=[quote(filled.chat.pk)])
    middle = filled.chat.responses.order_by("created_at")[1_000]
    of_response = reverse("admin:sessions_app_response_timeline", args=[quote(middle.pk)])
    high_costs = {}
    for address in (
        chat,
        f"{chat}?at={filled.chat.last_seq // 2}&texts=1",
        f"{chat}?who=user:{filled.newcomer.pk}",
        f"{chat}tail/",
        of_response,
    ):
        with counted() as cost:
            answer = client.get(address)
        assert answer.status_code == 200, address
        if cost.amount >= PAGE:
            high_costs[address] = str(cost)
    assert not high_costs, "\n\n".join(f"{name}: {cost}" for name, cost in high_costs.items())
