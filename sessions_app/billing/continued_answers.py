"""The price of an answer that continues after its client's tools: it is charged once.

In protocols without a wait for `tool.result`, an answer ends at a call to a client tool, and the
next request brings the result. Together these responses are one answer: the first one pays the
price of an answer, and each of them its tokens and tools. Synchronous.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from django.db.models import Q

import uamp
from sessions_app.access.principal import PrincipalKind
from sessions_app.models import Response, ToolCall, ToolCallKind
from uamp import ResponseState

if TYPE_CHECKING:
    from agents_app.selectors import AgentSpec
    from sessions_app.access.principal import Principal
    from sessions_app.billing.repeated_conversations import ReturnedCall


class AlreadyContinued(ValueError):
    """Another response has begun to continue the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuedAnswer:
    """An answer that waits for its client: `call` is the row of a call that ended it.

    `rounds` counts the responses before the one that continues it, `claimed_by` is one that tried
    to and delivered nothing.
    """

    call: int
    rounds: int
    claimed_by: str

    def priced(self, spec: AgentSpec) -> AgentSpec:
        """Return the agent without its price per answer, which the answer has paid."""
        pricing = msgspec.structs.replace(spec.pricing, per_answer="0")
        return msgspec.structs.replace(spec, pricing=pricing)


def continued_answer(
    returned: ReturnedCall, principal: Principal, *, agent_id: str, limit: int
) -> ContinuedAnswer | None:
    """Return the answer that the result of a call continues; None if a new one begins.

    An answer is continued once at each of its ends, by the one who asked for it, by a request that
    repeats its conversation, and has at most `limit` responses. A visitor has no identity, so for
    visitors the id of the call counts, which this server generated.
    """
    asker = Q(response__session__principal=principal.key)
    if principal.is_visitor:
        asker = Q(response__session__principal__startswith=PrincipalKind.VISITOR.prefix)
    call = (
        ToolCall.objects.filter(
            asker,
            call_id=returned.call_id,
            kind=ToolCallKind.CLIENT,
            response__agent_id=agent_id,
            response__status=ResponseState.COMPLETED,
            response__request__ends_at_tools=True,
        )
        .select_related("response")
        .order_by("-id")
        .first()
    )
    if call is None:
        return None
    output = msgspec.convert(call.response.output, tuple[uamp.ContentItem, ...])
    if not returned.continues(call.response.request, output):
        return None
    rounds = int(call.response.request.get("rounds", 0)) + 1
    first = _first_call(call.response_id)
    if rounds >= limit or (first.continued_by and _has_delivered(first.continued_by)):
        return None
    return ContinuedAnswer(call=first.pk, rounds=rounds, claimed_by=first.continued_by)


def claim(answer: ContinuedAnswer, response_id: str) -> None:
    """Have a response continue an answer, in the transaction that writes the response.

    Raises AlreadyContinued if another one has begun to.
    """
    free = ToolCall.objects.filter(pk=answer.call, continued_by=answer.claimed_by)
    if not free.update(continued_by=response_id):
        raise AlreadyContinued(answer.call)


def _first_call(response_id: str) -> ToolCall:
    """Return the call whose row records which response continues the answer."""
    calls = ToolCall.objects.filter(response_id=response_id, kind=ToolCallKind.CLIENT)
    return calls.order_by("id")[0]


def _has_delivered(response_id: str) -> bool:
    """Return whether a response runs or has delivered something; a deleted one counts, too."""
    row = Response.objects.filter(pk=response_id).only("status", "text", "output").first()
    without = {ResponseState.FAILED, ResponseState.CANCELLED}
    return row is None or row.status not in without or bool(row.text or row.output)
