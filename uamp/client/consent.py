"""Consent of a client's user: payments, and tool calls of agents that need a person."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uamp.client.spending import SpendingPlan
    from uamp.events import PaymentRequired, ToolApprovalRequired

Agree = Callable[["PaymentRequired"], bool | Awaitable[bool]]
"""Asked for a payment beyond the limit: whether to pay it."""
Approve = Callable[["ToolApprovalRequired"], bool | Awaitable[bool]]
"""Asked for a tool call of an agent: whether it is allowed."""


class Consent:
    """A limit up to which payments are agreed to, and functions that are asked for the rest."""

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
        """Return whether a call is allowed; None leaves it to the people of the chat."""
        if self._approve is None:
            return None
        return await _answer(self._approve(call))


async def _answer(given: bool | Awaitable[bool]) -> bool:  # noqa: FBT001 what a callback returned
    return await given if inspect.isawaitable(given) else given
