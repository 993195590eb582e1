"""Rows of the ledger."""

from __future__ import annotations

from audit_app.models import AuditRecord
from payments_app import models as ledger
from tests.growth.bulk_rows import FilledTables, ago, fill


def fill_ledger(filled: FilledTables) -> None:
    fill(
        ledger.Account,
        id="1000 + i",
        code="'user:' || i",
        kind="'user'",
        owner_id="1000 + i",
        asset="'USD'",
    )
    fill(
        ledger.Hold,
        id="'hold_' || i",
        account_id="1000 + i",
        amount="1",
        captured="1",
        state="'settled'",
        response_id="'resp_' || i",
        agent_id=f"'{filled.agent.pk}'",
    )
    fill(
        ledger.Transfer,
        id="'tr_' || i",
        kind="'charge'",
        asset="'USD'",
        amount="1",
        hold_id="'hold_' || i",
        response_id="'resp_' || i",
        chat_id=f"'{filled.chat.pk}'",
        agent_id=f"'{filled.agent.pk}'",
        protocol="'websocket'",
    )
    fill(ledger.Entry, transfer_id="'tr_' || i", account_id="1000 + i", amount="1")
    fill(AuditRecord, action="'content.read'", kind="'chat_app.chat'", object_id="'chat_' || i")
    fill(ledger.Idempotency, scope="'s'", key="'key_' || i", sha256="'0'")
    fill(
        ledger.Receipt,
        provider="'manual'",
        external_id="'r' || i",
        state="'failed'",
        account_id="1000 + i",
        amount="1",
        asset="'USD'",
    )
    fill(
        ledger.PaymentToken,
        id="'token_' || i",
        account_id="1000 + i",
        owner_id="1000 + i",
        form="'opaque'",
        audience="'[]'",
        sha256="'sha' || i",
        closed_at=ago("i"),
        expires_at=ago("i"),
    )
    fill(ledger.SpendingLimit, user_id="1000 + i", period="'day'", asset="'USD'", amount="1")
    fill(ledger.Approval, user_id="1000 + i", agent_id="'a'", asset="'USD'", up_to="1")
    fill(
        ledger.TopUpRequest,
        id="'top_' || i",
        provider="'manual'",
        account_id="1000 + i",
        user_id="1000 + i",
        amount="1",
        asset="'USD'",
        state="'credited'",
    )
