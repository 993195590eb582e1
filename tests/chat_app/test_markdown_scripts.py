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


@pytest.mark.parametrize(("text", "html"), json.loads(TABLE.read_text(encoding="utf-8")))
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
    ],
)
def test_a_mention_stands_beside_letters_without_spaces(text: str, names: set[str]) -> None:
    assert mentioned_names(text) == names
