"""Parse the text of a search field into words and filters.

`from:ada agent:echo in:"My chat" has:file before:2026-01-31 after:2026-01-01 words`. Each filter
may appear once; other words with a colon are plain words.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from typing import Final

import msgspec

WORDS_MAX: Final = 10
_TOKEN: Final = re.compile(
    r'(?:(?P<name>from|agent|in|has|before|after):)?(?:"(?P<quoted>[^"]*)"|(?P<bare>\S*))'
)
_HAS: Final = ("file",)
_NAMES: Final = frozenset({"from", "agent", "in", "has", "before", "after"})
_QUOTED: Final = re.compile(r'"[^"]*"')
# A word that looks like a filter, and is not the beginning of an address.
_LIKE_FILTER: Final = re.compile(r"(?<!\S)([a-z_]{2,20}):(?!//)\S")


class InvalidSearch(ValueError):
    """The search cannot be parsed, or names something unknown; the text is for the person."""


class SearchTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The words of a search and its filters; times are bounds in UTC."""

    words: tuple[str, ...] = ()
    person: str | None = None
    agent: str | None = None
    chat: str | None = None
    has_file: bool = False
    before: datetime | None = None
    after: datetime | None = None
    # Names that look like filters and are searched as words.
    unknown: tuple[str, ...] = ()


def parse_search(text: str) -> SearchTerms:
    """Return the terms of a search; raises InvalidSearch."""
    words: list[str] = []
    values: dict[str, str] = {}
    at = 0
    text = text.replace("\0", " ")
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        token = _TOKEN.match(text, at)
        if token is None:
            raise InvalidSearch("The search could not be understood. Check its quotation marks.")
        at = token.end()
        value = (token["quoted"] if token["quoted"] is not None else token["bare"]).strip()
        if (name := token["name"]) is None:
            words += [value] if value else []
        elif not value:
            raise InvalidSearch(f"{name}: has no value. Write {name}:value, without a space.")
        elif name in values:
            raise InvalidSearch(f"{name}: is given twice.")
        else:
            values[name] = value
    if len(words) > WORDS_MAX:
        raise InvalidSearch(f"Search for at most {WORDS_MAX} words at once.")
    if not words and not values:
        raise InvalidSearch("Enter words to search for, or a filter.")
    if values.get("has", "file") not in _HAS:
        raise InvalidSearch("has: takes the value file.")
    return SearchTerms(
        words=tuple(words),
        person=values.get("from"),
        agent=values.get("agent"),
        chat=values.get("in"),
        has_file="has" in values,
        before=_start_of_day("before", values),
        after=_start_of_day("after", values),
        unknown=_unknown(text),
    )


def _unknown(text: str) -> tuple[str, ...]:
    """Return the names in a search that look like filters and are none."""
    names = _LIKE_FILTER.findall(_QUOTED.sub('""', text))
    return tuple(dict.fromkeys(name for name in names if name not in _NAMES))


def _start_of_day(name: str, values: dict[str, str]) -> datetime | None:
    if name not in values:
        return None
    try:
        day = date.fromisoformat(values[name])
    except ValueError:
        raise InvalidSearch(f"{name}: takes a day, such as {name}:2026-01-31.") from None
    return datetime.combine(day, time.min, tzinfo=UTC)
