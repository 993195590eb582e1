"""Writes of sessions, responses and tool calls (UAMP §5.1-5.3, §5.13, §5.14). Synchronous.

The two writes of a turn are in `turn_writes`; everything rarer is here.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

import uamp
from agents_app import checkpoints
from agents_app import selectors as agents
from chat_app import contents
from chat_app import selectors as chat_selectors
from chat_app import services as chats
from sessions_app.models import (
    InboundEvent,
    PendingInput,
    Response,
    Session,
    ToolCall,
    new_session_id,
)
from sessions_app.selectors import OpenSession, open_session_of
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence
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


def open_call(
    *,
    response_id: str,
    fence: int,
    kind: str,
    call: uamp.ToolCallData,
    text: str,
    output: Sequence[uamp.ContentItem],
) -> int | None:
    """Write a tool call before anybody hears of it, with the output that led to it.

    Returns the row's key, or None when the response is no longer this runner's.
    """
    now = timezone.now()
    with transaction.atomic():
        held = Response.objects.filter(
            pk=response_id, fence=fence, status__in=Response.LIVE
        ).update(
            status=Response.Status.WAITING, text=text, output=msgspec.to_builtins(tuple(output))
        )
        if not held:
            return None
        row, _ = ToolCall.objects.get_or_create(
            response_id=response_id,
            call_id=call.id,
            defaults={
                "kind": kind,
                "name": call.name,
                "arguments": call.arguments,
                "status": (
                    ToolCall.Status.WAITING
                    if kind == ToolCall.Kind.CLIENT
                    else ToolCall.Status.QUEUED
                ),
                "deadline": now + timedelta(seconds=settings.UAMP_TOOL_WAIT_SECONDS),
            },
        )
    return row.pk


def take_media(
    items: Sequence[uamp.ContentItem], principal: Principal
) -> tuple[uamp.ContentItem, ...]:
    """Store the media that somebody sent and return the items that refer to them.

    Raises RemoteProtocolError: invalid_media, content_not_found.
    """
    owner = contents.Owner(user_id=principal.user_id, key=principal.key)
    try:
        return tuple(contents.ingest(items, owner=owner))
    except contents.InvalidMedia as error:
        raise RemoteProtocolError(ErrorCode.INVALID_MEDIA, str(error)) from error
    except contents.ContentNotFound as error:
        raise RemoteProtocolError(
            ErrorCode.CONTENT_NOT_FOUND,
            "There is no such content, or it is not yours. Upload it first.",
        ) from error


def record_tool_result(session: OpenSession, result: ev.ToolResult) -> tuple[str, int]:
    """Take the client's answer to a `tool.call` and return its response and row (UAMP §5.14).

    The same answer again is fine; anything else for a call that does not wait raises
    RemoteProtocolError unknown_call. Its media are a message's: invalid_media, content_not_found.
    """
    with transaction.atomic():
        row = (
            ToolCall.objects.select_for_update()
            .filter(
                response__session_id=session.id,
                call_id=result.call_id,
                kind=ToolCall.Kind.CLIENT,
            )
            .order_by("-id")
            .first()
        )
        if row is not None and row.status == ToolCall.Status.WAITING:
            row.status = ToolCall.Status.FAILED if result.is_error else ToolCall.Status.DONE
            row.result, row.is_error = result.result, result.is_error
            items = take_media(result.content_items or (), session.principal)
            row.content_items = msgspec.to_builtins(items)
            row.finished_at = timezone.now()
            row.save()
        elif row is None or (row.result, row.is_error) != (result.result, result.is_error):
            raise RemoteProtocolError(
                ErrorCode.UNKNOWN_CALL,
                "No call of this session waits under this call_id.",
                details={"call_id": result.call_id},
            )
    return row.response_id, row.pk


def expire_calls() -> list[tuple[str, int]]:
    """End the calls whose deadline has passed; returns their responses and rows."""
    now = timezone.now()
    late = list(
        ToolCall.objects.filter(
            status__in=(ToolCall.Status.WAITING, ToolCall.Status.QUEUED), deadline__lt=now
        ).values_list("response_id", "id")
    )
    ToolCall.objects.filter(
        pk__in=[pk for _, pk in late],
        status__in=(ToolCall.Status.WAITING, ToolCall.Status.QUEUED),
    ).update(
        status=ToolCall.Status.FAILED,
        is_error=True,
        result="The tool did not answer in time.",
        finished_at=now,
    )
    return late


def flush_response(
    response_id: str, *, fence: int, text: str, output: Sequence[uamp.ContentItem]
) -> None:
    """Keep the answer so far of a running response (DESIGN D2)."""
    Response.objects.filter(pk=response_id, fence=fence, status__in=Response.LIVE).update(
        text=text, output=msgspec.to_builtins(tuple(output))
    )


def save_checkpoint(
    response_id: str,
    *,
    fence: int,
    text: str,
    output: Sequence[uamp.ContentItem],
    state: AgentState,
    step: int,
) -> None:
    """Keep a running response's state, with the answer that it led to; unless it was taken over."""
    with transaction.atomic():
        held = Response.objects.filter(
            pk=response_id, fence=fence, status__in=Response.LIVE
        ).update(text=text, output=msgspec.to_builtins(tuple(output)))
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


def claim_orphans(process: str, *, running: Sequence[str] = (), limit: int = 50) -> list[Response]:
    """Take over responses whose process fell silent: those that ran, and those whose wait is over.

    A response that waits for an open tool call stays parked, since its answer may still come,
    unless somebody asked to cancel it. What is `running` in this very process is late only.
    """
    now = timezone.now()
    parked = ToolCall.objects.filter(status__in=ToolCall.OPEN).values("response_id")
    waits = Q(status=Response.Status.WAITING, cancel_requested_at__isnull=True)
    orphans = list(
        Response.objects.filter(status__in=Response.LIVE, lease_until__lt=now)
        .exclude(waits & Q(pk__in=parked))
        .exclude(pk__in=running)
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


def tool_calls_of(response_id: str) -> list[ToolCall]:
    """Return the tool calls of a response in their order."""
    return list(ToolCall.objects.filter(response_id=response_id).order_by("id"))
