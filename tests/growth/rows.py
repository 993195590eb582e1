"""100,000 rows of every table that grows, written by SQL in seconds, in one open transaction."""

from __future__ import annotations

from django.db import connection

from chat_app.search import index
from tests import factories
from tests.growth.bulk_rows import FilledTables
from tests.growth.chat_rows import fill_chats
from tests.growth.costs import analyze
from tests.growth.ledger_rows import fill_ledger
from tests.growth.session_rows import fill_sessions


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
    fill_chats(filled)
    while index.fill():
        pass
    fill_sessions(filled)
    fill_ledger(filled)
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
