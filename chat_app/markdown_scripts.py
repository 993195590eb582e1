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
from markdown_it.token import Token

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.utils import OptionsDict

_CJK: Final = regex.compile(
    r"[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Bopomofo}"
    r"\u3000-\u303f\uff00-\uffef]"
)
# Punctuation of these scripts, which ends a sentence and is no part of an address.
_AFTER_ADDRESS: Final = regex.compile(
    r"[\u3001\u3002\u3008-\u3011\u3014-\u301b\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
    r"\uff3b\uff3d\uff5b\uff5d\u2026\u201c\u201d\u2018\u2019]"
)
_TAG: Final = regex.compile(r"<(?:br ?/?|/?(?:sub|sup|kbd|mark))>", regex.IGNORECASE)
_DETAILS: Final = regex.compile(
    r"<details(?: open)?>\s*(?:<summary>(.*?)</summary>)?", regex.IGNORECASE
)
_SUMMARY: Final = regex.compile(r"<summary>(.*?)</summary>", regex.IGNORECASE)
_END_OF_DETAILS: Final = "</details>"
_CODE_INDENT: Final = 4
# Addresses that lead somewhere, and pictures, whose description is shown.
_LINK: Final = regex.compile(
    r"https?://|mailto:|tel:|sms:|data:image/(?:gif|png|jpeg|webp);|/(?!/)", regex.IGNORECASE
)


class _State(StateInline):
    """Scans delimiters by CommonMark's rule, with CJK beside punctuation like a space."""

    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:  # noqa: FBT001, N802, N803 the parser's signature
        """Return whether the run of markers at `start` can open and close emphasis."""
        marker, end = self.src[start], start
        while end < self.posMax and self.src[end] == marker:
            end += 1
        before = self.src[start - 1] if start > 0 else " "
        after = self.src[end] if end < self.posMax else " "
        opens = not _is_space(after) and (
            not _is_sign(after) or _is_space(before) or _is_sign(before) or _is_cjk(before)
        )
        closes = not _is_space(before) and (
            not _is_sign(before) or _is_space(after) or _is_sign(after) or _is_cjk(after)
        )
        return Scanned(
            opens and (canSplitWord or not closes or _is_sign(before)),
            closes and (canSplitWord or not opens or _is_sign(after)),
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


def _is_cjk(character: str) -> bool:
    return _CJK.match(character) is not None


def _is_sign(character: str) -> bool:
    """Return whether a character is punctuation of another script than CJK."""
    is_punctuation = isMdAsciiPunct(ord(character)) or isPunctChar(character)
    return is_punctuation and not _is_cjk(character)


def _bare_links(state: StateCore) -> None:
    """End bare addresses before punctuation of CJK."""
    for token in state.tokens:
        children = token.children if token.type == "inline" else None
        for at in range(len(children or ()) - 3, -1, -1):
            if children is None:
                continue
            link, text = children[at], children[at + 1]
            if (link.type, link.markup, text.type) != ("link_open", "linkify", "text"):
                continue
            end = _AFTER_ADDRESS.search(text.content)
            if end is None:
                continue
            rest = text.content[end.start() :]
            text.content = text.content[: end.start()]
            link.attrSet("href", state.md.normalizeLink(text.content))
            children.insert(at + 3, Token("text", "", 0, content=rest, level=link.level))


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
    """Take `<details>` on a line of its own, up to its end or that of the text."""
    opening = _DETAILS.fullmatch(_line(state, start_line))
    if opening is None or state.sCount[start_line] - state.blkIndent >= _CODE_INDENT:
        return False
    if silent:
        return True
    first, summary = start_line + 1, opening[1]
    if (
        summary is None
        and first < end_line
        and (on_line := _SUMMARY.fullmatch(_line(state, first)))
    ):
        first, summary = first + 1, on_line[1]
    last = _end_of_details(state, first, end_line)
    state.push("details_open", "details", 1).map = [start_line, last]
    state.push("summary_open", "summary", 1)
    text = state.push("inline", "", 0)
    text.content, text.map, text.children = (summary or "").strip() or "…", [start_line, first], []
    state.push("summary_close", "summary", -1)
    parent, line_max = state.parentType, state.lineMax
    state.parentType, state.lineMax = "details", last
    state.md.block.tokenize(state, first, last)
    state.parentType, state.lineMax = parent, line_max
    state.push("details_close", "details", -1)
    state.line = min(last + 1, end_line)
    return True


def _end_of_details(state: StateBlock, line: int, end_line: int) -> int:
    """Return the line of the closing tag, or that after the last line of the container."""
    depth = 1
    while line < end_line:
        text = _line(state, line)
        if text and state.sCount[line] < state.blkIndent:
            return line
        if _DETAILS.fullmatch(text):
            depth += 1
        elif text.lower() == _END_OF_DETAILS:
            depth -= 1
            if depth == 0:
                return line
        line += 1
    return end_line


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
    parser.core.ruler.after("linkify", "bare_links", _bare_links)
    parser.validateLink = lambda url: _LINK.match(url.strip()) is not None  # type: ignore[method-assign]
