"""Every list of the admin among 100,000 rows: the first page, and filters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from tests.growth.admin_lists import PAGE, address_of, grown_lists
from tests.growth.costs import counted

if TYPE_CHECKING:
    from tests.growth.rows import FilledTables

pytestmark = [
    pytest.mark.long,
    pytest.mark.postgres,
    pytest.mark.django_db,
    pytest.mark.timeout(600),
]


def test_every_list_reads_few_rows(filled: FilledTables) -> None:
    client = Client()
    client.force_login(filled.root)
    found = {}
    for label, query in grown_lists():
        with counted() as cost:
            answer = client.get(address_of(label, query))
        assert answer.status_code == 200, (label, query)
        if cost.amount >= PAGE:
            found[f"{label}?{query}"] = str(cost)
    assert not found, "\n\n".join(f"{name}: {cost}" for name, cost in found.items())


def test_time_lines_read_few_rows(filled: FilledTables) -> None:
    client = Client()
    client.force_login(filled.root)
    chat = reverse("admin:sessions_app_chat_timeline", args=[quote(filled.chat.pk)])
    middle = filled.chat.responses.order_by("created_at")[1_000]
    of_response = reverse("admin:sessions_app_response_timeline", args=[quote(middle.pk)])
    found = {}
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
            found[address] = str(cost)
    assert not found, "\n\n".join(f"{name}: {cost}" for name, cost in found.items())
