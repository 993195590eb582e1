"""Texts are compared in one case, width and composition, as in the browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_app.folding import composed, folded

TABLE: Final = Path(__file__).parents[1] / "vectors" / "folding.json"


@pytest.mark.parametrize(("text", "letters"), json.loads(TABLE.read_text(encoding="utf-8")))
def test_the_server_folds_as_the_browser_does(text: str, letters: str) -> None:
    assert folded(text) == letters
    assert folded(text.upper()) == letters
    assert folded(composed(text)) == letters


@given(st.text())
def test_a_folded_text_stays_as_it_is(text: str) -> None:
    assert folded(folded(text)) == folded(text)
