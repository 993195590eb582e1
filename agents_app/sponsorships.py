"""Sponsoring: an agent's owner pays for its answers to others, up to a budget.

Sponsoring is off until the owner turns it on, and ends when the agent changes hands: only owners
themselves can commit to it. Budgets are decimal strings in the currency of the agent's prices; the
ledger counts their use when it reserves money.
"""

from collections.abc import Collection, Mapping

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, QuerySet

from agents_app.models import Agent, BudgetPeriod, Sponsorship


class NotTheOwner(Exception):
    """Only the owner of an agent may sponsor it."""


def sponsors_of(agent_ids: Collection[str]) -> dict[str, int]:
    """Return the sponsors' user ids by agent, for those agents that have a sponsor."""
    rows = _standing().filter(agent_id__in=agent_ids).values_list("agent_id", "user_id")
    return dict(rows.distinct())


def budgets_of(agent_id: str) -> dict[str, str]:
    """Return the budgets of an agent's sponsor by period: day, week, month or total."""
    rows = _standing().filter(agent_id=agent_id)
    return {row.period: row.amount for row in rows.order_by("period")}


def sponsored_by(user_id: int) -> list[Agent]:
    """Return the agents that a person sponsors, by name."""
    mine = Agent.objects.filter(owner_id=user_id, sponsorships__user_id=user_id)
    return list(mine.distinct().order_by("name"))


@transaction.atomic
def sponsor(agent_id: str, by: User, budgets: Mapping[str, str]) -> None:
    """Set the budgets of an agent's sponsor by period, replacing earlier ones; none ends it.

    Raises NotTheOwner. The amounts must already be checked: positive decimal strings.
    """
    agent = Agent.objects.select_for_update(no_key=True).filter(pk=agent_id, owner=by).first()
    if agent is None:
        raise NotTheOwner(agent_id)
    Sponsorship.objects.filter(agent=agent).delete()
    Sponsorship.objects.bulk_create(
        Sponsorship(agent=agent, user=by, period=BudgetPeriod(period), amount=amount)
        for period, amount in budgets.items()
    )


def _standing() -> QuerySet[Sponsorship]:
    return Sponsorship.objects.filter(agent__owner_id=F("user_id"), user__is_active=True)
