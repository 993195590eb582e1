"""Quoted cookies are read as `http.cookies` reads them, but in linear time."""

from __future__ import annotations

from http import cookies

import pytest
from django.http import parse_cookie

import uamp_project.servers.django_handler  # noqa: F401 it replaces the function
from uamp_project.servers import cookie_values

VALUES = [
    "",
    "plain",
    '"',
    '""',
    '"a',
    '"quoted"',
    r'"a\"b"',
    r'"a\\b"',
    r'"\054\073"',
    r'"\377\400"',
    r'"\12"',
    r'"ends\"',
    r'"\\\""',
]


@pytest.mark.parametrize("value", VALUES)
def test_a_value_stands_for_what_was_quoted(value: str) -> None:
    text = parse_cookie(f"a={value}").get("a")
    morsel = cookies.SimpleCookie(f"a={value}").get("a")
    assert text == cookie_values.unquote(value)
    assert morsel is None or morsel.value == cookie_values.unquote(value)


def test_what_python_writes_is_read_back() -> None:
    text = 'semicolon; comma, "quotes" \\ backslash \xe9'
    assert cookie_values.unquote(cookies._quote(text)) == text


def test_each_character_of_a_quoted_value_is_looked_at_once() -> None:
    assert cookies._unquote is cookie_values.unquote
    value = '"' + "\\1" * 500_000 + '"'
    assert parse_cookie(f"a={value}")["a"] == "1" * 500_000
