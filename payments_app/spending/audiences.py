"""The agents that a payment token is for, by name on the wire and by id in its row.

A name is bound to the agent that has it when the token is issued or, if there was none, in the
transaction that first reserves money for an agent of that name. Looking a token up binds nothing.
Afterwards only that agent is paid, whatever it is called, and another agent that takes its old name
is not. Synchronous.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models.functions import Lower

from agents_app.models import Agent
from payments_app.ledger.outcomes import Authorization, HoldOutcome, LedgerError
from payments_app.models import PaymentToken

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from payments_app.ledger.captures import Refusal


class NotForAgent(LedgerError):
    """The token's name for the agent now means a different agent."""


def ids_of(names: Iterable[str]) -> dict[str, str]:
    """Return the ids of the agents that have these names now, by name; others are left out."""
    folded_names = {name: name.lower() for name in names}
    if not folded_names:
        return {}
    rows = Agent.objects.annotate(folded_name=Lower("name"))
    ids = dict(rows.filter(folded_name__in=folded_names.values()).values_list("folded_name", "pk"))
    return {name: ids[folded] for name, folded in folded_names.items() if folded in ids}


def is_for(
    audience: Collection[str], bound: Mapping[str, str], *, agent_id: str, name: str
) -> bool:
    """Return whether an agent is in a token's audience, where `bound` has the ids by name."""
    if not audience or agent_id in bound.values():
        return True
    return bool(_unbound(audience, bound, name))


def not_bound(requests: Sequence[Authorization]) -> list[str]:
    """Return the ids of paying tokens with an audience that is not known to mean the agent."""
    paying = {(request.account_id, request.agent_id) for request in requests if request.agent_id}
    rows = PaymentToken.objects.filter(account_id__in={account for account, _ in paying})
    means = {row.pk: (row.account_id, row.audience_ids.values()) for row in rows if row.audience}
    return [
        pk
        for pk, (account, agents) in means.items()
        if any(payer == account and agent not in agents for payer, agent in paying)
    ]


class Bindings:
    """The audiences of the tokens in a list of reservations, whose names may still be bound.

    Their rows are locked before any account, as when a token is revoked.
    """

    def __init__(self, requests: Sequence[Authorization], token_ids: Collection[str]) -> None:
        rows = PaymentToken.objects.select_for_update(no_key=True).filter(pk__in=token_ids)
        self._tokens = {row.account_id: row for row in rows.order_by("pk")}
        agents = Agent.objects.filter(pk__in={request.agent_id for request in requests})
        self._names = dict(agents.values_list("pk", "name"))

    def refusal(self, request: Authorization) -> NotForAgent | None:
        """Return the refusal of a reservation for an agent that the token is not for."""
        row = self._tokens.get(request.account_id)
        if row is None or not request.agent_id:
            return None
        name = self._names.get(request.agent_id, "")
        if is_for(row.audience, row.audience_ids, agent_id=request.agent_id, name=name):
            return None
        return NotForAgent("The payment token is for another agent.")

    def bind(self, request: Authorization, answer: HoldOutcome | Refusal) -> None:
        """Bind the name of an agent for which money was reserved."""
        row = self._tokens.get(request.account_id)
        if row is None or not request.agent_id or not isinstance(answer, HoldOutcome):
            return
        unbound = _unbound(row.audience, row.audience_ids, self._names.get(request.agent_id, ""))
        if unbound and request.agent_id not in row.audience_ids.values():
            row.audience_ids.update(dict.fromkeys(unbound, request.agent_id))
            row.save(update_fields=["audience_ids"])


def _unbound(audience: Collection[str], bound: Mapping[str, str], name: str) -> list[str]:
    folded = name.lower()
    return [entry for entry in audience if entry.lower() == folded and entry not in bound]
