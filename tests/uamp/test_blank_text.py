"""Blank text is white space and characters that are not drawn."""

from __future__ import annotations

import pytest

from uamp.blank_text import is_blank


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \t\r\n\v\f",
        "\u00a0\u2003\u3000\u2028",
        "\0\x07\x1f\x7f\x85",
        "\u00ad",
        "\u200b\u200d\u200e\u2060\ufeff",
        "\u115f\u3164\uffa0",
        "\u2800",
        "\ufe0f\U000e0041\U000e0100",
        " \u200b\n" * 10_000,
    ],
)
def test_what_shows_nothing_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize(
    "text", [".", "\u200b.\u200b", "\u0301", "\u2801", "\u2764\ufe0f", "\U0001f3f4", "\u00b7", "ㅤㅏ"]
)
def test_what_shows_something_is_not(text: str) -> None:
    assert not is_blank(text)
