"""The interface of a top-up provider: where a person pays, and the webhook that follows.

A provider never credits. It returns the verified report of its webhook, and `requests` credits it
once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from payments_app.money import Money


class ProviderFailed(Exception):
    """The provider could not be reached, or refused; the message is for a person."""


class ForeignHook(Exception):
    """The call was not signed by the provider, or cannot be parsed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopUpStart:
    """The page where a person pays (`url`, or nothing), and the provider's own id."""

    url: str = ""
    reference: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopUpReport:
    """A provider's report on a request: the money has arrived (`paid`), or will not arrive."""

    request_id: str
    paid: bool
    reference: str
    amount: Money | None = None
    reason: str = ""


class TopUpProvider(Protocol):
    """One way to pay money in; the setting UAMP_TOPUP_PROVIDERS names the classes."""

    name: str
    label: str

    def currencies(self) -> tuple[str, ...]:
        """Return the currencies that it accepts."""
        ...

    def check(self, amount: Money) -> None:
        """Raise InvalidAmount for an amount that it does not accept."""
        ...

    def start(self, request_id: str, amount: Money) -> TopUpStart:
        """Start a payment, idempotent per request. Raises ProviderFailed."""
        ...

    def hook(self, body: bytes, headers: Mapping[str, str]) -> TopUpReport | None:
        """Return the report in a webhook call; None if it has none. Raises ForeignHook."""
        ...
