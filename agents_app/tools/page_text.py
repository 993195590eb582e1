"""The title of a web page, and its text as Markdown.

The text is written tag by tag as it is read, up to a limit. A malicious page costs no more than any
other (`agents_app.tools.page_tokens`).
"""

import html
import re
from dataclasses import dataclass
from urllib.parse import urljoin

from agents_app.tools.page_tokens import Tag, tokens

TITLE_CHARS = 300
_LINK_CHARS = 500
_INDENTS = 8

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
# fmt: off
_BLOCKS = {
    "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div", "dl",
    "dt", "fieldset", "figcaption", "figure", "form", "header", "hgroup", "html", "legend", "main",
    "p", "search", "section", "summary", "table", "tbody", "tfoot", "thead",
}
# fmt: on


@dataclass(frozen=True, kw_only=True)
class PageText:
    """The text of a page; `is_cut` if there was more than requested."""

    title: str
    text: str
    is_cut: bool


def read_page(source: str, *, base: str, limit: int) -> PageText:
    """Convert HTML to text of up to `limit` characters; `base` makes links absolute."""
    title = ""
    writer = _Writer(base)
    for token in tokens(source):
        if isinstance(token, str):
            writer.add(html.unescape(token))
        elif token.name == "title":
            title = title or " ".join(html.unescape(token.rest).split())
        elif token.is_end:
            writer.close(token.name)
        else:
            writer.open(token)
        if writer.size > limit:
            break
    text = _CONTROLS.sub("", writer.finished())
    return PageText(
        title=_CONTROLS.sub("", title)[:TITLE_CHARS], text=text[:limit], is_cut=len(text) > limit
    )


class _Writer:
    """Assembles the pieces of a page as Markdown; `size` is its approximate length."""

    def __init__(self, base: str) -> None:
        self.size = 0
        self._base = base
        self._parts: list[str] = []
        self._line: list[str] = []
        # The prefix of the next line, and its kind: lines of one kind are not spaced apart.
        self._prefix = self._kind = ""
        self._latest_kind = ""
        self._is_after_break = False
        # The number of the last item in each open list; None for unnumbered lists.
        self._lists: list[int | None] = []
        self._link: tuple[int, str] | None = None
        self._is_code = False

    def add(self, text: str) -> None:
        """Add text to the current line."""
        self._line.append(text)
        self.size += len(text)

    def open(self, tag: Tag) -> None:
        """Begin an element."""
        if tag.name == "a":
            self._link = (len(self._line), tag.attribute("href"))
        elif tag.name == "img":
            if alt := " ".join(tag.attribute("alt").split()):
                self.add(f" [image: {alt[:TITLE_CHARS]}] ")
        elif tag.name in {"td", "th"}:
            if self._line:
                self.add(" | ")
        elif tag.name == "br":
            if self._is_code:
                self.add("\n")
            else:
                self._end_line()
                self._is_after_break = True
        else:
            self._open_block(tag.name)

    def close(self, name: str) -> None:
        """End an element."""
        if name == "a":
            self._end_link()
        elif name in {"li", "ol", "pre", "tr", "ul"} or name in _HEADINGS or name in _BLOCKS:
            self._end_line()
            if name not in _BLOCKS:
                self._prefix = self._kind = ""
            if name in {"ol", "ul"} and self._lists:
                self._lists.pop()
            self._is_code = self._is_code and name != "pre"

    def finished(self) -> str:
        """Return the complete text."""
        self._end_line()
        return "".join(self._parts)

    def _open_block(self, name: str) -> None:
        if name in _HEADINGS:
            self._end_line()
            self._prefix, self._kind = _HEADINGS[name], ""
        elif name == "li":
            self._end_line()
            self._prefix, self._kind = self._marker(), "item"
        elif name in {"ol", "ul"}:
            self._end_line()
            self._lists.append(0 if name == "ol" else None)
        elif name == "tr":
            self._end_line()
            self._kind = "row"
        elif name == "hr":
            self._end_line()
            self.add("---")
            self._end_line()
        elif name == "pre" or name in _BLOCKS:
            self._end_line()
            self._is_code = self._is_code or name == "pre"

    def _marker(self) -> str:
        indent = "  " * (min(len(self._lists), _INDENTS) - 1)
        number = self._lists[-1] if self._lists else None
        if number is None:
            return f"{indent}- "
        self._lists[-1] = number + 1
        return f"{indent}{number + 1}. "

    def _end_link(self) -> None:
        if self._link is None:
            return
        start, address = self._link
        self._link = None
        words = "".join(self._line[start:])
        text = " ".join(words.split())
        try:
            url = urljoin(self._base, address)
        except ValueError:
            return
        if text and address and len(url) <= _LINK_CHARS and url.startswith(("http:", "https:")):
            before, after = (" " if edge.isspace() else "" for edge in (words[0], words[-1]))
            self._line[start:] = [f"{before}[{text}]({url}){after}"]
            self.size += len(url)

    def _end_line(self) -> None:
        line = "".join(self._line)
        self._line.clear()
        self._link = None
        text = " ".join(line.split())
        if not text:
            return
        if self._is_code:
            text = "```\n{}\n```".format(line.strip("\n"))
        is_close = self._is_after_break or (self._kind != "" and self._kind == self._latest_kind)
        between = "" if not self._parts else "\n" if is_close else "\n\n"
        self._parts.append(f"{between}{self._prefix}{text}")
        self.size += len(between) + len(self._prefix)
        self._latest_kind = self._latest_kind if self._is_after_break else self._kind
        self._prefix = self._kind = ""
        self._is_after_break = False
