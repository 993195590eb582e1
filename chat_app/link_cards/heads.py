"""Read the head of a web page. It is untrusted, so all of it is treated as text."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Final

from agents_app.tools.page_tokens import Tag, tokens

TITLE_CHARS: Final = 200
DESCRIPTION_CHARS: Final = 300
SITE_CHARS: Final = 80

# The names of each property, the preferred one first.
_TITLES = ("og:title", "twitter:title")
_DESCRIPTIONS = ("og:description", "twitter:description", "description")


@dataclass(frozen=True, slots=True)
class PageHead:
    """A summary of a page; `title` is never empty."""

    title: str
    description: str
    site: str


def read_head(source: str) -> PageHead | None:
    """Return a page's description of itself; None if it has no title."""
    properties: dict[str, str] = {}
    for token in tokens(source):
        if not isinstance(token, Tag) or token.is_end:
            continue
        if token.name == "body":
            break
        if token.name == "title":
            properties.setdefault("title", html.unescape(token.rest))
        elif token.name == "meta":
            name = (token.attribute("property") or token.attribute("name")).lower()
            properties.setdefault(name, token.attribute("content"))
    title = _first(properties, (*_TITLES, "title"), TITLE_CHARS)
    if not title:
        return None
    return PageHead(
        title=title,
        description=_first(properties, _DESCRIPTIONS, DESCRIPTION_CHARS),
        site=_first(properties, ("og:site_name",), SITE_CHARS),
    )


def _first(properties: dict[str, str], names: tuple[str, ...], limit: int) -> str:
    for name in names:
        text = " ".join(properties.get(name, "").split())
        text = "".join(sign for sign in text if sign.isprintable())
        if text:
            return text if len(text) <= limit else f"{text[: limit - 1]}…"
    return ""
