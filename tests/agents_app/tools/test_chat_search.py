"""The tool search_chat."""

import json
from datetime import UTC, datetime

import pytest

from agents_app.tools.chat_search import excerpt, search_chat
from agents_app.tools.registry import FoundMessage, ToolError
from tests.agents_app.run_context import Context

AT = datetime(2026, 3, 1, 12, 30, 5, 999, tzinfo=UTC)


def message(text: str, name: str = "ada", role: str = "user") -> FoundMessage:
    return FoundMessage(at=AT, role=role, name=name, text=text)


def test_messages_come_with_time_name_and_excerpt() -> None:
    context = Context(
        messages=[message("The\nbudget  is 5"), message("No budget", "", "assistant")]
    )
    outcome = search_chat.run(context, {"query": " Budget\0is  "})
    assert json.loads(outcome.result) == [
        {"time": "2026-03-01T12:30:05+00:00", "name": "ada", "excerpt": "The budget is 5"},
        {"time": "2026-03-01T12:30:05+00:00", "name": "assistant", "excerpt": "No budget"},
    ]
    assert context.searched == [(("Budget", "is"), 10)]
    assert [reported["stage"] for reported in context.reported] == ["search", "done"]


def test_nothing_found_is_an_empty_list() -> None:
    assert search_chat.run(Context(), {"query": "x"}).result == "[]"


@pytest.mark.parametrize("limit", [1, 50])
def test_the_limit_goes_to_the_search(limit: int) -> None:
    context = Context(messages=[message("x")] * 60)
    outcome = search_chat.run(context, {"query": "x", "limit": limit})
    assert len(json.loads(outcome.result)) == limit


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "`query`"),
        ({"query": "x", "limit": 0}, "`$.limit`"),
        ({"query": "x", "limit": 51}, "`$.limit`"),
        ({"query": "x" * 201}, "`$.query`"),
        ({"query": "x", "chat_id": "chat_1"}, "`chat_id`"),
    ],
)
def test_other_arguments_search_nothing(arguments: dict[str, object], problem: str) -> None:
    context = Context()
    outcome = search_chat.run(context, arguments)
    assert outcome.is_error
    assert problem in outcome.result
    assert context.searched == []


@pytest.mark.parametrize(
    ("query", "problem"),
    [("", "at least one word"), (" \0 ", "at least one word"), ("a " * 11, "at most 10 words")],
)
def test_no_words_and_too_many_are_refused(query: str, problem: str) -> None:
    context = Context()
    with pytest.raises(ToolError, match=problem):
        search_chat.run(context, {"query": query})
    assert context.searched == []


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("short", ["x"], "short"),
        ("a" * 300, ["a"], "a" * 300),
        ("a" * 301, ["a"], "a" * 300 + "…"),
        ("a" * 500 + "B", ["b"], "…" + "a" * 299 + "B"),
        ("a" * 500 + "B" + "c" * 500, ["z", "b"], "…" + "a" * 100 + "B" + "c" * 199 + "…"),
    ],
)
def test_an_excerpt_is_around_the_first_word(text: str, words: list[str], expected: str) -> None:
    assert excerpt(text, words) == expected
