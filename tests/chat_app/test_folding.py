"""Texts are compared in one case, width and composition, as in the browser."""

from __future__ import annotations

import json
import time
import unicodedata
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_app.folding import composed, folded, normalized
from chat_app.mentioned import mentioned_names

TABLE: Final = Path(__file__).parents[1] / "vectors" / "folding.json"


@pytest.mark.parametrize(("text", "letters"), json.loads(TABLE.read_text(encoding="utf-8")))
def test_the_server_folds_as_the_browser_does(text: str, letters: str) -> None:
    assert folded(text) == letters
    assert folded(text.upper()) == letters
    assert folded(composed(text)) == letters


@given(st.text())
def test_a_folded_text_stays_as_it_is(text: str) -> None:
    assert folded(folded(text)) == folded(text)


@given(st.text())
def test_a_text_with_few_marks_is_normalized_as_unicode_says(text: str) -> None:
    assert normalized("NFC", text) == unicodedata.normalize("NFC", text)


# Sorting all marks of these takes minutes. One decomposes to marks without being one.
@pytest.mark.parametrize("marks", ["\u0301" * 60_000 + "\u0316" * 60_000, "\u0f73" * 60_000])
def test_no_text_takes_long(marks: str) -> None:
    text = f"@a{marks} @bob"
    started = time.process_time()
    assert folded(text).endswith("@bob")
    assert mentioned_names(text, ["bob"]) == {"bob"}
    assert time.process_time() - started < 2
