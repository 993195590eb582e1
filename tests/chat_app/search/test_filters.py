"""A search with filters: what is read of its text, and what a person finds with it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.utils import timezone

from chat_app.conversation import finding
from chat_app.conversation.deletion import delete_message
from chat_app.models import Message, Participant
from chat_app.search.filters import InvalidSearch, SearchTerms, parse_search
from tests import factories

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("two words", SearchTerms(words=("two", "words"))),
        (
            'from:ada agent:echo in:"My chat" has:file',
            SearchTerms(person="ada", agent="echo", chat="My chat", has_file=True),
        ),
        (
            '"one word" before:2026-01-03 after:2026-01-02',
            SearchTerms(words=("one word",), before=day(3), after=day(2)),
        ),
        (
            'http://x to:y cost:>1 "a b:c" Re:d',
            SearchTerms(
                words=("http://x", "to:y", "cost:>1", "a b:c", "Re:d"), unknown=("to", "cost")
            ),
        ),
    ],
)
def test_words_and_filters_are_read(text: str, terms: SearchTerms) -> None:
    assert parse_search(text) == terms


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("from: ada", "from: has no value"),
        ("in:a in:b", "in: is given twice"),
        ("has:link", "has: takes"),
        ("before:yesterday", "before: takes a day"),
        ("after:2026-02-30", "after: takes a day"),
        (" \0 ", "Enter words"),
        ('""', "Enter words"),
        ("a " * 11, "at most 10 words"),
    ],
)
def test_a_filter_that_cannot_be_read_is_named(text: str, reason: str) -> None:
    with pytest.raises(InvalidSearch, match=reason):
        parse_search(text)


def search_answer(person: User, q: str, **query: Any) -> Any:
    client = Client()
    client.force_login(person)
    return client.get("/api/v1/search", {"q": q, **query}).json()


def texts(person: User, q: str) -> list[str]:
    return [row["content"] for row in search_answer(person, q)["data"]]


@pytest.mark.django_db
def test_a_person_finds_messages_of_their_own_chats_by_every_filter() -> None:
    ada, bob, eve = (factories.user(name) for name in ("ada", "bob", "eve"))
    echo = factories.agent("echo")
    chat = factories.chat(ada, bob, echo, title="Weather report")
    other = factories.chat(ada, title="Other")
    secret = factories.chat(eve, bob, title="Secret")
    factories.message(chat, ada, "sunny in Paris")
    late = factories.message(chat, bob, "sunny in Rome")
    factories.message(chat, echo, "sunny says the agent")
    factories.message(other, ada, "sunny elsewhere")
    factories.message(secret, eve, "sunny secret")
    Message.objects.filter(chat=chat, content="sunny in Paris").update(created_at=day(1))
    items = [
        {
            "type": "file",
            "file": {"url": "https://example.org/a"},
            "filename": "a",
            "mime_type": "b",
        }
    ]
    Message.objects.filter(pk=late.pk).update(created_at=day(2), content_items=items)
    assert texts(ada, "sunny") == [
        "sunny elsewhere", "sunny says the agent", "sunny in Rome", "sunny in Paris",
    ]  # fmt: skip
    assert texts(ada, "sunny from:BOB") == ["sunny in Rome"]
    assert texts(ada, "from:bob") == ["sunny in Rome"]
    assert texts(ada, "agent:echo sunny") == ["sunny says the agent"]
    assert texts(ada, "has:file") == texts(ada, "sunny has:file") == ["sunny in Rome"]
    assert texts(ada, 'in:"weather report" sunny before:2026-01-02') == ["sunny in Paris"]
    assert texts(ada, f"in:{chat.pk} after:2026-01-02 before:2026-01-03") == ["sunny in Rome"]
    assert texts(eve, "sunny") == ["sunny secret"]
    assert search_answer(ada, "sunny", limit=2)["has_more"] is True
    delete_message(chat_id=chat.pk, message_id=late.pk, user_id=bob.pk)
    assert texts(ada, "from:bob") == []
    # A hit leads to its place in the history.
    hit = search_answer(ada, "Paris")["data"][0]
    assert hit["chat_title"] == "Weather report"
    client = Client()
    client.force_login(ada)
    path = f"/api/v1/chats/{hit['chat_id']}/messages"
    around = client.get(path, {"around": hit["id"], "limit": 1}).json()["data"]
    assert [row["id"] for row in around] == [hit["id"]]
    assert client.get(path, {"around": "msg_none"}).status_code == 404
    assert client.get(path, {"around": "-1"}).status_code == 400


@pytest.mark.django_db
def test_an_unknown_filter_value_is_reported_and_strangers_learn_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ada, eve = factories.user("ada"), factories.user("eve")
    hidden = factories.agent("hidden", is_public=False)
    chat = factories.chat(ada, hidden, title="Mine")
    factories.chat(eve)
    for q in ("from:missing", "agent:hidden", "in:Mine", f"in:{chat.pk}"):
        answer = search_answer(eve, q)
        assert (answer["status"], answer["code"]) == (400, "invalid")
        assert answer["errors"][0]["parameter"] == "q"
    Participant.objects.filter(chat=chat, user=ada).update(left_at=day(1))
    assert search_answer(ada, "in:Mine")["code"] == "invalid"
    monkeypatch.setattr(finding, "CHATS", 1)
    factories.chat(eve)
    answer = search_answer(eve, "word")
    assert (answer["searched_chats"], answer["chats"]) == (1, 2)
    assert (answer["unknown_filters"], search_answer(eve, "form:me")["unknown_filters"]) == (
        [],
        ["form"],
    )


@pytest.mark.django_db
def test_a_cursor_leads_through_all_chats_once() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chats = [factories.chat(ada, bob, title=f"Chat {number}") for number in range(3)]
    contents = [factories.message(chats[n % 3], ada, f"sunny {n}").content for n in range(11)]
    # The clock of one process was wrong.
    first = Message.objects.get(content="sunny 3")
    Message.objects.filter(pk=first.pk).update(created_at=first.created_at + timedelta(hours=1))

    for q in ("sunny", "from:ada"):
        page, seen, pages = search_answer(ada, q, limit=4), [], 1
        while True:
            seen += [row["content"] for row in page["data"]]
            assert page["searched_chats"] == 3
            if not page["has_more"]:
                break
            if pages == 1:
                factories.message(chats[0], ada, "sunny later")
            page = search_answer(ada, q, limit=4, cursor=page["next_cursor"])
            pages += 1
        assert pages >= 3
        assert sorted(seen) == sorted({*contents, *(["sunny later"] if q == "from:ada" else [])})
        assert len(seen) == len(set(seen))
    cursor = search_answer(ada, "sunny", limit=4)["next_cursor"]
    for wrong in (cursor + "x", "x"):
        assert search_answer(ada, "sunny", cursor=wrong)["code"] == "invalid_cursor"
    assert search_answer(ada, "rainy", cursor=cursor)["code"] == "invalid_cursor"
    # Who left a chat, or was never in it, finds nothing there with a cursor.
    assert search_answer(factories.user("eve"), "sunny", cursor=cursor)["data"] == []
    Participant.objects.filter(chat=chats[1], user=ada).update(left_at=timezone.now())
    rest = search_answer(ada, "sunny", cursor=cursor)
    assert chats[1].pk not in {row["chat_id"] for row in rest["data"]}
