"""Manual top-ups: a person asks, the money arrives some other way, an operator grants it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_app.money import ASSETS
from payments_app.top_ups.provider import ForeignHook, TopUpReport, TopUpStart

if TYPE_CHECKING:
    from collections.abc import Mapping

    from payments_app.money import Money


class ManualProvider:
    """The built-in provider: operators decide in the admin."""

    name = "manual"
    label = "Ask an operator"

    def currencies(self) -> tuple[str, ...]:
        """Return all currencies of the ledger."""
        return tuple(sorted(ASSETS))

    def check(self, amount: Money) -> None:
        """Accept every amount."""

    def start(self, request_id: str, amount: Money) -> TopUpStart:  # noqa: ARG002 required by the interface
        """Wait for an operator."""
        return TopUpStart()

    def hook(self, body: bytes, headers: Mapping[str, str]) -> TopUpReport | None:  # noqa: ARG002 required by the interface
        """Refuse: this provider has no webhook."""
        raise ForeignHook("Manual top-ups have no webhook.")
