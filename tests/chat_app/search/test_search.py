"""Searching a chat: words anywhere in a text, in any case, by an index that the database keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection

from chat_app.folding import folded
from chat_app.models import Chat, Message
from chat_app.search import index, search
from chat_app.search.everywhere import find_messages
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
    new_chat = factories.chat(person)
    for text in TEXTS:
        factories.message(new_chat, person, text)
    return new_chat


def texts(chat: Chat, *words: str, limit: int = 10) -> list[str]:
    return [message.content for message in search_messages(chat.pk, words, limit=limit)]


@pytest.mark.parametrize(
    ("words", "expected"),
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
    chat: Chat, words: list[str], expected: list[str]
) -> None:
    assert texts(chat, *words) == expected


# Texts, each with what is looked for in it, and what is not.
ALIKE = [
    ("caf\u00e9", ["cafe\u0301", "CAFÉ", "CAFE\u0301"]),
    ("cafe\u0301 noir", ["café", "CAFÉ"]),
    ("A\u030angstro\u0308m \u212b", ["ångström", "Å", "\u212b", "A\u030angstr\u00f6m"]),
    ("\uff26\uff35\uff2c\uff2c width", ["full", "\uff46\uff55\uff4c\uff4c", "FULL WIDTH"]),
    ("full width", ["\uff26\uff35\uff2c\uff2c", "\uff57\uff49\uff44\uff54\uff48"]),
    ("\uff76\uff9e\uff72\uff84\uff9e", ["ガイド", "\u30ab\u3099イド"]),
    ("ガイド", ["\uff76\uff9e\uff72\uff84\uff9e"]),
    ("Hauptstraße", ["STRASSE", "strasse", "stra\u1e9ee", "HAUPTSTRA\u1e9eE"]),
    ("STRASSE", ["straße", "stra\u1e9ee"]),
    ("\u0130stanbul", ["istanbul", "ISTANBUL", "\u0131stanbul", "I\u0307stanbul"]),
    ("\u0131sparta", ["Isparta", "isparta", "ISPARTA", "\u0130SPARTA"]),
    ("ISTANBUL", ["\u0130stanbul", "\u0131stanbul"]),
    (
        "\u039f\u03b4\u03cc\u03c2 \u03a3\u03c9\u03ba\u03c1\u03ac\u03c4\u03bf\u03c5\u03c2",
        [
            "\u039f\u0394\u038c\u03a3",
            "\u03bf\u03b4\u03cc\u03c3",
            "\u03c3\u03c9\u03ba\u03c1\u03ac\u03c4\u03bf\u03c5\u03c3",
        ],
    ),
    ("\u0391\u0399\u039d\u0395\u0399\u0391\u03a3", ["\u03b1\u03b9\u03bd\u03b5\u03b9\u03b1\u03c2"]),
    (
        "\u1f84\u03b4\u03b5\u03b9\u03bd",
        ["\u1f8c\u0394\u0395\u0399\u039d", "\u1f04\u03b9\u03b4\u03b5\u03b9\u03bd"],
    ),
    ("Donau\u00addampf\u00adschiff", ["donaudampf", "dampfschiff", "DONAUDAMPFSCHIFF"]),
    ("Donaudampfschiff", ["donau\u00addampf", "dampf\u200bschiff", "\ufeffdonau"]),
    (
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        ["\u0645\u06cc\u062e\u0648\u0627\u0647\u0645"],
    ),
    ("zero\u200bwidth\u2060joined", ["zerowidthjoined"]),
    ("of\ufb01ce \ufb02ow", ["office", "flow", "OFFICE"]),
    ("H\u2082O and m\u00b2", ["h2o", "m2"]),
    ("\u2167 \u2460", ["viii", "1"]),
    (
        "\u041a\u0418\u0415\u0412 \u0419\u043e\u0434",
        ["\u043a\u0438\u0435\u0432", "\u0438\u0306\u043e\u0434"],
    ),
    ("\ud55c\uae00 \ubb38\uc11c", ["\u1112\u1161\u11ab\u1100\u1173\u11af"]),
    ("\u1112\u1161\u11ab\u1100\u1173\u11af", ["\ud55c\uae00"]),
    ("\u0e01\u0e33\u0e25\u0e31\u0e07", ["\u0e01\u0e4d\u0e32\u0e25\u0e31\u0e07"]),
    ("Vi\u1ec7t Nam", ["vie\u0323\u0302t", "VI\u1ec6T"]),
    ("\U00010412\U00010430", ["\U0001043a\U00010430"]),
    ("\u13a0\u13a1\u13a2", ["\u13a0\u13a1\u13a2", "\uab70\uab71\uab72"]),
    ("100\uff05 \uff3cpath\uff3f", ["100%", "\\path_", "\uff3cpath", "00\uff05"]),
    ("non\u00a0breaking\u3000space", ["non breaking space"]),
    ("\u2764\ufe0f heart", ["\u2764", "\u2764\ufe0e"]),
    ("\u01c4ungla \u01c6", ["d\u017eungla", "D\u017dUNGLA", "\u01c5"]),
]


@pytest.mark.parametrize("variant", ["with the index", "without"])
@pytest.mark.parametrize(("text", "words"), ALIKE)
def test_texts_are_compared_in_one_case_width_and_composition(
    person: User, text: str, words: list[str], variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_kept = variant == "with the index"
    chat = factories.chat(person)
    factories.message(chat, person, text)
    factories.message(chat, person, "something else entirely")
    while index.fill():
        pass
    monkeypatch.setattr(index, "is_kept", lambda _name: is_kept)
    monkeypatch.setattr(search, "RECENT", 1)  # PostgreSQL looks the first message up in the index.
    for word in words:
        assert texts(chat, word) == [text], ascii(word)
        is_indexed = is_kept and any(len(part) >= 3 for part in folded(word).split())
        everywhere = [message.content for message in find_messages(word, limit=9)]
        assert everywhere == ([text] if is_indexed else []), ascii(word)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("resume", "r\u00e9sum\u00e9"),
        ("\u0627\u0644\u0639\u0631\u0628", "\u0627\u0644\u063a\u0631\u0628"),
        ("masse", "ma\u0161e"),
        ("\u00e4rger", "aerger"),
        ("abc", "ab\u2009c"),
        ("anything", "\u00ad\u200b"),
    ],
)
def test_different_letters_are_not_alike(person: User, text: str, word: str) -> None:
    chat = factories.chat(person)
    factories.message(chat, person, text)
    assert texts(chat, word) == []


def test_the_database_keeps_the_index() -> None:
    assert index.is_kept(str(connection.settings_dict["NAME"]))


def test_the_newest_come_first_and_no_more_than_asked(chat: Chat) -> None:
    assert texts(chat, "liste", limit=2) == [TEXTS[2], TEXTS[1]]
    last = Message.objects.get(content=TEXTS[2])
    messages = search_messages(chat.pk, ["liste"], limit=2, without=last.pk)
    assert [message.content for message in messages] == [TEXTS[1], TEXTS[0]]


@pytest.mark.django_db(transaction=True)
def test_a_message_is_found_before_and_after_it_is_indexed(chat: Chat, person: User) -> None:
    while index.fill():
        pass
    late = [factories.message(chat, person, f"liste number {number}") for number in range(3)]
    late_texts = [message.content for message in reversed(late)]
    assert texts(chat, "liste") == [*late_texts, TEXTS[2], TEXTS[1], TEXTS[0]]
    assert [message.content for message in find_messages("number", limit=9)] == late_texts
    # An older message that waits again comes in its place.
    Message.objects.filter(content=TEXTS[1]).update(content="100% Liste")
    assert texts(chat, "liste", "e") == [*late_texts, TEXTS[2], "100% Liste", TEXTS[0]]
    # PostgreSQL indexes with each write.
    assert (index.fill(), index.fill()) == ((4, 0) if connection.vendor == "sqlite" else (0, 0))
    assert texts(chat, "liste") == [*late_texts, TEXTS[2], "100% Liste", TEXTS[0]]
    assert [message.content for message in find_messages("number", limit=9)] == late_texts
    late[1].delete()
    assert texts(chat, "number") == [late_texts[0], late_texts[2]]


@pytest.mark.django_db(transaction=True)
def test_a_call_indexes_a_bounded_amount_of_text(chat: Chat, person: User) -> None:
    while index.fill():
        pass
    for _ in range(5):
        factories.message(chat, person, "long " * 5_000)
    is_late = connection.vendor == "sqlite"
    assert [index.fill() for _ in range(3)] == ([3, 2, 0] if is_late else [0, 0, 0])


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
    """Return the form of the index in the database: one definition for each, by name."""
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


def indexed(gram: str) -> int:
    """Return the number of texts that SQLite's index has for a trigram."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM chat_app_search WHERE chat_app_search MATCH %s", [gram]
        )
        return int(cursor.fetchone()[0])


def test_the_beginning_of_a_text_is_indexed_and_searched(person: User) -> None:
    chat = factories.chat(person)
    text = "early " + "ä" * (index.CHARS - 11) + " lastwordbeyond"
    message = factories.message(chat, person, text)
    counts = [len(texts(chat, word)) for word in ("early", "last", "lastw", "beyond")]
    assert counts == [1, 1, 0, 0]
    # Two letters are read for, in the same characters.
    assert [len(texts(chat, word)) for word in ("ea", "yo")] == [1, 0]
    if connection.vendor == "sqlite":
        assert indexed("ear") == 0
        assert index.fill() == 1
        assert (indexed("ear"), indexed("bey")) == (1, 0)
        assert [len(texts(chat, word)) for word in ("early", "beyond")] == [1, 0]
    message.delete()
    assert texts(chat, "early") == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("infix", "former"), [("_", index.FORMER[0]), ("_start_", index.FORMER[1])]
)
def test_a_former_index_is_replaced(chat: Chat, infix: str, former: str) -> None:
    former_index = _index()
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("CREATE TABLE written_by_former (content)")
            for name in index._TRIGGERS:
                cursor.execute(f"DROP TRIGGER {name}")
                cursor.execute(
                    f"CREATE TRIGGER {name.replace('_due_', infix)} AFTER INSERT"  # noqa: S608 constants
                    " ON chat_app_message BEGIN"
                    " INSERT INTO written_by_former VALUES (NEW.content); END"
                )
        else:
            cursor.execute(f"DROP INDEX {index.INDEX}")
            cursor.execute(
                f"CREATE INDEX {former} ON chat_app_message"
                " USING gin (chat_id, upper(content) gin_trgm_ops)"
            )
    assert _index() != former_index
    index.prepare()
    assert _index() == former_index
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE written_by_former")
    assert texts(chat, "liste") == [TEXTS[2], TEXTS[1], TEXTS[0]]


@pytest.mark.django_db(transaction=True)
def test_a_lost_index_is_rebuilt_with_the_earlier_messages(chat: Chat, person: User) -> None:
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
