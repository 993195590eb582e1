"""Writes of sessions, responses and tool calls (UAMP §5.1-5.3, §5.13, §5.14). Synchronous.

The two writes of a turn are in `turn_writes`; everything rarer is here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

import uamp
from agents_app import checkpoints
from agents_app import selectors as agents
from chat_app import contents, media_types
from chat_app import selectors as chat_selectors
from chat_app import services as chats
from sessions_app.models import (
    InboundEvent,
    PaymentRequest,
    PendingInput,
    Response,
    Session,
    ToolCall,
    new_session_id,
)
from sessions_app.selectors import OpenSession, open_session_of
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from agents_app.selectors import AgentSpec
    from sessions_app.auth import Principal
    from uamp import events as ev
    from uap import AgentState

SESSION_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


@transaction.atomic
def open_session(
    *,
    principal: Principal,
    transport: str,
    create: ev.SessionCreate,
    agent_name: str | None,
    chat_id: str | None,
) -> OpenSession:
    """Open a session, with a private chat of its own where the client names none (DESIGN D2).

    Raises RemoteProtocolError: chat_not_found, agent_not_found, unauthorized, session_exists,
    invalid_event.
    """
    agent = _agent_of_session(principal, agent_name, chat_id)
    session_id = _session_id(principal, create.session.id)
    if create.session.id and Session.objects.filter(pk=session_id).exists():
        raise RemoteProtocolError(
            ErrorCode.SESSION_EXISTS, "This session id was used before. Leave it out."
        )
    row = Session(
        id=session_id,
        user_id=principal.user_id,
        principal=principal.key,
        api_key_id=principal.api_key_id,
        agent_id=agent.id if agent else None,
        chat_id=_chat_of_session(principal, chat_id, agent),
        chat_scoped=chat_id is not None,
        transport=transport,
        uamp_version=create.uamp_version[:10],
        config=msgspec.to_builtins(msgspec.structs.replace(create.session, id=None)),
        client_capabilities=(
            msgspec.to_builtins(create.client_capabilities) if create.client_capabilities else None
        ),
    )
    row.opened_seq = row.chat.last_seq
    row.save(force_insert=True)
    return open_session_of(row, principal)


def _session_id(principal: Principal, suggested: str | None) -> str:
    """Return the id of a new session: the client's suggestion, or one that nobody can guess.

    A visitor's session is open to whoever knows its id, so that it is always the latter.
    """
    if not suggested or principal.is_anonymous:
        return new_session_id()
    if not SESSION_ID.fullmatch(suggested):
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT, "A session id has at most 64 letters, digits, '-', '_', '.'."
        )
    return suggested


def _agent_of_session(
    principal: Principal, agent_name: str | None, chat_id: str | None
) -> AgentSpec | None:
    """Return the agent that a session names, or the default one where nothing else could answer."""
    if agent_name is None and chat_id is not None:
        return None  # the chat's members and their trigger rules decide
    name = agent_name or settings.UAMP_DEFAULT_AGENT
    spec = agent_by_name(name, principal)
    if principal.is_anonymous and not settings.UAMP_ALLOW_ANONYMOUS:
        raise RemoteProtocolError(ErrorCode.UNAUTHORIZED, "Sign in, or send a token.")
    if chat_id is not None and spec.id not in {
        member.agent_id for member in chat_selectors.agent_members(chat_id)
    }:
        raise RemoteProtocolError(
            ErrorCode.AGENT_NOT_FOUND, f"There is no agent {name!r} in this chat."
        )
    return spec


def agent_by_name(name: str, principal: Principal) -> AgentSpec:
    """Return an agent that the principal may use; raises RemoteProtocolError agent_not_found."""
    spec = agents.get_agent(name, viewer=principal.user_id)
    if spec is None:
        raise RemoteProtocolError(
            ErrorCode.AGENT_NOT_FOUND, f"There is no agent {name!r} that you may use."
        )
    return spec


def is_member(session: OpenSession) -> bool:
    """Return whether the person of a session is still in its chat."""
    return chats.is_member(session.chat_id, session.principal.user_id)


def _chat_of_session(principal: Principal, chat_id: str | None, agent: AgentSpec | None) -> str:
    if chat_id is not None:
        if not chats.is_member(chat_id, principal.user_id):
            raise RemoteProtocolError(
                ErrorCode.CHAT_NOT_FOUND, "There is no such chat, or you are not in it."
            )
        return chat_id
    chat = chats.create_chat(
        title="",
        created_by_id=principal.user_id,
        user_ids=[] if principal.user_id is None else [principal.user_id],
        agents=[] if agent is None else [(agent.id, "always")],
        kind="session",
    )
    return chat.pk


def close_session(session_id: str, *, reason: str) -> None:
    """End a session; what it asked for goes on (DESIGN D3)."""
    Session.objects.filter(pk=session_id, status=Session.Status.ACTIVE).update(
        status=Session.Status.CLOSED, closed_at=timezone.now(), close_reason=reason[:100]
    )
    PendingInput.objects.filter(session_id=session_id).delete()


def touch_sessions(session_ids: Sequence[str], *, now: datetime) -> None:
    """Say that connections hold these sessions, and close those that nobody held for long."""
    Session.objects.filter(pk__in=session_ids).update(seen_at=now)
    idle = now - timedelta(hours=settings.UAMP_SESSION_IDLE_HOURS)
    Session.objects.filter(status=Session.Status.ACTIVE, seen_at__lt=idle).update(
        status=Session.Status.CLOSED, closed_at=now, close_reason="timeout"
    )


def update_session(
    session_id: str,
    *,
    config: uamp.SessionConfig | None = None,
    client_capabilities: uamp.Capabilities | None = None,
) -> None:
    """Keep a changed configuration or changed client capabilities (UAMP §5.2, §5.5)."""
    changes: dict[str, Any] = {}
    if config is not None:
        changes["config"] = msgspec.to_builtins(config)
    if client_capabilities is not None:
        changes["client_capabilities"] = msgspec.to_builtins(client_capabilities)
    if changes:
        Session.objects.filter(pk=session_id).update(**changes)


def keep_payment_token(session_id: str, token_id: str) -> None:
    """Keep which payment token a session's answers are paid with (UAMP §5.1, §5.2)."""
    Session.objects.filter(pk=session_id).update(payment_token_id=token_id)


def keep_input(session_id: str, event_id: str, payload: dict[str, Any], *, limit: int) -> bool:
    """Keep an input event that came over HTTP; returns False when it was kept or used before.

    Raises RemoteProtocolError: event_id_conflict for another body, too_many_inputs.
    """
    with transaction.atomic():
        Session.objects.select_for_update().filter(pk=session_id).first()
        kept = PendingInput.objects.filter(session_id=session_id, event_id=event_id).first()
        if kept is not None:
            if kept.payload != payload:
                raise RemoteProtocolError(
                    ErrorCode.EVENT_ID_CONFLICT, "This event_id was used for another event."
                )
            return False
        if InboundEvent.objects.filter(session_id=session_id, event_id=event_id).exists():
            return False
        if PendingInput.objects.filter(session_id=session_id).count() >= limit:
            raise RemoteProtocolError(
                ErrorCode.TOO_MANY_INPUTS, "Too many inputs wait. Send response.create."
            )
        PendingInput.objects.create(session_id=session_id, event_id=event_id, payload=payload)
    return True


def kept_inputs(session_id: str) -> list[tuple[int, dict[str, Any]]]:
    """Return the inputs that wait for response.create, in their order."""
    return list(
        PendingInput.objects.filter(session_id=session_id)
        .order_by("id")
        .values_list("id", "payload")
    )


def request_cancel(response_id: str) -> None:
    """Ask whoever runs a response to stop it."""
    Response.objects.filter(
        pk=response_id, status__in=Response.LIVE, cancel_requested_at__isnull=True
    ).update(cancel_requested_at=timezone.now())


def take_media(
    items: Sequence[uamp.ContentItem], principal: Principal
) -> tuple[uamp.ContentItem, ...]:
    """Store the media that somebody sent and return the items that refer to them.

    Raises RemoteProtocolError: invalid_media, content_not_found.
    """
    owner = contents.Owner(user_id=principal.user_id, key=principal.key)
    try:
        return tuple(contents.ingest(items, owner=owner))
    except media_types.InvalidMedia as error:
        raise RemoteProtocolError(ErrorCode.INVALID_MEDIA, str(error)) from error
    except contents.ContentNotFound as error:
        raise RemoteProtocolError(
            ErrorCode.CONTENT_NOT_FOUND,
            "There is no such content, or it is not yours. Upload it first.",
        ) from error


@dataclass(frozen=True, kw_only=True, slots=True)
class Flush:
    """The answer so far of a running response, and what it used, to be kept."""

    response_id: str
    fence: int
    output: Sequence[uamp.ContentItem]
    usage: uamp.UsageStats | None = None


_FLUSH: Final = """
UPDATE sessions_app_response SET text = %s, output = %s, usage = %s
WHERE id = %s AND fence = %s AND status IN ('in_progress', 'waiting')
"""


def flush_responses(flushes: Sequence[Flush]) -> set[str]:
    """Keep the answers so far of running responses (DESIGN D2); returns those that were free.

    One statement a response is too much when a thousand run: they are written at once.
    """
    with transaction.atomic():
        # In the order of the turn writes, and past those that are being ended right now.
        free = set(
            Response.objects.select_for_update(skip_locked=True)
            .filter(pk__in=[flush.response_id for flush in flushes])
            .order_by("pk")
            .values_list("pk", flat=True)
        )
        rows = [
            (
                "".join(i.text for i in flush.output if isinstance(i, uamp.TextContent)),
                msgspec.json.encode(flush.output).decode(),
                None if flush.usage is None else msgspec.json.encode(flush.usage).decode(),
                flush.response_id,
                flush.fence,
            )
            for flush in flushes
            if flush.response_id in free
        ]
        with connection.cursor() as cursor:
            cursor.executemany(_FLUSH, rows)
    return free


def save_checkpoint(
    response_id: str,
    *,
    fence: int,
    text: str,
    output: Sequence[uamp.ContentItem],
    usage: uamp.UsageStats | None,
    state: AgentState,
    step: int,
) -> None:
    """Keep a running response's state, with the answer that it led to; unless it was taken over."""
    with transaction.atomic():
        held = Response.objects.filter(
            pk=response_id, fence=fence, status__in=Response.LIVE
        ).update(
            text=text,
            output=msgspec.to_builtins(tuple(output)),
            usage=msgspec.to_builtins(usage),
        )
        if held:
            checkpoints.save(
                response_id,
                state=state,
                output=output,
                step=step,
                fence=fence,
                at=timezone.now(),
            )


def forget_old_checkpoints() -> None:
    """Delete checkpoints whose response ended, or is gone, without deleting its own."""
    before = timezone.now() - timedelta(seconds=settings.UAMP_LEASE_SECONDS)
    old = set(checkpoints.saved_before(before))
    live = Response.objects.filter(pk__in=old, status__in=Response.LIVE)
    checkpoints.delete(old.difference(live.values_list("pk", flat=True)))


def set_running(response_id: str, *, fence: int) -> None:
    """Say that a response that waited goes on."""
    Response.objects.filter(pk=response_id, fence=fence, status=Response.Status.WAITING).update(
        status=Response.Status.IN_PROGRESS
    )


def renew_leases(process: str, response_ids: Sequence[str]) -> None:
    """Say that a process still runs its responses."""
    until = timezone.now() + timedelta(seconds=settings.UAMP_LEASE_SECONDS)
    with transaction.atomic():
        # In the order of the turn writes, and past those that are being ended right now.
        held = (
            Response.objects.select_for_update(skip_locked=True)
            .filter(pk__in=response_ids, process=process, status__in=Response.LIVE)
            .order_by("pk")
            .values_list("pk", flat=True)
        )
        Response.objects.filter(pk__in=list(held)).update(lease_until=until)


def release_lease(response_id: str, *, fence: int) -> None:
    """Give a response back before its lease ends, at shutdown."""
    Response.objects.filter(pk=response_id, fence=fence, status__in=Response.LIVE).update(
        lease_until=timezone.now()
    )


def claim_orphans(process: str, *, running: Collection[str], limit: int = 50) -> list[Response]:
    """Take over responses whose process fell silent: those that ran, and those whose wait is over.

    A response that waits for an open tool call stays parked, since its answer may still come,
    unless somebody asked to cancel it or nobody is left who asked: it would ask its client, or a
    person, a second time. What is `running` in this very process is late only.
    """
    now = timezone.now()
    # Its process may have died before the other agent was given the work: nobody would do it.
    given = Session.objects.filter(parent_call=OuterRef("pk"), responses__isnull=False)
    not_given = Q(kind=ToolCall.Kind.AGENT) & ~Exists(given)
    parked = (
        ToolCall.objects.filter(status__in=ToolCall.OPEN).exclude(not_given).values("response_id")
    )
    unpaid = PaymentRequest.objects.filter(status=PaymentRequest.Status.WAITING)
    is_asked_for = Q(cancel_requested_at__isnull=True, session__isnull=False)
    waits = Q(status=Response.Status.WAITING) & is_asked_for
    orphans = list(
        Response.objects.filter(status__in=Response.LIVE, lease_until__lt=now)
        .exclude(waits & (Q(pk__in=parked) | Q(pk__in=unpaid.values("response_id"))))
        .exclude(pk__in=list(running))
        .order_by("lease_until")[:limit]
    )
    until = now + timedelta(seconds=settings.UAMP_LEASE_SECONDS)
    claimed = []
    for row in orphans:
        # The fence in the condition makes exactly one process win.
        won = Response.objects.filter(
            pk=row.pk, fence=row.fence, status__in=Response.LIVE, lease_until__lt=now
        ).update(fence=F("fence") + 1, process=process, lease_until=until)
        if won:
            row.fence += 1
            claimed.append(row)
    return claimed
