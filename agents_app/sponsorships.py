"""Sponsoring: an agent's owner pays for its answers to others, within a budget of their own.

It is off until the owner themselves turns it on, and ends when the agent gets another owner: an
owner sponsors by their own act only. Budgets are decimal strings in the currency of prices; the
ledger counts what is used of them where it reserves.
"""

from collections.abc import Collection, Mapping

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, QuerySet

from agents_app.models import Agent, BudgetPeriod, Sponsorship


class NotTheOwner(Exception):
    """Only the owner of an agent may sponsor it."""


def sponsors_of(agent_ids: Collection[str]) -> dict[str, int]:
    """Return the user ids of the sponsors of those of these agents that have one."""
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
    """Sponsor an agent with these budgets, by period, in the place of those before; none ends it.

    Raises NotTheOwner. The amounts were checked: decimal strings of more than nothing.
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
