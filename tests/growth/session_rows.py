"""Rows of sessions, answers, tool calls and webhooks."""

from __future__ import annotations

from sessions_app import models as sessions
from tests.growth.bulk_rows import DUE, ROWS, FilledTables, ago, fill


def fill_sessions(filled: FilledTables) -> None:
    chat, agent, session = f"'{filled.chat.pk}'", f"'{filled.agent.pk}'", f"'{filled.session.pk}'"
    fill(
        sessions.Session,
        id="'sess_' || i",
        user_id="1000 + i",
        principal="'user:' || (1000 + i)",
        agent_id=agent,
        chat_id=chat,
        status="'closed'",
        transport="'websocket'",
        closed_at=ago("i"),
    )
    fill(
        sessions.Response,
        id="'resp_' || i",
        chat_id=chat,
        session_id=session,
        agent_id=agent,
        message_id="'msg_' || i",
        status="'completed'",
        output="'[]'",
        fence="1",
        finished_at=ago("i"),
    )
    fill(
        sessions.ToolCall,
        call_id="'call_' || i",
        response_id="'resp_' || i",
        kind="CASE i % 2 WHEN 0 THEN 'client' ELSE 'long' END",
        name="'steps'",
        status="'done'",
        content_items="'[]'",
        asked_in=f"CASE i % 2 WHEN 0 THEN '' ELSE {chat} END",
        decided_at=ago("i"),
        finished_at=ago("i"),
    )
    fill(
        sessions.Webhook,
        id="i",
        response_id="'resp_' || i",
        name="'one'",
        sent="1",
        look_at=f"CASE WHEN i <= {DUE} THEN {ago('i')} END",
    )
    fill(
        sessions.Webhook,
        first=ROWS + 1,
        id="i",
        chat_id=f"'chat_' || (i - {ROWS})",
        user_id=f"1000 + i - {ROWS}",
        name="'one'",
        queued_seq="0",
        look_at=f"CASE WHEN i <= {ROWS + DUE} THEN {ago('i')} END",
    )
    fill(
        sessions.WebhookDelivery,
        webhook_id="i",
        number="1",
        status="'sent'",
        finished_at=ago("i"),
    )
    fill(
        sessions.WebhookDelivery,
        count=DUE,
        webhook_id="i",
        number="2",
        status="'queued'",
        due_at=ago("i"),
        notify_at=ago("i"),
    )
    fill(
        sessions.PaymentRequest,
        response_id="'resp_' || i",
        number="1",
        payer_id="1000 + i",
        asked_in=chat,
        amount="1",
        asset="'USD'",
        reason="'llm_usage'",
        status="'paid'",
        decided_at=ago("i"),
    )
    fill(
        sessions.InboundEvent,
        session_id=session,
        event_id="'event_' || i",
        sha256="'0'",
        outcome="""'{"message_id": null, "response_ids": [], "first_seq": 1}'""",
    )
    fill(
        sessions.ExternalIdentity,
        user_id="1000 + i",
        issuer="'https://example.org'",
        subject="'subject_' || i",
    )
    fill(
        sessions.QueuedTurn,
        chat_id="'chat_' || i",
        session_id="'sess_' || i",
        user_id="1000 + i",
        event_id="'queued_' || i",
        sha256="'0'",
        inputs="'[]'",
        create="'{}'",
        text="'Later'",
        status="'failed'",
    )
    fill(sessions.PendingInput, session_id="'sess_' || i", event_id="'event_' || i")
    fill(sessions.ApiKey, user_id="1000 + i", prefix="'k' || i", scopes="'[]'")
