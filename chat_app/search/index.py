"""The index of words in messages, maintained by the database itself on every write.

PostgreSQL: a GIN index on the chat and the trigrams of the folded text (extensions pg_trgm and
btree_gin, which the owner of a database may create). SQLite: an FTS5 table with the trigrams of
each folded text, written by triggers, which call a function of this program (`add_function`). The
row number of a message combines the chat and the place in its log, so that a search reads only its
own chat, newest first.

Only the first CHARS characters of a text are indexed: the index is written in the message's
transaction, and its cost grows with the text. Searches look at the same characters.

`prepare` runs after each `migrate`: it creates the index if missing and fills it with existing
messages. On a database without either, a search reads a bounded number of messages
(`search.search`).
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection, connections, transaction

from chat_app.folding import folded, folded_sql

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

logger = logging.getLogger(__name__)

CHARS: Final = 16_384
"""Characters of a text that are indexed. Changing it requires new names below: see FORMER."""
INDEX: Final = "chat_app_message_search_folded"
FORMER: Final = ("chat_app_message_search", "chat_app_message_search_start")
"""The former indexes, of whole texts and of capitals, which `prepare` replaces."""
TEXT: Final = folded_sql(f"left(content, {CHARS})")
"""The indexed expression on PostgreSQL. A query must use the same one to hit the index."""
EXTENSIONS: Final = ("pg_trgm", "btree_gin")
SEQ_BITS: Final = 32
"""A row's number is its chat's number, shifted left by this many bits, plus the `seq`."""

_TABLES: Final = (
    """
CREATE TABLE chat_app_search_chat (
    number INTEGER PRIMARY KEY AUTOINCREMENT, chat_id TEXT NOT NULL UNIQUE)""",
    """
CREATE VIRTUAL TABLE chat_app_search USING fts5(
    content, content='', columnsize=0, detail='none', tokenize='trigram')""",
)
_FOLDED: Final = "chat_app_folded"
_ADD: Final = f"""
    INSERT OR IGNORE INTO chat_app_search_chat (chat_id) VALUES (NEW.chat_id);
    INSERT INTO chat_app_search (rowid, content)
        SELECT (number << {SEQ_BITS}) | NEW.seq, {_FOLDED}(substr(NEW.content, 1, {CHARS}))
        FROM chat_app_search_chat WHERE chat_id = NEW.chat_id;"""  # noqa: S608 constants
_REMOVE: Final = f"""
    INSERT INTO chat_app_search (chat_app_search, rowid, content)
        SELECT 'delete', (number << {SEQ_BITS}) | OLD.seq,
            {_FOLDED}(substr(OLD.content, 1, {CHARS}))
        FROM chat_app_search_chat WHERE chat_id = OLD.chat_id;"""  # noqa: S608 constants
_TRIGGERS: Final = {
    "chat_app_search_folded_added": f"AFTER INSERT ON chat_app_message BEGIN {_ADD} END",
    "chat_app_search_folded_removed": f"AFTER DELETE ON chat_app_message BEGIN {_REMOVE} END",
    "chat_app_search_folded_changed": (
        f"AFTER UPDATE OF content, chat_id, seq ON chat_app_message BEGIN {_REMOVE} {_ADD} END"
    ),
}
_FORMER_TRIGGERS: Final = tuple(
    name.replace("_folded_", infix) for name in _TRIGGERS for infix in ("_", "_start_")
)
_BACKFILL: Final = (
    "INSERT INTO chat_app_search_chat (chat_id) SELECT DISTINCT chat_id FROM chat_app_message",
    f"""
INSERT INTO chat_app_search (rowid, content)
    SELECT (number << {SEQ_BITS}) | seq, {_FOLDED}(substr(content, 1, {CHARS}))
    FROM chat_app_message JOIN chat_app_search_chat USING (chat_id)
    ORDER BY number, seq""",  # noqa: S608 constants
)


def add_function(connection: BaseDatabaseWrapper, **_signal: Any) -> None:
    """Give a new connection to SQLite the function that the triggers call.

    A receiver of connection_created. A program without it can read messages, but not write them.
    """
    if connection.vendor == "sqlite":
        connection.connection.create_function(_FOLDED, 1, folded, deterministic=True)


def prepare(*, using: str = DEFAULT_DB_ALIAS, **_signal: Any) -> None:
    """Create and fill the index if it is missing, broken or outdated.

    A receiver of post_migrate.
    """
    database = connections[using]
    if "chat_app_message" not in database.introspection.table_names():
        return
    is_kept.cache_clear()
    if _exists(database):
        return
    try:
        if database.vendor == "postgresql":
            _prepare_postgresql(database)
        else:
            _prepare_sqlite(using)
    except DatabaseError:
        # Everything else works without it; the log informs the operator.
        logger.warning(
            "messages have no search index: searches read the newest of a chat only", exc_info=True
        )
    is_kept.cache_clear()


@lru_cache(maxsize=8)
def is_kept(name: str) -> bool:
    """Return whether the database of this name has the index."""
    del name
    return _exists(connection)


def _exists(database: BaseDatabaseWrapper) -> bool:
    with database.cursor() as cursor:
        if database.vendor == "postgresql":
            cursor.execute(
                "SELECT count(*) FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid",
                [INDEX],
            )
            return bool(cursor.fetchone()[0])
        cursor.execute(
            "SELECT count(*) FROM sqlite_master WHERE name IN (%s, %s, %s)", list(_TRIGGERS)
        )
        return bool(cursor.fetchone()[0] == len(_TRIGGERS))


def _prepare_postgresql(database: BaseDatabaseWrapper) -> None:
    # A build in a transaction would block servers that are writing.
    concurrently = "" if database.in_atomic_block else "CONCURRENTLY"
    with database.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        (timeout,) = cursor.fetchone()
        cursor.execute("SET statement_timeout = 0")
        try:
            for extension in EXTENSIONS:
                cursor.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}")
            cursor.execute(f"DROP INDEX IF EXISTS {INDEX}, {', '.join(FORMER)}")
            cursor.execute(
                f"CREATE INDEX {concurrently} {INDEX} ON chat_app_message"
                f" USING gin (chat_id, {TEXT} gin_trgm_ops)"
                " WITH (gin_pending_list_limit = 1024)"
            )
        finally:
            cursor.execute("SELECT set_config('statement_timeout', %s, false)", [timeout])


def _prepare_sqlite(using: str) -> None:
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        for name in (*_FORMER_TRIGGERS, *_TRIGGERS):
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}")
        for table in ("chat_app_search", "chat_app_search_chat"):
            cursor.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in _TABLES:
            cursor.execute(statement)
        for name, body in _TRIGGERS.items():
            cursor.execute(f"CREATE TRIGGER {name} {body}")
        for statement in _BACKFILL:
            cursor.execute(statement)
