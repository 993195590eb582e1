"""Numbers in the formats of many countries: 1,234.50, 1.234,50, $5.00, 5 %, (12), 12-."""

import math
import re
import unicodedata
from collections.abc import Sequence

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
# Around the digits: a currency by sign or code, or a percentage.
_CODES = (
    "AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|INR|JPY|KRW|MXN|NOK|NZD|PLN|RUB|SEK|TRY|USD|ZAR"
)
_UNIT = (
    rf"(?P<{{0}}>[A-Z]{{{{0,2}}}}\$|[€£¥₹₩₽₺₫฿₴₦₱₪¢%‰]|{_CODES}|kr|zł|Kč|Ft|元|円|원|Rs\.?|S/\.?)?"
)
_VALUE = re.compile(
    rf"(?P<paren>\()?(?P<sign>[+-])?\s?{_UNIT.format('before')}\s?(?P<minus>-)?"
    rf"(?P<digits>\d[\d.,\s'’]*|[.,]\d+)\s?{_UNIT.format('after')}(?P<last>-)?"  # noqa: RUF001
    r"(?(paren)\))",
    re.ASCII,
)
_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-", "’": "'"})  # noqa: RUF001
_GROUPED_POINT = re.compile(r"(?:[1-9]\d{0,2}(?:(?P<g>[, '])\d{3})(?:(?P=g)\d{3})*|\d*)(?:\.\d*)?")
_GROUPED_COMMA = re.compile(r"(?:[1-9]\d{0,2}(?:(?P<g>[. '])\d{3})(?:(?P=g)\d{3})*|\d*)(?:,\d*)?")
_LAKHS = re.compile(r"[1-9]\d?(?:,\d{2})*,\d{3}(?:\.\d*)?")
_CLEARLY_COMMA = re.compile(r"\d(?:[. ']\d{3})+,\d")


def numbers_of(values: Sequence[str], *, delimiter: str) -> tuple[float, ...]:
    """Parse all values of a column as numbers; return () if one of them is not a number.

    A column has one unit and one decimal separator. A comma that separates values is not a decimal
    separator unless another character groups the digits; with semicolons between the values, a
    comma is taken as the decimal separator first.
    """
    if all(_NUMBER.fullmatch(value) for value in values):
        return _finite([float(value) for value in values])
    parts = []
    units = set()
    for value in values:
        match = _VALUE.fullmatch(unicodedata.normalize("NFKC", value.translate(_SPACES)))
        if match is None or (match["before"] and match["after"]):
            return ()
        units.add((match["before"] or match["after"] or "").rstrip("."))
        if match["last"] and (match["paren"] or match["sign"] or match["minus"]):
            return ()
        is_negative = match["paren"] or "-" in {match["sign"], match["minus"], match["last"]}
        parts.append((-1 if is_negative else 1, match["digits"].strip()))
    if len(units - {""}) > 1:
        return ()
    digits = [text for _, text in parts]
    is_comma = delimiter != "," or any(_CLEARLY_COMMA.search(text) for text in digits)
    for comma in (True, False) if is_comma else (False,):
        if all(_is_grouped(text, comma=comma) for text in digits):
            return _finite([sign * _float(text, comma=comma) for sign, text in parts])
    return ()


def _is_grouped(text: str, *, comma: bool) -> bool:
    if comma:
        return _GROUPED_COMMA.fullmatch(text) is not None
    return _GROUPED_POINT.fullmatch(text) is not None or _LAKHS.fullmatch(text) is not None


def _float(text: str, *, comma: bool) -> float:
    plain = text.replace(".", "").replace(",", ".") if comma else text.replace(",", "")
    return float(plain.replace(" ", "").replace("'", ""))


def _finite(numbers: list[float]) -> tuple[float, ...]:
    """Return the numbers if all of them are finite, else ()."""
    return tuple(numbers) if all(map(math.isfinite, numbers)) else ()
