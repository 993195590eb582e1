"""The interface of a provider of top-ups: where a person pays, and its webhook when they did.

A provider never credits. It returns what its webhook reported, once its origin is verified, and
`requests` credits that once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from payments_app.money import Money


class ProviderFailed(Exception):
    """The provider could not be asked, or refused; the message is for a person."""


class ForeignHook(Exception):
    """A call that the provider did not sign, or cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopUpStart:
    """Where a person pays (`url`, or nothing), and the provider's own id."""

    url: str = ""
    reference: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopUpReport:
    """The report of a provider on a request: the money is there (`paid`), or will not come."""

    request_id: str
    paid: bool
    reference: str
    amount: Money | None = None
    reason: str = ""


class TopUpProvider(Protocol):
    """One way to put money in; classes are named in UAMP_TOPUP_PROVIDERS."""

    name: str
    label: str

    def currencies(self) -> tuple[str, ...]:
        """Return the currencies that it takes."""
        ...

    def check(self, amount: Money) -> None:
        """Raise InvalidAmount for an amount that it cannot take."""
        ...

    def start(self, request_id: str, amount: Money) -> TopUpStart:
        """Begin a payment, the same one for the same request. Raises ProviderFailed."""
        ...

    def hook(self, body: bytes, headers: Mapping[str, str]) -> TopUpReport | None:
        """Return the report in a call of the provider, None without one. Raises ForeignHook."""
        ...
