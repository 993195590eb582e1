"""The page on one's money: a shell without figures, for those who are signed in."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client

from payments_app import services as ledger
from payments_app.money import Money
from tests import factories

pytestmark = pytest.mark.django_db


def test_the_money_page_is_for_those_who_are_signed_in() -> None:
    answer = Client().get("/money")
    assert (answer.status_code, answer["Location"]) == (302, "/login?next=/money")


def test_the_money_page_says_who_is_signed_in_and_carries_no_figure() -> None:
    ada = factories.user("ada")
    ledger.top_up(
        key="k",
        account=ledger.account_of_user(ada.pk).id,
        amount=Money.parse("12.345"),
        provider="tests",
        external_id="1",
    )
    client = Client()
    client.force_login(ada)
    answer = client.get("/money")
    page = answer.content.decode()
    start_data = re.search(r'id="start" type="application/json">(.*?)</script>', page)
    assert start_data is not None
    assert json.loads(start_data[1])["me"]["username"] == "ada"
    assert "12.345" not in page
    assert "style=" not in page
    assert answer.headers["Cache-Control"].count("no-store") == 1
