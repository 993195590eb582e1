"""Reads of a principal's past responses over one transport, for returning clients.

Each needs the right to read chats, and finds the responses of chats that the person is in now and
the credential is for. Synchronous. Visitors are identified only by response and session ids, which
cannot be guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.db.models import BooleanField, DateTimeField, Exists, ExpressionWrapper, OuterRef, Q
from django.db.models.functions import Coalesce

import uamp
from chat_app.log.deletions import has_deleted_answer
from chat_app.log.signatures import signature_of_response
from chat_app.members.chat_lists import chats_of
from sessions_app.access.principal import PrincipalKind
from sessions_app.access.protocol_rights import check_scope
from sessions_app.models import PaymentRequest, Response, ToolCall, ToolCallKind
from sessions_app.response.request import ResponseRequest
from sessions_app.states import PaymentState, ToolCallState
from sessions_app.tools.delegated_calls import calls_above
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.db.models import QuerySet

    from sessions_app.access.principal import Principal


_CHANGED: Final = Coalesce("finished_at", "created_at", output_field=DateTimeField())


@dataclass(frozen=True, kw_only=True, slots=True)
class PaidDemand:
    """A response's paid demand; `amount` is in the asset's smallest unit."""

    hold_id: str
    asset: str
    amount: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PastResponse:
    """A stored response; `changed_at` is when it ended or, while unfinished, began.

    `request` holds its overrides of the session. The `messages` in it are the conversation before
    the message, or None if that was the chat's own.
    """

    id: str
    session_id: str
    extensions: dict[str, Any]
    agent: str
    agent_description: str
    chat_id: str
    status: str
    request: ev.ResponseCreate
    output: tuple[uamp.ContentItem, ...]
    error: uamp.ErrorDetail | None
    message_id: str
    message: tuple[uamp.ContentItem, ...]
    created_at: datetime
    changed_at: datetime
    paid: tuple[PaidDemand, ...]
    signature: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ResponseTexts:
    """A response's current question, empty if deleted, and whether its answer still exists."""

    message: tuple[uamp.ContentItem, ...]
    is_edited: bool
    has_answer: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class ResponseFilter:
    """Criteria for listing responses.

    `states` are response states; empty means all. `asks` selects responses that do, or do not, ask
    their client for something. `error_codes` selects responses that failed with these codes or,
    with `without_codes`, all others.
    """

    session_id: str = ""
    extension: tuple[str, str, str] | None = None
    states: tuple[str, ...] = ()
    asks: bool | None = None
    error_codes: tuple[str, ...] = ()
    without_codes: bool = False
    changed_after: datetime | None = None


def find_response(
    response_id: str, principal: Principal, *, transport: str, agent: str
) -> PastResponse | None:
    """Return a response of the principal and agent; None for unknown and foreign ones alike.

    An empty `agent` matches any agent. Raises RemoteProtocolError forbidden.
    """
    row = _with_facts(_rows(principal, transport, agent)).filter(pk=response_id).first()
    return None if row is None else _past_response(row)


def is_asking(response_id: str, principal: Principal, *, transport: str, agent: str) -> bool:
    """Return whether a response of the principal and agent asks for a result, act or payment.

    Raises RemoteProtocolError forbidden.
    """
    rows = _rows(principal, transport, agent).filter(pk=response_id, finished_at__isnull=True)
    return _in_state(rows, ResponseFilter(asks=True)).exists()


def current_texts(response_ids: Iterable[str], principal: Principal) -> dict[str, ResponseTexts]:
    """Return the current questions, and whether the answers exist, for the given responses.

    Deleted responses are left out. The principal has copies of the texts, or claims to: a question
    of a chat that the principal may not read is never returned as edited.
    """
    readable = ExpressionWrapper(_is_readable(principal), output_field=BooleanField())
    rows = Response.objects.filter(pk__in=set(response_ids)).select_related("message")
    return {
        row.pk: ResponseTexts(
            message=_message(row),
            is_edited=bool(row.is_readable and row.message and row.message.edited_at),
            has_answer=not row.is_withheld,
        )
        for row in rows.annotate(is_withheld=has_deleted_answer(), is_readable=readable).defer(
            "output", "text", "request"
        )
    }


def _is_readable(principal: Principal) -> Q:
    """Return the condition for responses of chats that a principal may read now."""
    if principal.user_id is not None:
        readable = Q(chat__in=chats_of(principal.user_id).values("pk"))
    elif principal.is_visitor:
        readable = Q(session__principal__startswith=PrincipalKind.VISITOR.prefix)
    else:
        readable = Q(session__principal=principal.key)
    if principal.rights.chats is not None:
        readable &= Q(chat_id__in=principal.rights.chats)
    return readable


def response_about(message_id: str, response_id: str) -> PastResponse | None:
    """Return a response by id or, without an id, the first answer to a message.

    Access is not checked: the caller has verified that the reader is a member of the chat.
    """
    rows = _with_facts(Response.objects.all())
    if response_id:
        row = rows.filter(pk=response_id).first()
    else:
        row = rows.filter(message_id=message_id).order_by("created_at", "pk").first()
    return None if row is None else _past_response(row)


def list_responses(
    principal: Principal,
    which: ResponseFilter,
    *,
    transport: str,
    agent: str,
    limit: int,
    before: tuple[datetime, str] | None,
) -> tuple[list[PastResponse], int]:
    """Return a page of responses, last changed first, and the total count.

    `before` is the time and id of the last response on the previous page. Raises
    RemoteProtocolError forbidden.
    """
    if principal.is_visitor and not which.session_id:
        return [], 0
    rows = _rows(principal, transport, agent)
    if which.session_id:
        named = Q(session_id=which.session_id, session__client_id="")
        if which.extension is not None and not principal.is_visitor:
            name, member, value = which.extension
            named |= Q(**{f"session__config__extensions__{name}__{member}": value})
        rows = rows.filter(named)
    rows = _in_state(rows, which)
    # An index covers the counting and sorting. The rows, which hold the texts, are read last.
    if which.changed_after is not None:
        rows = rows.filter(changed_at__gt=which.changed_after)
    total = rows.count()
    if before is not None:
        at, pk = before
        rows = rows.filter(Q(changed_at__lt=at) | Q(changed_at=at, pk__lt=pk))
    pks = list(rows.order_by("-changed_at", "-pk").values_list("pk", flat=True)[:limit])
    by_pk = _with_facts(Response.objects.all()).in_bulk(pks)
    return [_past_response(by_pk[pk]) for pk in pks if pk in by_pk], total


def _rows(principal: Principal, transport: str, agent: str) -> QuerySet[Any]:
    """Return the responses that a principal may read; raises RemoteProtocolError forbidden."""
    check_scope(principal, "chats:read")
    rows = Response.objects.filter(session__transport=transport)
    if agent:
        rows = rows.filter(agent__name__iexact=agent)
    if principal.is_visitor:
        rows = rows.filter(session__principal__startswith=PrincipalKind.VISITOR.prefix)
    else:
        rows = rows.filter(session__principal=principal.key)
    if principal.user_id is not None:
        rows = rows.filter(chat__in=chats_of(principal.user_id).values("pk"))
    if principal.rights.chats is not None:
        rows = rows.filter(chat_id__in=principal.rights.chats)
    return rows.annotate(changed_at=_CHANGED)


def _with_facts(rows: QuerySet[Any]) -> QuerySet[Any]:
    rows = rows.annotate(
        changed_at=_CHANGED,
        is_withheld=has_deleted_answer(),
        signature=signature_of_response(),
    )
    rows = rows.select_related("session", "agent", "message")
    return rows.prefetch_related("payment_requests")


def _in_state(rows: QuerySet[Any], which: ResponseFilter) -> QuerySet[Any]:
    if which.states:
        rows = rows.filter(status__in=which.states)
    if which.error_codes:
        failed_so = Q(error__code__in=which.error_codes)
        rows = rows.filter(~failed_so if which.without_codes else failed_so)
    if which.asks is None:
        return rows
    calls = ToolCall.objects.filter(response=OuterRef("pk"), finished_at__isnull=True)
    waiting = Q(kind=ToolCallKind.CLIENT, status=ToolCallState.WAITING)
    unpaid = PaymentRequest.objects.filter(response=OuterRef("pk"), decided_at__isnull=True)
    asking = Exists(calls.filter(waiting | Q(status=ToolCallState.ASKING))) | Exists(unpaid)
    asking |= Q(pk__in=_asking_below(rows))
    return rows.filter(asking) if which.asks else rows.exclude(asking)


def _asking_below(rows: QuerySet[Any]) -> list[str]:
    """Return the responses whose delegated work asks for a decision or a payment in their chats.

    Few rows ask at the same time, and chains of delegations are short.
    """
    chats = rows.filter(finished_at__isnull=True).values("chat_id")
    questions = ToolCall.objects.filter(
        asked_in__in=chats,
        status=ToolCallState.ASKING,
        finished_at__isnull=True,
        response__finished_at__isnull=True,
    )
    unpaid = PaymentRequest.objects.filter(
        asked_in__in=chats, decided_at__isnull=True, response__finished_at__isnull=True
    )
    workers = {
        *questions.values_list("response_id", flat=True),
        *unpaid.values_list("response_id", flat=True),
    }
    return [above.response_id for worker in workers for above in calls_above(worker)]


def _past_response(row: Any) -> PastResponse:
    output = msgspec.convert(row.output, tuple[uamp.ContentItem, ...])
    if row.is_withheld:
        output = ()
    elif not output and row.text:
        output = (uamp.TextContent(text=row.text),)
    return PastResponse(
        id=row.pk,
        # An ephemeral session may be deleted before the chat that contains its answer.
        session_id="" if row.session is None else row.session.wire_id,
        extensions={} if row.session is None else row.session.config.get("extensions") or {},
        agent=row.agent.name,
        agent_description=row.agent.description,
        chat_id=row.chat_id,
        status=row.status,
        request=_request(row),
        output=output,
        error=None if row.error is None else msgspec.convert(row.error, uamp.ErrorDetail),
        message_id=row.message_id or "",
        message=_message(row),
        created_at=row.created_at,
        changed_at=row.changed_at,
        paid=tuple(_paid(row)),
        signature=row.signature,
    )


def _request(row: Any) -> ev.ResponseCreate:
    stored = msgspec.convert(row.request, ResponseRequest)
    options = {name: getattr(stored, name) for name in uamp.GenerationOptions.__struct_fields__}
    config = ev.ResponseConfig(
        modalities=stored.modalities,
        instructions=stored.instructions,
        tools=stored.tools,
        messages=stored.context,
        model=stored.model,
        client_tools="end" if stored.ends_at_tools else "wait",
        **options,
    )
    return ev.ResponseCreate(response=config, response_format=stored.response_format)


def _message(row: Any) -> tuple[uamp.ContentItem, ...]:
    if row.message is None or row.message.deleted_at is not None:
        return ()
    items = msgspec.convert(row.message.content_items, tuple[uamp.ContentItem, ...])
    return items or (uamp.TextContent(text=row.message.content),)


def _paid(row: Any) -> list[PaidDemand]:
    return [
        PaidDemand(hold_id=demand.hold_id, asset=demand.asset, amount=demand.amount)
        for demand in row.payment_requests.all()
        if demand.status == PaymentState.PAID
    ]
