"""Faces on pages without scripts; tests/browser_units/person.test.mjs has the same table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chat_app.browser.faces import initials_of, tone_of

TABLE = json.loads(
    (Path(__file__).resolve().parents[2] / "vectors" / "faces.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("row", TABLE, ids=[row["name"] for row in TABLE])
def test_a_face_is_that_of_the_chat_page(row: dict[str, str | int]) -> None:
    name = str(row["name"])
    assert (initials_of(name), tone_of(name)) == (row["initials"], row["tone"])
