"""The columns of the admin's lists, which fit a screen of 1,280 pixels."""

from __future__ import annotations

from typing import Final

import pytest
from django.contrib import admin
from django.test import RequestFactory

from agents_app.models import Agent
from tests import factories

MOST: Final = 7
WIDER: Final = {"sessions_app.AnswerHour"}
"""Sums by everything that distinguishes them, in short columns."""


@pytest.mark.django_db
def test_no_list_has_more_columns_than_fit_a_screen() -> None:
    request = RequestFactory().get("/admin/")
    request.user = factories.superuser()
    columns = {
        model._meta.label: len(page.get_list_display(request))
        for model, page in admin.site._registry.items()
    }
    assert {label for label, count in columns.items() if count > MOST} == WIDER


def test_the_price_of_an_agent_is_in_words() -> None:
    page = admin.site._registry[Agent]
    prices = {
        "free": {},
        "0.02 an answer, 0.01 for 1,000 output tokens": {
            "per_answer": "0.02",
            "output_per_1k": "0.01",
        },
        "1 priced tool": {"tools": {"search": "1"}},
    }
    for words, pricing in prices.items():
        assert page.price(Agent(pricing=pricing)) == words  # type: ignore[attr-defined] # a column
