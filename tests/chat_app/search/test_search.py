"""Searching a chat: words anywhere in a text, in any case, by an index that the database keeps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from chat_app.models import Chat, Message
from chat_app.search import index
from chat_app.search.search import search_messages
from tests import factories

if TYPE_CHECKING:
    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db

TEXTS = (
    "Die ÄRGER-Liste",
    "100% ärger, liste",
    "an_other liste",
    'He said "abc" \\ then left',
    "会议记录在这里",
    "Straße und Fluß",
    "\U0001f600 smile",
)


@pytest.fixture
def person() -> User:
    return factories.user()


@pytest.fixture
def chat(person: User) -> Chat:
    made = factories.chat(person)
    for text in TEXTS:
        factories.message(made, person, text)
    return made


def texts(chat: Chat, *words: str, limit: int = 10) -> list[str]:
    return [message.content for message in search_messages(chat.pk, words, limit=limit)]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["ärger", "LISTE"], [TEXTS[1], TEXTS[0]]),
        (["ste"], [TEXTS[2], TEXTS[1], TEXTS[0]]),
        (["%"], [TEXTS[1]]),
        (["n_o"], [TEXTS[2]]),
        (["nxo"], []),
        (["liste", "%"], [TEXTS[1]]),
        (['"abc"'], [TEXTS[3]]),
        (["\\", "left"], [TEXTS[3]]),
        (["会议"], [TEXTS[4]]),
        (["记录在"], [TEXTS[4]]),
        (["straße"], [TEXTS[5]]),
        (["\U0001f600"], [TEXTS[6]]),
        (["die", "fluß"], []),
        (["nowhere"], []),
        (["\0"], []),
        ([], []),
        (["x" * 5_000], []),
        (["NEAR(", "OR", "*"], []),
    ],
)
def test_words_are_found_anywhere_in_any_case(
    chat: Chat, words: list[str], found: list[str]
) -> None:
    assert texts(chat, *words) == found


def test_the_database_keeps_the_index() -> None:
    assert index.is_kept(str(connection.settings_dict["NAME"]))


def test_the_newest_come_first_and_no_more_than_asked(chat: Chat) -> None:
    assert texts(chat, "liste", limit=2) == [TEXTS[2], TEXTS[1]]
    last = Message.objects.get(content=TEXTS[2])
    found = search_messages(chat.pk, ["liste"], limit=2, without=last.pk)
    assert [message.content for message in found] == [TEXTS[1], TEXTS[0]]


def test_no_other_chat_is_searched(chat: Chat, person: User) -> None:
    other = factories.chat(person)
    factories.message(other, person, "liste elsewhere")
    assert texts(other, "liste") == ["liste elsewhere"]
    assert "liste elsewhere" not in texts(chat, "liste")


def test_what_is_changed_or_deleted_is_found_as_it_is_now(chat: Chat) -> None:
    message = Message.objects.get(content=TEXTS[2])
    message.content = "rewritten wholly"
    message.save()
    assert texts(chat, "an_other") == []
    assert texts(chat, "written") == ["rewritten wholly"]
    message.delete()
    assert texts(chat, "written") == []
    Message.objects.filter(chat=chat).update(content="Einkauf")
    assert texts(chat, "liste") == []
    assert len(texts(chat, "kauf")) == len(TEXTS) - 1
    chat.delete()
    assert texts(chat, "kauf") == []


def _index() -> str:
    """Return what the database says of the index's form: one for each, by name."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
                " AND tbl_name = 'chat_app_message' ORDER BY name"
            )
        else:
            cursor.execute(
                "SELECT indexname, indexdef FROM pg_indexes"
                " WHERE indexname LIKE 'chat_app_message_search%' ORDER BY indexname"
            )
        return repr(cursor.fetchall())


def test_the_beginning_of_a_text_is_indexed_and_searched(person: User) -> None:
    chat = factories.chat(person)
    text = "early " + "ä" * (index.CHARS - 11) + " lastwordbeyond"
    message = factories.message(chat, person, text)
    found = [len(texts(chat, word)) for word in ("early", "last", "lastw", "beyond")]
    assert found == [1, 1, 0, 0]
    # Two letters are read for, in the same characters.
    assert [len(texts(chat, word)) for word in ("ea", "yo")] == [1, 0]
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            for gram, rows in (("ear", 1), ("bey", 0)):
                cursor.execute(
                    "SELECT count(*) FROM chat_app_search WHERE chat_app_search MATCH %s", [gram]
                )
                assert cursor.fetchone()[0] == rows
    message.delete()
    assert texts(chat, "early") == []


@pytest.mark.django_db(transaction=True)
def test_an_index_of_whole_texts_is_replaced(chat: Chat) -> None:
    kept = _index()
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for name, body in index._TRIGGERS.items():
                cursor.execute(f"DROP TRIGGER {name}")
                whole = re.sub(r"substr\((\w+\.content), [^)]*\)", r"\1", body)
                cursor.execute(f"CREATE TRIGGER {name.replace('_start_', '_')} {whole}")
        else:
            cursor.execute(f"DROP INDEX {index.INDEX}")
            cursor.execute(
                f"CREATE INDEX {index.FORMER} ON chat_app_message"
                " USING gin (chat_id, upper(content) gin_trgm_ops)"
            )
    assert "16384" in kept
    assert "16384" not in _index()
    index.prepare()
    assert _index() == kept
    assert texts(chat, "liste") == [TEXTS[2], TEXTS[1], TEXTS[0]]


@pytest.mark.django_db(transaction=True)
def test_an_index_that_was_lost_is_made_again_with_what_was_written_before(
    chat: Chat, person: User
) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            # As a later migration would do it: the triggers go with the table that it replaces.
            for name in index._TRIGGERS:
                cursor.execute(f"DROP TRIGGER {name}")
        else:
            cursor.execute(f"DROP INDEX {index.INDEX}")
    index.is_kept.cache_clear()
    factories.message(chat, person, "written meanwhile")
    assert texts(chat, "meanwhile", "written") == ["written meanwhile"]
    index.prepare()
    assert index.is_kept(str(connection.settings_dict["NAME"]))
    assert texts(chat, "meanwhile") == ["written meanwhile"]
    assert texts(chat, "liste") == [TEXTS[2], TEXTS[1], TEXTS[0]]
