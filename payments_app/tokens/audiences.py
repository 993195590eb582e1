"""The agents that a payment token is for, by name on the wire and by id in its row.

A name is bound to the agent that has it when the token is issued or, if there was none, when the
first agent of that name is paid. Afterwards only that agent is paid, whatever it is called, and
another agent that takes its old name is not. Synchronous.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models.functions import Lower

from agents_app.models import Agent
from payments_app.models import PaymentToken

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


def ids_of(names: Iterable[str]) -> dict[str, str]:
    """Return the ids of the agents that have these names now, by name; others are left out."""
    wanted = {name: name.lower() for name in names}
    if not wanted:
        return {}
    rows = Agent.objects.annotate(folded_name=Lower("name"))
    known = dict(rows.filter(folded_name__in=wanted.values()).values_list("folded_name", "pk"))
    return {name: known[folded] for name, folded in wanted.items() if folded in known}


def is_for(
    audience: Collection[str], bound: Mapping[str, str], *, agent_id: str, name: str
) -> bool:
    """Return whether an agent is in a token's audience, where `bound` has the ids by name."""
    if not audience or agent_id in bound.values():
        return True
    return bool(_unbound(audience, bound, name))


@transaction.atomic
def bind(token_id: str, *, agent_id: str, name: str) -> bool:
    """Bind the name of an agent that a token pays; return False if it is bound to another one."""
    row = PaymentToken.objects.select_for_update(no_key=True).get(pk=token_id)
    if not is_for(row.audience, row.audience_ids, agent_id=agent_id, name=name):
        return False
    unbound = _unbound(row.audience, row.audience_ids, name)
    if unbound and agent_id not in row.audience_ids.values():
        row.audience_ids.update(dict.fromkeys(unbound, agent_id))
        row.save(update_fields=["audience_ids"])
    return True


def _unbound(audience: Collection[str], bound: Mapping[str, str], name: str) -> list[str]:
    folded = name.lower()
    return [one for one in audience if one.lower() == folded and one not in bound]
