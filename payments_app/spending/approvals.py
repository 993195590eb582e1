"""Approvals: the amount that an agent may charge for each answer without asking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from payments_app.ledger import balances, sql
from payments_app.models import Approval
from payments_app.money import Money

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """The amount that a person lets an agent charge for each answer."""

    agent_id: str
    up_to: Money
    created_at: datetime


# --- Approve ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Consent given in advance: what an agent may charge unasked, and whether limits are set."""

    up_to: Money | None
    has_limits: bool


def standing(pairs: Collection[tuple[int, str]]) -> dict[tuple[int, str], Standing]:
    """Return people's standing consent to agents, for each (user_id, agent_id)."""
    if not pairs:
        return {}
    users = sorted({user_id for user_id, _ in pairs})
    agents = sorted({agent_id for _, agent_id in pairs})
    of_users, of_agents = (", ".join(["%s"] * len(names)) for names in (users, agents))
    rows = sql.rows(
        "SELECT user_id, agent_id, up_to, asset FROM payments_app_approval"  # noqa: S608 placeholders only
        f" WHERE user_id IN ({of_users}) AND agent_id IN ({of_agents})"
        " UNION ALL SELECT DISTINCT user_id, '', 0, '' FROM payments_app_spendinglimit"
        f" WHERE user_id IN ({of_users})",
        [*users, *agents, *users],
    )
    up_to = {(user, agent): Money(amount, asset) for user, agent, amount, asset in rows if agent}
    limited = {user for user, agent, _, _ in rows if not agent}
    return {pair: Standing(up_to=up_to.get(pair), has_limits=pair[0] in limited) for pair in pairs}


def approve(user_id: int, agent_id: str, up_to: Money) -> None:
    """Let an agent charge up to an amount for each answer, replacing any earlier approval."""
    balances.positive(up_to)
    Approval.objects.update_or_create(
        user_id=user_id,
        agent_id=agent_id,
        defaults={"up_to": up_to.amount, "asset": up_to.asset},
    )


def withdraw(user_id: int, agent_id: str) -> bool:
    """Withdraw an approval, so that the agent asks again; return whether there was one."""
    deleted, _ = Approval.objects.filter(user_id=user_id, agent_id=agent_id).delete()
    return deleted > 0


def approvals_of(user_id: int) -> list[Approved]:
    """Return the amounts that a person lets agents charge, by agent."""
    return [
        Approved(
            agent_id=row.agent_id, up_to=Money(row.up_to, row.asset), created_at=row.created_at
        )
        for row in Approval.objects.filter(user_id=user_id).order_by("agent_id")
    ]
