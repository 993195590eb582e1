"""The parts of an answer that can mention other agents: neither quotes nor code."""

from __future__ import annotations

import time

import pytest

from chat_app.members.agents.agent_mentions import without_quotes


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("ask @bob", "ask @bob"),
        ("> @bob\nso @amy", "so @amy"),
        ("   > @bob\nso @amy", "so @amy"),
        ("see `@bob` or `` and @amy", "see  or  and @amy"),
        ("a\n```\n@bob\n```\n@amy", "a\n@amy"),
        ("a\n~~~~ text\n@bob\n~~~\n@eve\n~~~~\n@amy", "a\n@amy"),
        ("a\n```\n@bob, never closed", "a"),
        ("``` @bob ``` @amy", " @amy"),
    ],
)
def test_quotes_and_code_are_left_out(text: str, left: str) -> None:
    assert without_quotes(text) == left


@pytest.mark.parametrize("piece", ["`", "~", "```", "`\n", ">", "    ", "~~~\n"])
def test_no_text_takes_long(piece: str) -> None:
    text = piece * (1_000_000 // len(piece)) + "@bob"
    started = time.process_time()
    without_quotes(text)
    assert time.process_time() - started < 2
