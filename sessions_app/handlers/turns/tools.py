"""Tool calls: a client's result, and a person's decision (UAMP §5.14)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessions_app import database
from sessions_app.connection.rate_limit import check_text
from sessions_app.inputs.media import run_with_media
from sessions_app.process import registry
from sessions_app.process.signals import send_decision
from sessions_app.tools import approvals, calls
from sessions_app.tools.tasks import notify_workers
from uamp import events as ev

if TYPE_CHECKING:
    from sessions_app.connection.client_connection import ClientConnection


async def take_tool_result(connection: ClientConnection, event: ev.ToolResult) -> None:
    """Accept the client's result of a tool.call (UAMP §5.14)."""
    attached = connection.attached_to(event)
    session = attached.session
    await check_text(connection, session.principal, len(event.result or ""), session.wire_id)
    response_id, pk = await run_with_media(
        event.content_items or (),
        session.principal.counted_as,
        calls.record_tool_result,
        session,
        event,
    )
    await registry.current().signals.call_ended(response_id, pk)


async def take_approval(connection: ClientConnection, event: ev.ToolApprove) -> None:
    """Record and publish a person's decision on a tool call, which then proceeds or ends."""
    attached = connection.attached_to(event)
    session = attached.session
    row = await database.run(approvals.decide_call, session, event)
    if row is None:
        return
    done = ev.ToolApprovalDone(
        call_id=row.call_id,
        response_id=row.response_id,
        approved=event.approved,
        user_id=None if row.decided_by_id is None else str(row.decided_by_id),
        username=session.principal.username or None,
    )
    await send_decision(session.chat_id, done)
    if event.approved:
        await database.run(notify_workers, row.pk)
        await registry.current().signals.call_decided(row.response_id, row.pk)
    else:
        await registry.current().signals.call_ended(row.response_id, row.pk)
