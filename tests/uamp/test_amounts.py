"""Amounts as people read them."""

import pytest

from uamp.amounts import format_amount


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        ("0.02", "USD", "$0.02"),
        ("12", "USD", "$12.00"),
        ("5.12040", "USD", "$5.1204"),
        ("-1.5", "USD", "\N{MINUS SIGN}$1.50"),
        ("3", "CREDITS", "3.00 CREDITS"),
    ],
)
def test_an_amount_is_shown_as_the_browser_shows_it(amount: str, currency: str, text: str) -> None:
    assert format_amount(amount, currency) == text
