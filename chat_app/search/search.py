"""Searching the messages of a chat for words: what a person or an agent in it may ask.

A word is found anywhere in the first `search_index.CHARS` characters of a text, in any case. Words
of three letters or digits in a row are looked up in the index (`chat_app.search.index`). Shorter
ones can only be read for, as can all words where a database has no index: then the newest WINDOW
messages of the chat are searched.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from django.db import connection
from django.db.models import Q

from chat_app.models import Message
from chat_app.search import index

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from django.db.models import QuerySet

WINDOW: Final = 10_000
"""Messages that are read where the index cannot help."""
RECENT: Final = 1_000
"""Messages that PostgreSQL reads before the index, which knows no order: often they suffice."""
GRAM: Final = 3
GRAMS: Final = 24
"""Trigrams of a word that are looked up; the text itself decides."""
BATCH: Final = 200

_INDEXED: Final = re.compile(r"[^\W_]{3}")
_SPECIAL: Final = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})


def search_messages(
    chat_id: str,
    words: Iterable[str],
    *,
    limit: int,
    without: str | None = None,
    filters: Q | None = None,
) -> list[Message]:
    """Return the messages of a chat that have all of the words, newest first.

    `without` is the id of a message that is left out, `filters` a condition that messages meet
    too. No words find nothing.
    """
    wanted = [word.replace("\0", "").lower() for word in words]
    wanted = [word for word in wanted if word]
    found: list[Message] = []
    if not wanted:
        return found
    rows = Message.objects.filter(filters or Q(), chat_id=chat_id, replaced_by__isnull=True)
    for message in _candidates(rows, chat_id, wanted, limit=limit + 1):
        text = message.content[: index.CHARS].lower()
        if message.pk != without and all(word in text for word in wanted):
            found.append(message)
            if len(found) == limit:
                break
    return _whole(found)


def filtered_messages(chat_id: str, filters: Q, *, limit: int) -> list[Message]:
    """Return the messages among the newest WINDOW of a chat that meet a condition, newest first."""
    there = Message.objects.filter(
        chat_id=chat_id, deleted_at__isnull=True, replaced_by__isnull=True
    ).order_by("-seq")
    first = there.values_list("seq", flat=True)[WINDOW : WINDOW + 1].first()
    return list(there.filter(filters, seq__gt=first or 0)[:limit])


def _candidates(
    messages: QuerySet[Message], chat_id: str, words: Sequence[str], *, limit: int
) -> Iterator[Message]:
    """Yield messages that may have the words, newest first."""
    indexed = [word for word in words if _INDEXED.search(word)]
    if not indexed or not index.is_kept(str(connection.settings_dict["NAME"])):
        yield from _newest(messages, words, window=WINDOW, limit=limit)
    elif connection.vendor == "postgresql":
        yield from _of_postgresql(messages, words, limit=limit)
    else:
        yield from _of_sqlite(messages, chat_id, [word for word in words if len(word) >= GRAM])


def _newest(
    messages: QuerySet[Message], words: Sequence[str], *, window: int, limit: int
) -> Iterator[Message]:
    """Read the newest messages of a chat, and no more than a window of them."""
    newest = messages.order_by("-seq")[:window]
    if connection.vendor == "postgresql":
        ids = _matching(newest, words, limit=limit)
        newest = Message.objects.filter(pk__in=ids).order_by("-seq")
        yield from newest
        return
    # SQLite knows the case of ASCII only: there every text is read, and the rest of the hits alone.
    yield from newest.only("content").iterator(chunk_size=BATCH)


def _whole(found: list[Message]) -> list[Message]:
    """Return found messages with all of their columns; one that was deleted since is left out."""
    if not any(message.get_deferred_fields() for message in found):
        return found
    rows = Message.objects.in_bulk([message.pk for message in found])
    return [rows[message.pk] for message in found if message.pk in rows]


def _matching(messages: QuerySet[Message], words: Sequence[str], *, limit: int) -> list[str]:
    """Return the ids of the newest of some messages that have the words (PostgreSQL)."""
    rows, parameters = messages.values("id", "seq", "content").query.sql_with_params()
    likes = " AND ".join([f"{index.TEXT} LIKE upper(%s)"] * len(words))
    patterns = [pattern_of(word) for word in words]
    # Materialised, or the planner might read the chat backwards and wait for the last hit.
    statement = f"""
WITH found AS MATERIALIZED (SELECT id, seq FROM ({rows}) message WHERE {likes})
SELECT id FROM found ORDER BY seq DESC LIMIT %s"""  # noqa: S608 marks only
    with connection.cursor() as cursor:
        cursor.execute(statement, [*parameters, *patterns, limit])
        return [pk for (pk,) in cursor.fetchall()]


def _of_postgresql(
    messages: QuerySet[Message], words: Sequence[str], *, limit: int
) -> Iterator[Message]:
    """Read the newest, then what the index has: a word that is frequent now needs no index."""
    recent = list(_newest(messages, words, window=RECENT, limit=limit))
    yield from recent
    if len(recent) == limit:
        return
    ids = _matching(messages.order_by(), words, limit=limit)
    known = {message.pk for message in recent}
    yield from Message.objects.filter(pk__in=set(ids) - known).order_by("-seq")


def _of_sqlite(
    messages: QuerySet[Message], chat_id: str, words: Sequence[str]
) -> Iterator[Message]:
    """Read what the index has, from the end of the chat backwards."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT number FROM chat_app_search_chat WHERE chat_id = %s", [chat_id])
        row = cursor.fetchone()
    if row is None:
        return
    first = row[0] << index.SEQ_BITS
    grams = matching_grams(words)
    match = " AND ".join('"{}"'.format(gram.replace('"', '""')) for gram in grams)
    before = first + (1 << index.SEQ_BITS)
    # A frequent word beside one that is too short for the index has many candidates.
    for _ in range(WINDOW // BATCH):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT rowid FROM chat_app_search WHERE chat_app_search MATCH %s"
                " AND rowid > %s AND rowid < %s ORDER BY rowid DESC LIMIT %s",
                [match, first, before, BATCH],
            )
            rows = [rowid for (rowid,) in cursor.fetchall()]
        if not rows:
            return
        seqs = [rowid - first for rowid in rows]
        yield from messages.filter(seq__in=seqs).order_by("-seq")
        before = rows[-1]


def pattern_of(word: str) -> str:
    """Return the pattern of LIKE for a word anywhere in a text."""
    return f"%{word.translate(_SPECIAL)}%"


def matching_grams(words: Iterable[str]) -> list[str]:
    """Return the trigrams that a text with these words has; short words have none."""
    return list(dict.fromkeys(gram for word in words for gram in _grams(word)))


def _grams(word: str) -> list[str]:
    return [word[at : at + GRAM] for at in range(min(len(word) - GRAM + 1, GRAMS))]
