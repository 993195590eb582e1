"""Formats amounts of money for people: `format_amount`.

On the wire an amount is a decimal string alongside its currency (UAMP §7).
"""

from typing import Final

_SIGNS: Final = {"USD": "$"}


def format_amount(amount: str, currency: str) -> str:
    """Return a decimal string with its currency and at least two decimal places.

    Examples: "$0.02", "$5.1204", "3.00 CREDITS".
    """
    whole, _, places = amount.removeprefix("-").partition(".")
    minus = "\N{MINUS SIGN}" if amount.startswith("-") else ""
    number = f"{whole}.{places.rstrip('0').ljust(2, '0')}"
    sign = _SIGNS.get(currency)
    return f"{minus}{number} {currency}" if sign is None else f"{minus}{sign}{number}"
