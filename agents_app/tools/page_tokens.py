"""The tags and texts of a web page, in order.

The running time depends only on the length of the page, since its author may be malicious. No tree
is built, and every character is read only a few times. (`html.parser` needs seconds for 24 kB of
"<a ", and a tree of open elements, as browsers build it, minutes for 500 kB of "<div>".)
"""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

# Possessive, and each quote ends at the next one: no part of a tag is read twice.
_TAG = re.compile(
    r"""<(/?)([a-z][^\s/>]*+)((?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+)*+)>""", re.IGNORECASE
)
NAMED = ("alt", "href", "content", "name", "property")
_ATTRIBUTE = r"""(?<![^\s"'/]){}\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))"""
_ATTRIBUTES = {name: re.compile(_ATTRIBUTE.format(name), re.IGNORECASE) for name in NAMED}
# Inside these elements, tags are text until the element's own end tag.
_RAW = ("script", "style", "noscript", "iframe", "noembed", "noframes", "textarea", "title")
_RAW_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _RAW}
# Elements whose contents are not part of the page's message.
# fmt: off
_SKIPPED = {
    "audio", "button", "canvas", "datalist", "dialog", "footer", "map", "math", "nav", "object",
    "select", "svg", "template", "video",
}
# fmt: on


class Tag(NamedTuple):
    """A tag; `rest` holds its attributes, or the text of a title."""

    name: str
    rest: str
    is_end: bool

    def attribute(self, name: str) -> str:
        """Return one of NAMED, or ""."""
        match = _ATTRIBUTES[name].search(self.rest)
        return html.unescape(next(filter(None, match.groups()), "")).strip() if match else ""


def tokens(source: str) -> Iterator[Tag | str]:
    """Yield tags and the texts between them; an unclosed construct ends the page.

    Scripts, menus, footers and the like are left out.
    """
    skipped, depth = "", 0
    for token in _markup(source):
        if isinstance(token, str):
            if not skipped:
                yield token
        elif skipped:
            if token.name == skipped:
                depth += -1 if token.is_end else 1
            skipped = skipped if depth else ""
        elif token.name not in _SKIPPED:
            yield token
        elif not token.is_end and not token.rest.endswith("/"):
            skipped, depth = token.name, 1


def _markup(source: str) -> Iterator[Tag | str]:
    at = 0
    while (start := source.find("<", at)) >= 0:
        if start > at:
            yield source[at:start]
        tag = _TAG.match(source, start)
        if tag is None:
            at = _past(source, start)
            if at < 0:
                return
            if at == start + 1:
                yield "<"
            continue
        at = tag.end()
        name, is_end = tag[2].lower(), bool(tag[1])
        if is_end or name not in _RAW_ENDS:
            yield Tag(name, tag[3], is_end)
            continue
        end = _RAW_ENDS[name].search(source, at)
        if end is None:
            return
        yield Tag(name, source[at : end.start()] if name == "title" else "", is_end=False)
        at = end.start()
    yield source[at:]


def _past(source: str, start: int) -> int:
    """Return the position to continue at after a "<" that begins no complete tag; -1 for none."""
    first, second = source[start + 1 : start + 2], source[start + 2 : start + 3]
    if source.startswith("<!--", start):
        # The shortest comment is <!-->.
        end = source.find("-->", start + 2)
        return end + 3 if end >= 0 else -1
    if first in {"!", "?"} or (first == "/" and not _is_letter(second)):
        end = source.find(">", start)
        return end + 1 if end >= 0 else -1
    return -1 if first == "/" or _is_letter(first) else start + 1


def _is_letter(character: str) -> bool:
    return character.isascii() and character.isalpha()
