"""Refusal of turns that need payment, for edges without the headers of x402."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_app import x402
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from agents_app.selectors import AgentSpec
    from payments_app.money import Money
    from sessions_app.billing.payers import Source
    from sessions_app.records import OpenSession


async def refuse_unpaid(session: OpenSession, spec: AgentSpec, amount: Money) -> Source:
    """Raise RemoteProtocolError payment_required, with the requirements in its details (x402)."""
    del session
    body = x402.requirements(
        amount,
        resource_url=f"urn:uamp:agent:{spec.name}",
        description=spec.description or f"An answer of {spec.name}",
        agent=spec.name,
    )
    raise RemoteProtocolError(
        ErrorCode.PAYMENT_REQUIRED, "Payment is required first.", details={"payment": body}
    )
