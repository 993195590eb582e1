"""Searching the messages of a chat for words, for the people and agents in it.

A word matches anywhere in the first `index.CHARS` characters of a text, in any case, width and
composition (`chat_app.folding`). Words with three letters or digits in a row are looked up in the
index (`chat_app.search.index`). Shorter words, or all words on a database without an index, require
reading: then only the newest WINDOW messages of the chat are searched.
"""

from __future__ import annotations

import heapq
import re
from itertools import islice
from typing import TYPE_CHECKING, Final

from django.db import connection
from django.db.models import Q

from chat_app.folding import composed, folded, folded_sql
from chat_app.models import Message
from chat_app.search import index

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from django.db.models import QuerySet

WINDOW: Final = 10_000
"""How many messages are read when the index cannot help."""
RECENT: Final = 1_000
"""How many messages PostgreSQL reads before the unordered index: often they suffice."""
GRAM: Final = 3
GRAMS: Final = 24
"""How many trigrams of a word are looked up; the text itself decides."""
BATCH: Final = 200

_INDEXED: Final = re.compile(r"[^\W_]{3}")
_PATTERN: Final = folded_sql("%s::text")
_SPECIAL: Final = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})


def search_messages(
    chat_id: str,
    words: Iterable[str],
    *,
    limit: int,
    without: str | None = None,
    filters: Q | None = None,
) -> list[Message]:
    """Return the messages of a chat that contain all of the words, newest first.

    `without` is the id of a message to leave out, `filters` a further condition. No words find
    nothing.
    """
    words = searched_words(words)
    folded_words = [folded(word) for word in words]
    hits: list[Message] = []
    if not folded_words:
        return hits
    rows = Message.objects.filter(filters or Q(), chat_id=chat_id, replaced_by__isnull=True)
    for message in _candidates(rows, chat_id, words, limit=limit + 1):
        if message.pk != without and has_words(message, folded_words):
            hits.append(message)
            if len(hits) == limit:
                break
    return _whole(hits)


def searched_words(words: Iterable[str]) -> list[str]:
    """Return the words of a search as written, without what no text contains."""
    letters = [composed(word.replace("\0", "")) for word in words]
    return [word for word in letters if word]


def has_words(message: Message, words: Iterable[str]) -> bool:
    """Return whether a message contains all of these folded words where it is searched."""
    text = folded(message.content[: index.CHARS])
    return all(word in text for word in words)


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
    """Yield messages that may contain the words, newest first."""
    indexed = [word for word in words if _INDEXED.search(folded(word))]
    if not indexed or not index.is_kept(str(connection.settings_dict["NAME"])):
        yield from _newest(messages, words, window=WINDOW, limit=limit)
    elif connection.vendor == "postgresql":
        yield from _of_postgresql(messages, words, limit=limit)
    else:
        yield from _of_sqlite(messages, chat_id, words)


def _newest(
    messages: QuerySet[Message], words: Sequence[str], *, window: int, limit: int
) -> Iterator[Message]:
    """Yield the newest messages of a chat, at most a window of them."""
    newest = messages.order_by("-seq")[:window]
    if connection.vendor == "postgresql":
        ids = _matching(newest, words, limit=limit)
        newest = Message.objects.filter(pk__in=ids).order_by("-seq")
        yield from newest
        return
    # SQLite cannot compare folded texts: every text is read, but other columns only for hits.
    yield from newest.only("content").iterator(chunk_size=BATCH)


def _whole(hits: list[Message]) -> list[Message]:
    """Return found messages with all columns, leaving out any deleted in the meantime."""
    if not any(message.get_deferred_fields() for message in hits):
        return hits
    rows = Message.objects.in_bulk([message.pk for message in hits])
    return [rows[message.pk] for message in hits if message.pk in rows]


def _matching(messages: QuerySet[Message], words: Sequence[str], *, limit: int) -> list[str]:
    """Return the ids of the newest of some messages that contain the words (PostgreSQL)."""
    rows, parameters = messages.values("id", "seq", "content").query.sql_with_params()
    likes, patterns = conditions(words)
    # Materialised, or the planner might read the chat backwards and wait for the last hit.
    statement = f"""
WITH found AS MATERIALIZED (SELECT id, seq FROM ({rows}) message WHERE {likes})
SELECT id FROM found ORDER BY seq DESC LIMIT %s"""  # noqa: S608 placeholders only
    with connection.cursor() as cursor:
        cursor.execute(statement, [*parameters, *patterns, limit])
        return [pk for (pk,) in cursor.fetchall()]


def _of_postgresql(
    messages: QuerySet[Message], words: Sequence[str], *, limit: int
) -> Iterator[Message]:
    """Yield hits among recent messages, then from the index: frequent words never need it."""
    recent = list(_newest(messages, words, window=RECENT, limit=limit))
    yield from recent
    if len(recent) == limit:
        return
    ids = _matching(messages.order_by(), words, limit=limit)
    recent_ids = {message.pk for message in recent}
    yield from Message.objects.filter(pk__in=set(ids) - recent_ids).order_by("-seq")


def _of_sqlite(
    messages: QuerySet[Message], chat_id: str, words: Sequence[str]
) -> Iterator[Message]:
    """Yield hits from the index and the messages it lacks, from the end of the chat backwards."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT number FROM chat_app_search_chat WHERE chat_id = %s", [chat_id])
        row = cursor.fetchone()
    if row is None:
        return
    first = row[0] << index.SEQ_BITS
    before = first + (1 << index.SEQ_BITS)
    due = index.due(above=first, below=before, limit=WINDOW)
    places = heapq.merge(due, _hits(matching_grams(words), first, before), reverse=True)
    while seqs := [place - first for place in islice(places, BATCH)]:
        yield from messages.filter(seq__in=seqs).order_by("-seq")


def _hits(grams: Sequence[str], first: int, before: int) -> Iterator[int]:
    """Yield the numbers of rows between two others that have all trigrams, the newest first."""
    match = fts_match(grams)
    # A frequent word next to one too short for the index yields many candidates.
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
        yield from rows
        before = rows[-1]


def fts_match(grams: Iterable[str]) -> str:
    """Return the FTS5 query for texts with all of these trigrams."""
    return " AND ".join('"{}"'.format(gram.replace('"', '""')) for gram in grams)


def conditions(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the SQL for PostgreSQL by which a text contains the words, and its parameters."""
    like = f"{index.TEXT} LIKE {_PATTERN}"
    patterns = [f"%{word.translate(_SPECIAL)}%" for word in words]
    parameters = [pattern for pattern in patterns for _ in range(_PATTERN.count("%s"))]
    return " AND ".join([like] * len(words)), parameters


def matching_grams(words: Iterable[str]) -> list[str]:
    """Return the trigrams that a folded text with these words contains; short words have none."""
    return list(dict.fromkeys(gram for word in words for gram in _grams(folded(word))))


def _grams(word: str) -> list[str]:
    return [word[at : at + GRAM] for at in range(min(len(word) - GRAM + 1, GRAMS))]
