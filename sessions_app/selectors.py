"""Reads of sessions, responses and tool calls. Synchronous."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from django.db.models import Exists, OuterRef, Q

import uamp
from agents_app import selectors as agents
from chat_app.log.deletions import deleted_answers
from chat_app.members import membership
from chat_app.row_counts import CountOf
from payments_app import selectors as ledger_rows
from sessions_app.access.principal import PrincipalKind
from sessions_app.models import (
    InboundEvent,
    PaymentRequest,
    Response,
    Session,
    ToolCall,
    ToolCallKind,
)
from sessions_app.records import OpenSession, ParentCall
from sessions_app.states import PaymentState, ToolCallState
from uamp import ResponseState, SessionState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django.db.models import QuerySet

    from sessions_app.access.principal import Principal


@dataclass(frozen=True, slots=True)
class RunningResponse:
    """An unfinished response, as of its last flush."""

    id: str
    agent: str
    text: str
    thinking: str
    transport: str


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredOutput:
    """The stored output of an ended response, with the calls sent to its client."""

    output: Sequence[uamp.ContentItem]
    client_calls: Sequence[ToolCall]
    ends_at_tools: bool


@dataclass(frozen=True, slots=True)
class EventOutcome:
    """The message and the responses that resulted from a client event."""

    message_id: str | None
    response_ids: tuple[str, ...]


def sessions_named(wire_id: str, principal: Principal) -> QuerySet[Session]:
    """Return the principal's sessions with a given id on the wire."""
    return Session.objects.filter(
        Q(pk=wire_id, client_id="", principal=principal.key)
        | Q(client_id=wire_id, principal=principal.key)
    )


def find_session(wire_id: str, principal: Principal) -> OpenSession | None:
    """Return an open session of the principal; None for unknown, ended and foreign ones alike."""
    row = (
        sessions_named(wire_id, principal)
        .select_related("chat", "agent")
        .filter(status__in=Session.OPEN)
        .first()
    )
    return None if row is None else open_session_of(row, principal)


def was_closed(wire_id: str, principal: Principal) -> bool:
    """Return whether the principal's session with this id on the wire has ended."""
    return sessions_named(wire_id, principal).filter(status=SessionState.CLOSED).exists()


def open_session_of(
    row: Session, principal: Principal, *, agent_name: str | None = None
) -> OpenSession:
    """Convert a session row for a connection; reads the agent's name unless it is given."""
    capabilities = row.client_capabilities
    if agent_name is None and row.agent is not None:
        agent_name = row.agent.name
    return OpenSession(
        id=row.pk,
        wire_id=row.wire_id,
        principal=principal,
        chat_id=row.chat_id,
        chat_kind=row.chat.kind,
        home=row.chat.home,
        chat_scoped=row.chat_scoped,
        epoch=row.chat.epoch,
        last_seq=row.chat.last_seq,
        opened_seq=row.opened_seq,
        agent_id=row.agent_id,
        agent_name=agent_name,
        config=msgspec.convert(row.config, uamp.SessionConfig),
        created_at=row.created_at,
        transport=row.transport,
        parent=parent_of(row),
        payment_token_id="" if principal.is_visitor else row.payment_token_id,
        ephemeral=row.ephemeral,
        client_capabilities=(
            None if capabilities is None else msgspec.convert(capabilities, uamp.Capabilities)
        ),
    )


def session_on_behalf(asking: Response, row: Session, principal: Principal) -> OpenSession:
    """Convert a session for work that a response causes, with the token that pays for it.

    A visitor's session stores no token, so there it is the one that this response last got.
    """
    session = open_session_of(row, principal)
    if principal.is_visitor:
        paid = PaymentRequest.objects.filter(response_id=asking.pk, status=PaymentState.PAID)
        last = paid.exclude(token_id="").order_by("-number").values_list("token_id", flat=True)
        session.payment_token_id = last.first() or str(asking.request.get("payment_token", ""))
    return session


def parent_of(row: Session) -> ParentCall | None:
    """Return the call that a session works for, if any."""
    call = row.parent_call
    if call is None:
        return None
    return ParentCall(
        pk=call.pk, response_id=call.response_id, asked_in=root_response(call.response).chat_id
    )


def root_response(response: Response) -> Response:
    """Return the response at the top of a chain of delegations, or the response itself."""
    while (session := response.session) is not None and session.parent_call is not None:
        response = session.parent_call.response
    return response


def delegated_responses(response_ids: Iterable[str]) -> dict[str, list[Response]]:
    """Return the responses delegated by each given response, at any depth, oldest first."""
    first_of = {response_id: response_id for response_id in response_ids}
    by_first: dict[str, list[Response]] = {}
    level = list(first_of)
    while level:
        # One query per table: a join would scan all rows of one of them.
        made = dict(ToolCall.objects.filter(response_id__in=level).values_list("pk", "response_id"))
        sessions = Session.objects.filter(parent_call_id__in=list(made))
        passed_on_by = {
            session_id: made[call_id]
            for session_id, call_id in sessions.values_list("pk", "parent_call_id")
        }
        calls = ToolCall.objects.filter(response=OuterRef("pk"))
        rows = (
            Response.objects.filter(session_id__in=list(passed_on_by))
            .annotate(calls=CountOf(calls.order_by().values("pk")))
            .select_related("agent")
            .order_by("created_at")
        )
        level = []
        for row in rows:
            first_of[row.pk] = first_of[passed_on_by[row.session_id or ""]]
            by_first.setdefault(first_of[row.pk], []).append(row)
            level.append(row.pk)
    return by_first


def anonymous_session_principal(session_id: str) -> str | None:
    """Return the principal key of an anonymous session, whose unguessable id is its credential."""
    return (
        Session.objects.filter(
            pk=session_id,
            principal__startswith=PrincipalKind.VISITOR.prefix,
            status__in=Session.OPEN,
        )
        .values_list("principal", flat=True)
        .first()
    )


def running_responses(chat_id: str) -> list[RunningResponse]:
    """Return a chat's unfinished responses, oldest first."""
    rows = (
        Response.objects.filter(chat_id=chat_id, finished_at__isnull=True)
        .order_by("created_at")
        .values_list("id", "agent__name", "text", "output", "session__transport")
    )
    return [
        RunningResponse(response_id, agent, text, thinking_of(output), transport or "")
        for response_id, agent, text, output, transport in rows
    ]


def thinking_of(output: list[dict[str, Any]]) -> str:
    """Return the thinking in an output, joined."""
    return "\n\n".join(item["thinking"] for item in output if item["type"] == "thinking")


def ended_sessions(session_ids: Iterable[str]) -> list[str]:
    """Filter sessions to those ended elsewhere, by their owner or an operator."""
    return list(
        Session.objects.filter(pk__in=list(session_ids), status=SessionState.CLOSED).values_list(
            "pk", flat=True
        )
    )


def response_ids_of(session_id: str, *, live_only: bool = False) -> list[str]:
    """Return the responses that a session requested, oldest first."""
    rows = Response.objects.filter(session_id=session_id)
    if live_only:
        rows = rows.filter(finished_at__isnull=True)
    return list(rows.order_by("created_at").values_list("id", flat=True))


def output_so_far(response_id: str) -> list[Any]:
    """Return a response's output as of its last flush."""
    return list(Response.objects.values_list("output", flat=True).get(pk=response_id))


def outcome_of(session_id: str, event_id: str) -> EventOutcome | None:
    """Return the outcome of a session's client event; None if the event was not accepted."""
    outcome: dict[str, Any] | None = (
        InboundEvent.objects.filter(session_id=session_id, event_id=event_id)
        .values_list("outcome", flat=True)
        .first()
    )
    if outcome is None:
        return None
    return EventOutcome(outcome["message_id"], tuple(outcome["response_ids"]))


def responses_started_by(session_id: str, event_id: str) -> list[str]:
    """Return the responses that a session's client event started."""
    outcome = outcome_of(session_id, event_id)
    return [] if outcome is None else list(outcome.response_ids)


def stored_outputs(response_ids: Iterable[str]) -> dict[str, StoredOutput]:
    """Return the stored outputs of ended responses, by id.

    A deleted answer has no output.
    """
    withheld = deleted_answers(response_ids := list(response_ids))
    rows = Response.objects.filter(pk__in=response_ids, finished_at__isnull=False)
    calls: dict[str, list[ToolCall]] = {}
    for call in ToolCall.objects.filter(response__in=rows, kind=ToolCallKind.CLIENT).order_by("id"):
        calls.setdefault(call.response_id, []).append(call)
    return {
        response_id: StoredOutput(
            output=msgspec.convert(
                () if response_id in withheld else output, tuple[uamp.ContentItem, ...]
            ),
            client_calls=calls.get(response_id, []),
            ends_at_tools=bool(request.get("ends_at_tools")),
        )
        for response_id, output, request in rows.values_list("id", "output", "request")
    }


def going_on(session_id: str) -> set[str]:
    """Return a session's responses that can proceed without any input, in any process.

    Neither they nor the responses that they delegated are waiting for a tool result from the
    client, a person's decision or a payment.
    """
    live = response_ids_of(session_id, live_only=True)
    first_of = {response_id: response_id for response_id in live}
    level = list(live)
    while level:
        below = Response.objects.filter(
            session__parent_call__response_id__in=level, status__in=Response.LIVE
        ).values_list("id", "session__parent_call__response_id")
        level = []
        for response_id, above in below:
            first_of[response_id] = first_of[above]
            level.append(response_id)
    waits = Q(kind=ToolCallKind.CLIENT, status=ToolCallState.WAITING)
    calls = ToolCall.objects.filter(
        waits | Q(status=ToolCallState.ASKING), response_id__in=list(first_of)
    ).values_list("response_id", flat=True)
    unpaid = PaymentRequest.objects.filter(
        status=PaymentState.WAITING, response_id__in=list(first_of)
    ).values_list("response_id", flat=True)
    return set(live) - {first_of[response_id] for response_id in (*calls, *unpaid)}


def parked_responses() -> Q:
    """Return the condition for responses that wait, in no process, for someone else's act.

    Each is continued, in any process, once its tool call has ended or its payment is decided.
    """
    # If the process died before delegating, no agent is working on the call.
    sessions = Session.objects.filter(parent_call=OuterRef("pk"), responses__isnull=False)
    not_given = Q(kind=ToolCallKind.AGENT) & ~Exists(sessions)
    calls = ToolCall.objects.filter(status__in=ToolCall.OPEN, finished_at__isnull=True)
    unpaid = PaymentRequest.objects.filter(status=PaymentState.WAITING, decided_at__isnull=True)
    is_asked_for = Q(cancel_requested_at__isnull=True, session__isnull=False)
    return (
        Q(status=ResponseState.WAITING)
        & is_asked_for
        & (
            Q(pk__in=calls.exclude(not_given).values("response_id"))
            | Q(pk__in=unpaid.values("response_id"))
        )
    )


def session_of_response(response_id: str, principal: Principal) -> str | None:
    """Return the wire id of the principal's open session that a response belongs to.

    For visitors, the response's id is the only credential. Returns None if it is a person's.
    """
    rows = Session.objects.filter(responses__pk=response_id, status__in=Session.OPEN)
    if principal.is_visitor:
        rows = rows.filter(principal__startswith=PrincipalKind.VISITOR.prefix)
    else:
        rows = rows.filter(principal=principal.key)
    row = rows.only("pk", "client_id").first()
    return None if row is None else row.wire_id


def cancel_requests(response_ids: Iterable[str]) -> list[str]:
    """Filter responses to those that were asked to cancel."""
    return list(
        Response.objects.filter(
            pk__in=list(response_ids), cancel_requested_at__isnull=False
        ).values_list("id", flat=True)
    )


def may_cancel(response_id: str, session: OpenSession) -> bool:
    """Return whether a session may cancel a response: its own, or one in its chat.

    Delegated work belongs to the session whose answer it is for.
    """
    row = Response.objects.filter(pk=response_id, status__in=Response.LIVE).first()
    if row is None:
        return False
    first = root_response(row)
    return first.session_id == session.id or (
        session.chat_scoped and first.chat_id == session.chat_id
    )


def may_stop(response_id: str, session: OpenSession) -> bool:
    """Return whether a session that sees a response may stop it.

    If it or work for it has a price, only its asker, its payer and owners of the chat may.
    """
    row = Response.objects.select_related("session").get(pk=response_id)
    first, user_id = root_response(row), session.principal.user_id
    asker = None if first.session is None else first.session.user_id
    if first.session_id == session.id or (user_id is not None and user_id == asker):
        return True
    family = [
        row,
        *(response for rows in delegated_responses([row.pk]).values() for response in rows),
    ]
    if all(
        "pricing" not in response.request and _is_free(response.agent_id) for response in family
    ):
        return True
    if user_id is None:
        return False
    payers = ledger_rows.people_behind([response.pk for response in family])
    return user_id in payers or membership.is_owner(first.chat_id, user_id)


def _is_free(agent_id: str) -> bool:
    return agents.get_spec(agent_id).pricing.is_free
