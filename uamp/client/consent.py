"""The user's consent to payments, and to tool calls that need a person."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uamp.client.spending import SpendingPlan
    from uamp.events import PaymentRequired, ToolApprovalRequired

Agree = Callable[["PaymentRequired"], bool | Awaitable[bool]]
"""Decides whether to make a payment beyond the limit."""
Approve = Callable[["ToolApprovalRequired"], bool | Awaitable[bool]]
"""Decides whether an agent's tool call is allowed."""


class Consent:
    """A limit up to which payments are agreed to, and callbacks that decide the rest."""

    def __init__(
        self, spending: SpendingPlan, agree: Agree | None = None, approve: Approve | None = None
    ) -> None:
        self.spending = spending
        self._agree = agree
        self._approve = approve

    async def agrees(self, required: PaymentRequired) -> bool:
        """Return whether the client pays: within the limit, or because ``agree`` says so."""
        if self.spending.covers(required):
            self.spending.count(required)
            return True
        return self._agree is not None and await _answer(self._agree(required))

    async def approves(self, call: ToolApprovalRequired) -> bool | None:
        """Return whether a call is allowed; None leaves the decision to the people of the chat."""
        if self._approve is None:
            return None
        return await _answer(self._approve(call))


async def _answer(result: bool | Awaitable[bool]) -> bool:  # noqa: FBT001 what a callback returned
    return await result if inspect.isawaitable(result) else result
