"""Markdown in scripts without spaces, tags and addresses of models, as in the browser.

`tests/browser_units/markdown_scripts.test.mjs` has the same table.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from chat_app.markdown import render_here
from chat_app.mentioned import mentioned_names

TABLE: Final = Path(__file__).parents[1] / "vectors" / "markdown" / "scripts.json"


KINDS: Final[dict[str, list[tuple[str, str]]]] = json.loads(TABLE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "html"),
    [
        pytest.param(text, html, id=f"{kind}: {text!a}")
        for kind, rows in KINDS.items()
        for text, html in rows
    ],
)
def test_the_server_draws_what_the_browser_draws(text: str, html: str) -> None:
    assert render_here(text.encode()).decode() == html


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("请@bob看一下", {"bob"}),
        ("오늘@bob", {"bob"}),
        ("ขอ@bob.smithช่วย", {"bob.smith"}),
        ("\N{FULLWIDTH COMMERCIAL AT}Bob", {"bob"}),
        ("@小明 and @李雷.", {"小明", "李雷"}),
        ("@bob, @Zoë-2!", {"bob", "zoë-2"}),
        ("me@bob.org a/@bob x@bob", set()),
        ("`@bob`", set()),
        # A name of such a script ends where a member's name does, the longest one first.
        ("@小明你好", {"小明"}),
        ("请@小明华看一下", {"小明华"}),
        ("@小李你好", set()),
        ("@田中さん、お願い", {"田中"}),
        ("@지민에게", {"지민"}),
        ("@bob的 @bobさん", {"bob"}),
        ("この@ｂｏｂを", {"bob"}),
        ("@BOB\u00ad? @bo\u200bb", {"bob"}),
        ("@zoe\u0308-2", {"zoë-2"}),
        ("@STRASSE @\u0130da", {"strasse", "ida"}),
        ("「@bob」・@bob。『@bob』", {"bob"}),
        ("@bobby @bob-x", set()),
        ("ขอ@bobช่วย", {"bob"}),
        ("\U00020000@bob\U00020001", {"bob"}),
    ],
)
def test_a_mention_needs_no_spaces_around_it(text: str, names: set[str]) -> None:
    members = ["Bob", "bob.smith", "小明", "小明华", "李雷", "田中", "지민", "Zoë-2", "Straße"]
    assert mentioned_names(text, [*members, "Ida"]) == names
