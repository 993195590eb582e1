"""Markdown rules that the parser lacks: formulas, task lists and mentions.

`static/chat/markdown/math.js`, `tasks.js` and `mentions.js` are the same rules for the browser; a
test compares the output of both.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token

from chat_app.mentioned import JOINED, MENTION

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence
    from typing import Any

    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.utils import OptionsDict

    _Env = MutableMapping[str, Any]

INLINE_CHARS: Final = 1_000
"""The longest inline formula: looking for the end of each "$" takes quadratic time."""
_CODE_INDENT: Final = 4
_ENDS: Final = {"$$": "$$", "\\[": "\\]", "\\(": "\\)"}
_WORD = re.compile(r"\w")
_SPACE = re.compile(r"\s")
# A dollar sign before one of these begins no formula.
_CLOSING = frozenset(
    ")]}\"'\u201d\u2019\u00bb,.;:!?"
    "\u3001\u3002\u3009\u300b\u300d\u300f\u3011\uff01\uff09\uff0c\uff1a\uff1b\uff1f\uff5d"
)
_JOINED_LETTER = re.compile(f"[{JOINED}]")
_ESCAPED = re.compile(r"\\(?:left|right)?.", re.DOTALL)
_AT = re.compile(r"[@\uff20]")
_BOX = re.compile(r"\[([ xX])\](?=[ \t])")


def add_rules(parser: MarkdownIt) -> None:
    """Teach a parser formulas between `$`, `$$` or brackets, task boxes in lists, and mentions.

    A mention is isolated (`<bdi>`), so it keeps its letter order in text of the other direction.
    """
    parser.inline.ruler.before("escape", "math_inline", _inline_math)
    parser.block.ruler.before(
        "fence",
        "math_block",
        _block_math,
        {"alt": ["paragraph", "reference", "blockquote", "list"]},
    )
    parser.core.ruler.push("tasks", _tasks)
    parser.core.ruler.push("mentions", _mentions)
    for name, rule in {
        "math_inline": _render_inline_math,
        "math_block": _render_block_math,
        "task_box": _render_task_box,
        "mention": _render_mention,
    }.items():
        parser.add_render_rule(name, rule)


def _is_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and _WORD.match(text[at]) is not None


def _dollar_end(text: str, start: int, limit: int) -> int:
    """Return the end of a formula between single dollar signs, or -1.

    A dollar sign next to a space, a letter or a digit is an amount. Letters of scripts without
    spaces may be next to it if there are none inside. A formula with an unmatched closing bracket
    is text.
    """
    if (_is_word(text, start - 2) and not _is_joined(text, start - 2)) or start >= limit:
        return -1
    if _SPACE.match(text[start]) or text[start] in _CLOSING:
        return -1
    end = text.find("$", start + 1, limit)
    while end != -1 and text[end - 1] == "\\":
        end = text.find("$", end + 1, limit)
    if end == -1 or _SPACE.match(text[end - 1]) or _closes_too_much(text[start:end]):
        return -1
    is_beside = _is_joined(text, start - 2) or _is_joined(text, end + 1)
    if is_beside and _JOINED_LETTER.search(text, start, end):
        return -1
    return -1 if _is_word(text, end + 1) and not _is_joined(text, end + 1) else end


def _is_joined(text: str, at: int) -> bool:
    return 0 <= at < len(text) and _JOINED_LETTER.match(text[at]) is not None


def _closes_too_much(formula: str) -> bool:
    """Return whether a closing bracket of any kind has no opening one."""
    depth = 0
    for character in _ESCAPED.sub("", formula):
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            return True
    return False


def _inline_math(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 the parser's signature
    text, limit = state.src, min(state.posMax, state.pos + INLINE_CHARS)
    mark = next((sign for sign in ("$$", "\\(", "$") if text.startswith(sign, state.pos)), None)
    if mark is None:
        return False
    start = state.pos + len(mark)
    end = _dollar_end(text, start, limit) if mark == "$" else text.find(_ENDS[mark], start, limit)
    if end == -1 or not text[start:end].strip():
        return False
    if not silent:
        state.push("math_inline", "span", 0).content = text[start:end]
    state.pos = end + len(mark)
    return True


def _block_math(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001 the parser's signature
    if state.sCount[start_line] - state.blkIndent >= _CODE_INDENT:
        return False
    first = _line(state, start_line)
    mark = first[:2]
    if mark not in {"$$", "\\["}:
        return False
    formula = _formula_lines(state, start_line, end_line, first)
    if formula is None:
        return False
    content, line = formula
    is_closed = content.endswith(_ENDS[mark])
    if first != mark and (not is_closed or content.index(_ENDS[mark]) != len(content) - 2):
        return False
    if silent:
        return True
    state.line = line + 1 if is_closed else line
    token = state.push("math_block", "div", 0)
    token.content = (content[:-2] if is_closed else content).strip()
    token.map = [start_line, state.line]
    token.block = True
    return True


def _formula_lines(
    state: StateBlock, start_line: int, end_line: int, first: str
) -> tuple[str, int] | None:
    """Return the text of a formula with its end mark, and its last line; None for a paragraph.

    A formula whose opening mark has a line to itself extends to a line that ends with the closing
    mark, or to the end of the text; any other one must end within its paragraph.
    """
    mark, lines, line = first[:2], [first[2:]], start_line
    end = _ENDS[mark]
    while not lines[-1].endswith(end) if first == mark else end not in lines[-1]:
        line += 1
        is_over = line >= end_line or (
            state.sCount[line] < state.blkIndent and _line(state, line) != ""
        )
        if is_over and first == mark:
            break
        if is_over or (first != mark and not _line(state, line)):
            return None
        lines.append(_line(state, line))
    return "\n".join(lines).strip(), line


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].strip()


def _tasks(state: StateCore) -> None:
    for item, _paragraph, token in zip(
        state.tokens, state.tokens[1:], state.tokens[2:], strict=False
    ):
        if token.type != "inline" or item.type != "list_item_open" or not token.children:
            continue
        text = token.children[0]
        box = _BOX.match(text.content) if text.type == "text" else None
        if box is None:
            continue
        item.attrSet("class", "task")
        text.content = text.content[box.end() :].lstrip()
        made = Token("task_box", "span", 0, meta={"is_done": box[1] != " "})
        token.children.insert(0, made)


def _mentions(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline" and _AT.search(token.content):
            token.children = [piece for child in token.children or () for piece in _pieces(child)]


def _pieces(token: Token) -> list[Token]:
    """Split a text token into text and mentions; return any other token unchanged."""
    if token.type != "text" or not _AT.search(token.content):
        return [token]
    text, pieces, start = token.content, [], 0
    for match in MENTION.finditer(text):
        # A full stop after the name ends the sentence.
        end = match.start() + len(match.group().rstrip(".-"))
        pieces += [("text", text[start : match.start()]), ("mention", text[match.start() : end])]
        start = end
    pieces.append(("text", text[start:]))
    return [
        Token(kind, "", 0, content=content, level=token.level)
        for kind, content in pieces
        if content
    ]


def _render_inline_math(
    _renderer: RendererHTML, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: _Env
) -> str:
    return f'<span class="math">{escapeHtml(tokens[idx].content)}</span>'


def _render_block_math(
    _renderer: RendererHTML, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: _Env
) -> str:
    return f'<div class="math">{escapeHtml(tokens[idx].content)}</div>\n'


def _render_task_box(
    _renderer: RendererHTML, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: _Env
) -> str:
    if tokens[idx].meta["is_done"]:
        return '<span class="task-box is-done" role="img" aria-label="Done"></span>'
    return '<span class="task-box" role="img" aria-label="Not done"></span>'


def _render_mention(
    _renderer: RendererHTML, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: _Env
) -> str:
    return f'<bdi class="mention">{escapeHtml(tokens[idx].content)}</bdi>'
