"""Extensions of Markdown: emphasis in every script, and the HTML tags that models write.

Emphasis works beside letters of scripts without spaces, and a bare address ends before them.
`static/chat/markdown/scripts.js` has the same rules for the browser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import regex
from markdown_it.common.utils import isMdAsciiPunct, isPunctChar, isWhiteSpace
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Scanned

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token
    from markdown_it.utils import OptionsDict

_UNSPACED: Final = regex.compile(
    r"[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Bopomofo}"
    r"\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}\p{scx=Tibetan}"
    r"\u3000-\u303f\uff00-\uffef]"
)
# Punctuation after which no writer of a heading in bold puts a space: `**Note:**text`.
_CLOSING_SIGN: Final = regex.compile(r"[:;.,!?%)\]}\"']|[^\x00-\x7f](?<=[\p{Pe}\p{Pf}\p{Po}])")
# Punctuation of any script that ends a sentence and is not part of an address.
_AFTER_ADDRESS: Final = regex.compile(
    r"[\u3001\u3002\u3008-\u3011\u3014-\u301b\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\uff3b\uff3d\uff5b\uff5d\uff61-\uff64"
    r"\u2014\u2018-\u201f\u2026\u2039\u203a\u203c\u2047-\u2049\u00ab\u00bb\u200b\u2060\u055d\u0589\u060c\u061b\u061f\u06d4"
    r"\u0964\u0965\u0f0d-\u0f11\u104a\u104b\u1361-\u1368\u17d4\u17d5]"
)
_LAST_SIGN: Final = regex.compile(r":|[^\x00-\x7f](?<=\p{P})")
_TAG: Final = regex.compile(r"<(?:br {0,3}/?|/?(?:sub|sup|kbd|mark))>", regex.IGNORECASE)
_DETAILS: Final = regex.compile(
    r"<details(?: open)?>\s*(?:<summary>(.*?)</summary>\s*)?", regex.IGNORECASE
)
_SUMMARY: Final = regex.compile(r"<summary>(.*?)</summary>", regex.IGNORECASE | regex.DOTALL)
_SUMMARY_LINES: Final = 8
_END_OF_DETAILS: Final = "</details>"
_CODE_INDENT: Final = 4
# Addresses that lead somewhere, and pictures, whose description is shown.
_LINK: Final = regex.compile(
    r"https?://[^\s/?#\[\]\\:%]|(?:mailto|tel|sms):\S"
    r"|data:image/(?:gif|png|jpeg|webp);|/(?!/)",
    regex.IGNORECASE,
)


class _State(StateInline):
    """Scans delimiters by CommonMark's rule, with two additions.

    A letter of a script without spaces is like a space beside punctuation, and `**` also closes
    between punctuation and a letter.
    """

    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:  # noqa: FBT001, N802, N803 the parser's signature
        """Return whether the run of markers at `start` can open and close emphasis."""
        marker, end = self.src[start], start
        while end < self.posMax and self.src[end] == marker:
            end += 1
        before = self.src[start - 1] if start > 0 else " "
        after = self.src[end] if end < self.posMax else " "
        opens = not _is_space(after) and (
            not _is_sign(after) or _is_space(before) or _is_sign(before) or _is_unspaced(before)
        )
        closes = not _is_space(before) and (
            not _is_sign(before) or _is_space(after) or _is_sign(after) or _is_unspaced(after)
        )
        return Scanned(
            opens and (canSplitWord or not closes or _is_sign(before)),
            (closes and (canSplitWord or not opens or _is_sign(after)))
            or (
                marker == "*"
                and end - start > 1
                and after.isalnum()
                and _CLOSING_SIGN.match(before) is not None
            ),
            end - start,
        )


class _Inline(ParserInline):
    def parse(
        self, src: str, md: MarkdownIt, env: MutableMapping[str, Any], tokens: list[Token]
    ) -> list[Token]:
        """Parse a line with the state above."""
        state = _State(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


def _is_space(character: str) -> bool:
    return isWhiteSpace(ord(character))


def _is_unspaced(character: str) -> bool:
    return _UNSPACED.match(character) is not None


def _is_sign(character: str) -> bool:
    """Return whether a character is punctuation of a script with spaces."""
    is_punctuation = isMdAsciiPunct(ord(character)) or isPunctChar(character)
    return is_punctuation and not _is_unspaced(character)


class _Addresses:
    """The end of a bare address: before punctuation of any script."""

    def __init__(self, linkify: Any) -> None:
        self._whole = linkify.default_schemas["http:"]["validate"]
        linkify.add("http:", {"validate": self.length_at})

    def length_at(self, text: str, position: int) -> int:
        """Return the number of characters of an address after its scheme; 0 for none."""
        address = text[position : position + self._whole(text, position)]
        if (end := _AFTER_ADDRESS.search(address)) is not None:
            address = address[: end.start()]
        while address and _LAST_SIGN.match(address[-1]):
            address = address[:-1]
        return len(address) if address.strip("/") else 0


def _dead_links(state: StateCore) -> None:
    """Show links without an address as they were written."""
    for token in state.tokens:
        level = 0
        for child in token.children or ():
            if child.type == "link_open" and not child.attrs.get("href"):
                level += 1
                child.type, child.tag, child.nesting, child.content = "text", "", 0, "["
            elif child.type == "link_close" and level:
                level -= 1
                child.type, child.tag, child.nesting, child.content = "text", "", 0, "]()"


def _tags(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 the parser's signature
    """Take a tag of the list; it is sanitised with the rest."""
    tag = _TAG.match(state.src, state.pos, state.posMax)
    if tag is None:
        return False
    if not silent:
        state.push("tag", "", 0).content = tag[0].lower().replace(" ", "").replace("/>", ">")
    state.pos = tag.end()
    return True


def _render_tag(
    _renderer: RendererHTML, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: Any
) -> str:
    return tokens[idx].content


def _details(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001 the parser's signature
    """Take `<details>` at the start of a line, up to its end or that of the text."""
    opening = _DETAILS.match(_line(state, start_line))
    if opening is None or state.sCount[start_line] - state.blkIndent >= _CODE_INDENT:
        return False
    if silent:
        return True
    line_start = state.bMarks[start_line], state.tShift[start_line]
    # Text on the line of the tag is the first line of what is inside.
    state.bMarks[start_line] += state.tShift[start_line] + opening.end()
    state.tShift[start_line] = 0
    first, summary = start_line, opening[1]
    if not _line(state, start_line):
        first += 1
        if summary is None:
            first, summary = _summary(state, first, end_line)
    last, end_of_text = _end_of_details(state, first, end_line)
    is_closed = last < end_line and _line(state, last).lower() == _END_OF_DETAILS
    state.push("details_open", "details", 1).map = [start_line, last]
    state.push("summary_open", "summary", 1)
    text = state.push("inline", "", 0)
    text.content, text.map, text.children = (summary or "").strip() or "…", [start_line, first], []
    state.push("summary_close", "summary", -1)
    parent, line_max = state.parentType, state.lineMax
    state.parentType, state.lineMax = "details", last
    line_end, state.eMarks[last - 1] = state.eMarks[last - 1], end_of_text
    state.md.block.tokenize(state, first, last)
    state.eMarks[last - 1] = line_end
    state.bMarks[start_line], state.tShift[start_line] = line_start
    state.parentType, state.lineMax = parent, line_max
    state.push("details_close", "details", -1)
    state.line = last + is_closed
    return True


def _summary(state: StateBlock, line: int, end_line: int) -> tuple[int, str | None]:
    """Return the line after a summary on lines of its own, and its text; None if there is none."""
    first = line
    while first < end_line and not _line(state, first):
        first += 1
    lines = [_line(state, at) for at in range(first, min(first + _SUMMARY_LINES, end_line))]
    for count in range(1, len(lines) + 1):
        if (match := _SUMMARY.fullmatch("\n".join(lines[:count]))) is not None:
            return first + count, " ".join(match[1].split())
    return line, None


def _end_of_details(state: StateBlock, line: int, end_line: int) -> tuple[int, int]:
    """Return the line after the content, and where the last line of it ends.

    It ends before a closing tag that is on the same line.
    """
    depth = 1
    while line < end_line:
        text = _line(state, line)
        if text and state.sCount[line] < state.blkIndent:
            break
        depth += _DETAILS.match(text) is not None
        if text.lower().endswith(_END_OF_DETAILS):
            depth -= 1
            if depth == 0 and text.lower() == _END_OF_DETAILS:
                break
            if depth == 0:
                end = state.src.rindex("<", state.bMarks[line], state.eMarks[line])
                return line + 1, end
        line += 1
    return line, state.eMarks[line - 1]


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].strip()


def add_scripts(parser: MarkdownIt) -> None:
    """Teach a parser these rules, and to make links only of addresses that lead somewhere."""
    parser.inline.ruler.before("autolink", "tags", _tags)
    parser.block.ruler.before(
        "fence", "details", _details, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    parser.add_render_rule("tag", _render_tag)
    inline = _Inline()
    inline.ruler, inline.ruler2 = parser.inline.ruler, parser.inline.ruler2
    parser.inline = inline
    if parser.linkify is not None:
        _Addresses(parser.linkify)
    parser.core.ruler.after("linkify", "dead_links", _dead_links)
    parser.validateLink = lambda url: _LINK.match(url.strip()) is not None  # type: ignore[method-assign]
