"""100,000 rows of every table that grows, written by SQL in seconds, in one open transaction.

GROWTH_ROWS in the environment is another number of rows, for benchmarks.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session as BrowserSession
from django.db import connection, models

from audit_app.models import AuditRecord
from chat_app.models import (
    AgentMention,
    Chat,
    ChatEvent,
    ChatOrigin,
    Content,
    ContentUse,
    InviteLink,
    LinkCard,
    Message,
    MessageDeletion,
    MessageMention,
    MessageRevision,
    MessageThread,
    Participant,
    PersonSettings,
    Pin,
    Presence,
    Profile,
    ProfilePicture,
    Reaction,
    ReadReceipt,
    ShareLink,
    ThreadFollower,
    Transcript,
    Upload,
    UploadPart,
    VoiceCall,
    VoiceCallAgent,
    VoiceCallMember,
)
from chat_app.search import index
from payments_app import models as ledger
from sessions_app import models as sessions
from tests import factories
from tests.growth.costs import analyze

if TYPE_CHECKING:
    from django.db.models import Field, Model

    from agents_app.models import Agent

ROWS: Final = int(os.environ.get("GROWTH_ROWS", "100000"))


@dataclass(frozen=True, kw_only=True)
class FilledTables:
    """The rows that the tests ask for by name; everything else is the mass around them.

    `chat` has 100,000 messages and answers. `reader` has read them all, `newcomer` none; `author`
    wrote every second one, the agent the others.
    """

    chat: Chat
    agent: Agent
    author: User
    reader: User
    newcomer: User
    root: User
    session: sessions.Session


# So many webhooks and deliveries are due: with none nothing more is asked.
DUE: Final = 3


def ago(seconds: str) -> str:
    """Return the SQL of a time so many seconds ago; `seconds` is an expression."""
    if connection.vendor == "postgresql":
        return f"now() - ({seconds}) * interval '1 second'"
    return f"strftime('%Y-%m-%d %H:%M:%f000', 'now', -({seconds}) || ' seconds')"


def fill(model: type[Model], count: int = ROWS, first: int = 1, **values: str) -> None:
    """Insert rows; `values` are SQL expressions by column, in which `i` counts from `first`."""
    columns, expressions = [], []
    for field in model._meta.concrete_fields:
        if isinstance(field, models.AutoField) and field.column not in values:
            continue
        column = str(field.column)
        columns.append(connection.ops.quote_name(column))
        expressions.append(values.pop(column, "") or _neutral(field))
    assert not values, values
    numbers = f"generate_series({first}, {first + count - 1}) AS numbers(i)"
    if connection.vendor == "sqlite":
        numbers = (
            f"(WITH RECURSIVE numbers(i) AS (SELECT {first} UNION ALL"  # noqa: S608 numbers
            f" SELECT i + 1 FROM numbers WHERE i < {first + count - 1})"
            " SELECT i FROM numbers) AS numbers"
        )
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {model._meta.db_table} ({', '.join(columns)})"  # noqa: S608 constants
            f" SELECT {', '.join(expressions)} FROM {numbers}"
        )


def _neutral(field: Field[Any, Any]) -> str:
    """Return an expression for a column of which nothing is said."""
    if field.null:
        return "NULL"
    match field:
        case models.BooleanField():
            return "false"
        case models.DateTimeField():
            return ago("i")
        case models.JSONField():
            return "'{}'"
        case models.IntegerField() | models.ForeignKey():
            return "1"
        case _:
            return "''"


def hexadecimal(expression: str) -> str:
    """Return the SQL of a number as 32 hex digits, as a UUID is kept."""
    if connection.vendor == "postgresql":
        return f"lpad(to_hex({expression}), 32, '0')::uuid"
    return f"printf('%032x', {expression})"


def fill_tables() -> FilledTables:
    """Write everything; the caller holds the transaction that is rolled back."""
    people = {name: factories.user(name) for name in ("author", "reader", "newcomer")}
    agent = factories.agent("echo")
    chat = factories.chat(*people.values(), agent, title="Long")
    session = factories.session(people["author"], chat, agent=agent, chat_scoped=True)
    filled = FilledTables(
        chat=chat, agent=agent, session=session, root=factories.superuser(), **people
    )
    _without_triggers()
    _fill_chats(filled)
    while index.fill():
        pass
    _fill_sessions(filled)
    _fill_ledger(filled)
    analyze()
    return filled


def _without_triggers() -> None:
    """Let rows be written without the rules of the ledger, until the rollback."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL session_replication_role = replica")
            cursor.execute("SET LOCAL statement_timeout = 0")
        else:
            cursor.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'ledger_%'"
            )
            for (name,) in cursor.fetchall():
                cursor.execute(f"DROP TRIGGER {name}")


def _fill_chats(filled: FilledTables) -> None:
    chat, agent, author = filled.chat, filled.agent, filled.author
    fill(User, id="1000 + i", username="'person' || i", is_active="true")
    fill(Chat, id="'chat_' || i", kind="'session'", payer="'asker'", created_by_id="1000 + i")
    fill(
        Participant, chat_id="'chat_' || i", user_id="1000 + i", role="'owner'", trigger="'mention'"
    )
    # The author asks, the agent answers.
    fill(
        Message,
        id="'msg_' || i",
        chat_id=f"'{chat.pk}'",
        seq="i",
        role="CASE i % 2 WHEN 1 THEN 'user' ELSE 'assistant' END",
        sender_user_id=f"CASE i % 2 WHEN 1 THEN {author.pk} END",
        sender_agent_id=f"CASE i % 2 WHEN 0 THEN '{agent.pk}' END",
        content="'Message number ' || i || ' speaks of the weather in the mountains'",
        content_items="'[]'",
        response_id="CASE i % 2 WHEN 0 THEN 'resp_' || i ELSE '' END",
        status="'completed'",
        created_at=ago(f"{ROWS} - i"),
    )
    fill(
        ChatEvent,
        chat_id=f"'{chat.pk}'",
        seq="i",
        type="CASE i % 2 WHEN 0 THEN 'response.done' ELSE 'message.created' END",
        response_id="CASE i % 2 WHEN 0 THEN 'resp_' || i ELSE '' END",
        payload="""'{"type": "response.done", "event_id": "e", "timestamp": 1, "response": {}}'""",
    )
    Chat.objects.filter(pk=chat.pk).update(last_seq=ROWS)
    fill(MessageRevision, message_id="'msg_' || i", number="1", seq="i")
    fill(Reaction, message_id="'msg_' || i", user_id="1000 + i", emoji="'x'")
    fill(AgentMention, chat_id="'chat_' || i", pair="'a b'")
    fill(Pin, message_id="'msg_' || i", chat_id="'chat_' || i", seq="i")
    # Every message has a thread; the author follows all of them, and has read none.
    fill(
        MessageThread,
        root_id="'msg_' || i",
        chat_id=f"'{chat.pk}'",
        replies="1",
        last_seq="i",
        faces="'[]'",
    )
    fill(ThreadFollower, thread_id="'msg_' || i", user_id=str(author.pk))
    # Every message mentions the author, and the last one the reader of the chat.
    fill(
        MessageMention,
        message_id="'msg_' || i",
        chat_id=f"'{chat.pk}'",
        user_id=str(author.pk),
        seq="i",
    )
    fill(MessageDeletion, message_id="'msg_' || i", chat_id="'chat_' || i")
    fill(
        ChatOrigin,
        chat_id="'chat_' || i",
        source_id=f"'{chat.pk}'",
        source_message="'msg_' || i",
        messages="1",
        seq="2",
        agents_left_out="'[]'",
        forked_by_id="1000 + i",
    )
    fill(ReadReceipt, chat_id="'chat_' || i", user_id="1000 + i", message_id="'msg_' || i", seq="i")
    ReadReceipt.objects.create(chat=chat, user=filled.reader, message_id=f"msg_{ROWS}", seq=ROWS)
    fill(Content, id=hexadecimal("i"), sha256="'sha' || i", mime_type="'image/png'")
    fill(ContentUse, content_id=hexadecimal("i"), chat_id="'chat_' || i")
    fill(
        VoiceCall,
        id="i",
        chat_id="'chat_' || i",
        call_id="'call_' || i",
        state="'ended'",
        media="'[]'",
        ended_at=ago("i"),
        reason="'ended'",
    )
    fill(
        VoiceCallMember,
        call_id="i",
        user_id="1000 + i",
        state="'left'",
    )
    fill(
        VoiceCallAgent,
        call_id="i",
        agent_id=f"'{filled.agent.pk}'",
        host_id="1000 + i",
        joined_at=ago("i"),
        left_at=ago("i"),
        reason="'ended'",
    )
    fill(
        Upload,
        id=hexadecimal("i"),
        owner_id="1000 + i",
        length="9",
        mime_type="'text/plain'",
        expires_at=ago("i"),
    )
    fill(UploadPart, upload_id=hexadecimal("i"), start="0", blob="'x'")
    fill(Transcript, content_id=hexadecimal("i"), state="'done'", text="'x'")
    fill(LinkCard, url_sha256="'card' || i", state="'read'")
    end = ago("-1000000")
    fill(ShareLink, chat_id=f"'{chat.pk}'", token_sha256="'s' || i", until_seq="i", expires_at=end)
    fill(
        InviteLink,
        chat_id=f"'{chat.pk}'",
        token_sha256="'i' || i",
        role="'member'",
        most_uses="1",
        used_count="1",
        expires_at=end,
        revoked_at=ago("i"),
    )
    fill(Presence, id="'presence_' || i", user_id="1000 + i", seen_at=ago("0"))
    fill(PersonSettings, user_id="1000 + i", theme="'dark'")
    fill(
        Profile,
        user_id="1000 + i",
        display_name="'Person ' || i",
        name_key="'person' || i",
        picture_version="'abc'",
    )
    empty = "''" if connection.vendor == "postgresql" else "x''"
    fill(ProfilePicture, profile_id="1000 + i", data=empty)
    fill(BrowserSession, session_key="'key' || i", expire_date=ago("-i"))
    fill(
        LogEntry,
        user_id="1000 + i",
        content_type_id=str(ContentType.objects.get_for_model(Chat).pk),
        action_flag="2",
    )


def _fill_sessions(filled: FilledTables) -> None:
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


def _fill_ledger(filled: FilledTables) -> None:
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
