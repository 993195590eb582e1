"""Searching all messages for words, for operators who may view contents.

The index yields at most CANDIDATES messages that may contain the words, on SQLite from the newest
chats; then the text decides. Without an index nothing is found.
"""

from __future__ import annotations

from typing import Final

from django.db import connection

from chat_app.folding import folded
from chat_app.models import Message
from chat_app.search import index
from chat_app.search.search import (
    conditions,
    fts_match,
    has_words,
    matching_grams,
    searched_words,
)

CANDIDATES: Final = 500


def find_messages(text: str, *, limit: int) -> list[Message]:
    """Return messages with all words of a text, with their chats, newest first.

    Words of fewer than three letters alone find nothing.
    """
    words = searched_words(text.split())
    grams = matching_grams(words)
    if not grams or not index.is_kept(str(connection.settings_dict["NAME"])):
        return []
    rows = Message.objects.select_related("chat").filter(deleted_at__isnull=True)
    if connection.vendor == "postgresql":
        candidates = list(rows.filter(pk__in=_of_postgresql(words)))
    else:
        candidates = [
            message
            for chat_id, seqs in _of_sqlite(grams).items()
            for message in rows.filter(chat_id=chat_id, seq__in=seqs)
        ]
    folded_words = [folded(word) for word in words]
    hits = [message for message in candidates if has_words(message, folded_words)]
    return sorted(hits, key=lambda message: message.created_at, reverse=True)[:limit]


def _of_postgresql(words: list[str]) -> list[str]:
    likes, patterns = conditions(words)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT id FROM chat_app_message WHERE {likes} LIMIT %s",  # noqa: S608 placeholders only
            [*patterns, CANDIDATES],
        )
        return [pk for (pk,) in cursor.fetchall()]


def _of_sqlite(grams: list[str]) -> dict[str, list[int]]:
    """Return log places by chat id, those of messages that the index lacks included."""
    rows = index.due(limit=CANDIDATES)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT rowid FROM chat_app_search WHERE chat_app_search MATCH %s"
            " ORDER BY rowid DESC LIMIT %s",
            [fts_match(grams), CANDIDATES],
        )
        rows += [rowid for (rowid,) in cursor.fetchall()]
        numbers = {rowid >> index.SEQ_BITS for rowid in rows}
        marks = ", ".join(["%s"] * len(numbers)) or "NULL"
        cursor.execute(
            f"SELECT number, chat_id FROM chat_app_search_chat WHERE number IN ({marks})",  # noqa: S608 placeholders only
            list(numbers),
        )
        chats = dict(cursor.fetchall())
    by_chat: dict[str, list[int]] = {}
    for rowid in rows:
        chat_id = chats.get(rowid >> index.SEQ_BITS)
        if chat_id is not None:
            by_chat.setdefault(chat_id, []).append(rowid & ((1 << index.SEQ_BITS) - 1))
    return by_chat
