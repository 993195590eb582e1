"""Amounts: integers in the smallest unit of an asset, decimal strings at the edges.

Never a float. A decimal string becomes an integer by shifting its digits, and an amount with more
digits than its asset is refused, not rounded. Amounts of two assets are never added or compared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import Final

MAX_DIGITS: Final = 18
"""Digits of an amount in smallest units: 18 always fit into a signed 64-bit column."""

LARGEST: Final = 10**MAX_DIGITS - 1
"""The largest amount and balance: two of them still add up within 64 bits."""
# ASCII on purpose: \d would also take the digits of other scripts.
_DECIMAL: Final = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?", re.ASCII)


class InvalidAmount(ValueError):
    """The value is not an amount of its asset; the message gives the reason, for a person."""


class AssetMismatch(ValueError):
    """Amounts of two different assets were combined."""


@dataclass(frozen=True, slots=True)
class Asset:
    """A currency: `scale` is the number of decimal places of its smallest unit."""

    code: str
    scale: int


ASSETS: Final = {
    asset.code: asset for asset in (Asset("USD", 9), Asset("USDC", 6), Asset("CREDITS", 9))
}
DEFAULT_ASSET: Final = "USD"


def asset_named(code: str) -> Asset:
    """Return an asset; raises InvalidAmount if this ledger does not have it."""
    try:
        return ASSETS[code]
    except KeyError:
        raise InvalidAmount(f"Unknown asset {code[:20]!r}.") from None


@total_ordering
@dataclass(frozen=True, slots=True)
class Money:
    """`amount` smallest units of an asset: Money(10_000_000, "USD") is one cent.

    Raises InvalidAmount for anything but a whole number of at most 18 digits and a known asset;
    AssetMismatch when combined with another asset.
    """

    amount: int
    asset: str = DEFAULT_ASSET

    def __post_init__(self) -> None:
        if type(self.amount) is not int:
            raise InvalidAmount("An amount must be a whole number of smallest units.")
        if not -LARGEST <= self.amount <= LARGEST:
            raise InvalidAmount(f"An amount may have at most {MAX_DIGITS} digits.")
        asset_named(self.asset)

    @classmethod
    def zero(cls, asset: str = DEFAULT_ASSET) -> Money:
        """Return a zero amount of an asset."""
        return cls(0, asset)

    @classmethod
    def capped(cls, amount: int, asset: str = DEFAULT_ASSET) -> Money:
        """Return a sum over rows, or the largest amount if it exceeds that, for a report."""
        return cls(max(-LARGEST, min(amount, LARGEST)), asset)

    @classmethod
    def parse(cls, text: str, asset: str = DEFAULT_ASSET, *, signed: bool = False) -> Money:
        """Parse a decimal string: "0.01" or "12"; "-3" only if `signed`.

        Raises InvalidAmount for everything else: exponents, signs, blanks, underscores, digits of
        other scripts, a bare point, more places than the asset has, more than 18 digits.
        """
        scale = asset_named(asset).scale
        match = _DECIMAL.fullmatch(text)
        if match is None:
            raise InvalidAmount(
                'Write the amount with digits and a decimal point, such as "12.50".'
            )
        sign, whole, places = match[1], match[2], match[3] or ""
        if sign and not signed:
            raise InvalidAmount("An amount must not have a sign.")
        if len(whole) + len(places) > MAX_DIGITS:
            raise InvalidAmount(f"An amount may have at most {MAX_DIGITS} digits.")
        if len(places) > scale:
            raise InvalidAmount(f"{asset} has {scale} decimal places.")
        amount = int(whole + places.ljust(scale, "0"))
        return cls(-amount if sign else amount, asset)

    def share(self, part: int, whole: int) -> Money:
        """Return part/whole of this, rounded half to even: the one place where money is rounded."""
        if part < 0 or whole <= 0:
            raise InvalidAmount("A share must be part of a positive whole.")
        quotient, rest = divmod(self.amount * part, whole)
        if 2 * rest > whole or (2 * rest == whole and quotient % 2):
            quotient += 1
        return Money(quotient, self.asset)

    def __str__(self) -> str:
        scale = ASSETS[self.asset].scale
        digits = str(abs(self.amount)).rjust(scale + 1, "0")
        whole, places = digits[:-scale], digits[-scale:].rstrip("0")
        sign = "-" if self.amount < 0 else ""
        return f"{sign}{whole}.{places}" if places else f"{sign}{whole}"

    def __add__(self, other: Money) -> Money:
        return Money(self.amount + self._same(other), self.asset)

    def __sub__(self, other: Money) -> Money:
        return Money(self.amount - self._same(other), self.asset)

    def __neg__(self) -> Money:
        return Money(-self.amount, self.asset)

    def __mul__(self, times: int) -> Money:
        if type(times) is not int:
            raise InvalidAmount("Money can only be multiplied by whole numbers; see Money.share.")
        return Money(self.amount * times, self.asset)

    __rmul__ = __mul__

    def __lt__(self, other: Money) -> bool:
        return self.amount < self._same(other)

    def __bool__(self) -> bool:
        return self.amount != 0

    def _same(self, other: Money) -> int:
        if not isinstance(other, Money):
            raise InvalidAmount("Money can only be added to and compared with money.")
        if other.asset != self.asset:
            raise AssetMismatch(f"{self.asset} and {other.asset} do not mix.")
        return other.amount
