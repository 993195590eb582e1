"""Names of people: what is taken out, what is refused, and which names are the same."""

from __future__ import annotations

import pytest

from chat_app.people.names import (
    InvalidName,
    clean_name,
    clean_status,
    clean_title,
    graphemes,
    key_of,
)

FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("  Ada \t Lovelace\n", "Ada Lovelace"),
        # Direction marks, zero-width characters, controls and what no one assigned.
        ("\u202eAda\u202c", "Ada"),
        ("A\u200bd\u2060a\ufeff", "Ada"),
        ("Ada\u2066\u0000 B\u200d", "Ada B"),
        ("Ada\U000e0041\ue000\ud800", "Ada"),
        ("e\u0301", "\u00e9"),
        (f"Ada {FAMILY}", f"Ada {FAMILY}"),
        ("Ада Лавлейс", "Ада Лавлейс"),
        ("山田 Ada", "山田 Ada"),
        ("\u202e \u200b", ""),
        ("", ""),
    ],
)
def test_what_cannot_be_seen_is_taken_out(text: str, name: str) -> None:
    assert clean_name(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "a" * 41,
        # Few characters to see, many code points to store.
        FAMILY * 40,
        "a" + "\u0301" * 6,
        # A Cyrillic letter among Latin ones, and a Greek one.
        "\u0430dmin",
        "Al\u03bfce",
        "...",
        "\U0001f680",
    ],
)
def test_names_that_mislead_or_do_not_fit_are_refused(text: str) -> None:
    with pytest.raises(InvalidName):
        clean_name(text)


def test_a_title_has_no_marks_that_turn_what_follows() -> None:
    assert clean_title("report \u202egpj.exe\u202c\n now") == "report gpj.exe now"
    assert clean_title("\u2066\u202e ") == ""
    assert clean_title("\u05e9\u05dc\u05d5\u05dd 2026!") == "\u05e9\u05dc\u05d5\u05dd 2026!"


def test_length_is_what_people_see() -> None:
    assert graphemes(FAMILY) == 1
    assert clean_name("a" * 39 + "\U0001f44d\U0001f3fd") == "a" * 39 + "\U0001f44d\U0001f3fd"
    assert clean_status(FAMILY * 40) == FAMILY * 40
    with pytest.raises(InvalidName):
        clean_status("a" * 81)


@pytest.mark.parametrize(
    "same",
    [
        "ADA LOVELACE",
        "ada-lovelace",
        "\uff21\uff44\uff41 Lovelace",
        "a.d.a. lovelace",
        "adalovelace",
    ],
)
def test_names_are_the_same_whatever_their_case_width_and_spacing(same: str) -> None:
    assert key_of(same) == key_of("Ada Lovelace")
    assert key_of("Ada Lovelace 2") != key_of("Ada Lovelace")
