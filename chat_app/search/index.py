"""The index of words in messages, maintained by the database itself on every write.

PostgreSQL: a GIN index on the chat and the trigrams of the folded text (extensions pg_trgm and
btree_gin, which the owner of a database may create). SQLite: an FTS5 table with the trigrams of
each folded text. SQLite cannot fold, so triggers note which messages are to be indexed, and `fill`
indexes them a moment later; until then searches read them. The row number of a message combines the
chat and the place in its log, so that a search reads only its own chat, newest first.

Only the first CHARS characters of a text are indexed, because the cost grows with the text.
Searches look at the same characters.

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

_NAMES: Final = ("chat_app_search", "chat_app_search_due", "chat_app_search_chat")
_TABLES: Final = (
    """
CREATE TABLE chat_app_search_chat (
    number INTEGER PRIMARY KEY AUTOINCREMENT, chat_id TEXT NOT NULL UNIQUE)""",
    "CREATE TABLE chat_app_search_due (id INTEGER PRIMARY KEY)",
    """
CREATE VIRTUAL TABLE chat_app_search USING fts5(
    content, columnsize=0, detail='none', tokenize='trigram')""",
)
_PLACE: Final = f"""(
        SELECT (number << {SEQ_BITS}) | {{row}}.seq FROM chat_app_search_chat
        WHERE chat_id = {{row}}.chat_id)"""  # noqa: S608 constants
_ADD: Final = f"""
    INSERT OR IGNORE INTO chat_app_search_chat (chat_id) VALUES (NEW.chat_id);
    INSERT OR IGNORE INTO chat_app_search_due (id) VALUES ({_PLACE.format(row="NEW")});"""  # noqa: S608 constants
_REMOVE: Final = f"""
    DELETE FROM chat_app_search WHERE rowid = {_PLACE.format(row="OLD")};
    DELETE FROM chat_app_search_due WHERE id = {_PLACE.format(row="OLD")};"""  # noqa: S608 constants
_TRIGGERS: Final = {
    "chat_app_search_due_added": f"AFTER INSERT ON chat_app_message BEGIN {_ADD} END",
    "chat_app_search_due_removed": f"AFTER DELETE ON chat_app_message BEGIN {_REMOVE} END",
    "chat_app_search_due_changed": (
        f"AFTER UPDATE OF content, chat_id, seq ON chat_app_message BEGIN {_REMOVE} {_ADD} END"
    ),
}
_FORMER_TRIGGERS: Final = tuple(
    name.replace("_due_", infix) for name in _TRIGGERS for infix in ("_", "_start_", "_folded_")
)
_START: Final = f"substr(content, 1, {CHARS})"
_DUE: Final = f"""
    FROM chat_app_search_due due
    JOIN chat_app_search_chat ON number = due.id >> {SEQ_BITS}
    JOIN chat_app_message message ON message.chat_id = chat_app_search_chat.chat_id
        AND seq = due.id & {(1 << SEQ_BITS) - 1}"""
FILLED_CHARS: Final = 50_000
"""The characters that one call of `fill` indexes: SQLite writes nothing else meanwhile."""
_FILLED_ROWS: Final = 500


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
        for table in _NAMES:
            cursor.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in _TABLES:
            cursor.execute(statement)
        for name, body in _TRIGGERS.items():
            cursor.execute(f"CREATE TRIGGER {name} {body}")
        cursor.execute(
            "INSERT INTO chat_app_search_chat (chat_id)"
            " SELECT DISTINCT chat_id FROM chat_app_message"
        )
        cursor.execute(
            f"INSERT INTO chat_app_search_due (id) SELECT (number << {SEQ_BITS}) | seq"  # noqa: S608 constants
            " FROM chat_app_message JOIN chat_app_search_chat USING (chat_id)"
        )
    while fill(using=using):
        pass


def fill(*, using: str = DEFAULT_DB_ALIAS) -> int:
    """Index some of the messages that wait for it, the newest first; return how many (SQLite)."""
    database = connections[using]
    if database.vendor != "sqlite" or not is_kept(str(database.settings_dict["NAME"])):
        return 0
    with database.cursor() as cursor:
        cursor.execute(
            f"SELECT due.id, length({_START}) {_DUE} ORDER BY due.id DESC LIMIT {_FILLED_ROWS}"
        )
        waiting = cursor.fetchall()
    total = 0
    ids: list[int] = []
    for place, chars in waiting:
        total += chars
        if ids and total > FILLED_CHARS:
            break
        ids.append(place)
    if ids:
        with transaction.atomic(using=using), database.cursor() as cursor:
            _index(cursor, ids)
    return len(ids)


def _index(cursor: Any, ids: list[int]) -> None:
    marks = ", ".join(["%s"] * len(ids))
    cursor.execute(f"SELECT due.id, {_START} {_DUE} WHERE due.id IN ({marks})", ids)
    texts = [(place, folded(text)) for place, text in cursor.fetchall()]
    cursor.execute(f"DELETE FROM chat_app_search_due WHERE id IN ({marks})", ids)  # noqa: S608 placeholders only
    cursor.executemany("INSERT INTO chat_app_search (rowid, content) VALUES (%s, %s)", texts)


def due(*, above: int = 0, below: int = 1 << 62, limit: int) -> list[int]:
    """Return the row numbers of messages that wait to be indexed, the newest first (SQLite)."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM chat_app_search_due WHERE id > %s AND id < %s"
            " ORDER BY id DESC LIMIT %s",
            [above, below, limit],
        )
        return [place for (place,) in cursor.fetchall()]
