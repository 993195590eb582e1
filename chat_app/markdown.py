"""Render the Markdown of messages as HTML that is safe to insert into a page.

Nothing that a person, an agent or a tool writes can run, restyle the page or make the browser fetch
anything from another host. Raw HTML is treated as text, and the renderer's output is cleaned again
against an allow-list. Pictures from other hosts become placeholders that the page turns into links;
only content of this server is shown inline (UAMP §8.4.1). The chat page has the same renderer in
the browser (`static/chat/markdown/`); this one serves readers without scripts.
"""

from __future__ import annotations

import hashlib
import logging
import re
import sys
import time
from collections import OrderedDict
from html import unescape
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

from agents_app.workers.child_processes import ChildProcesses, NoneFree, TooSlow, serve
from chat_app.markdown_rules import add_rules
from chat_app.markdown_scripts import add_scripts

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence

    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import OptionsDict

    _Env = MutableMapping[str, Any]

logger = logging.getLogger(__name__)

CACHED_TEXTS: Final = 512
"""How many rendered texts each process caches."""
CACHED_CHARS: Final = 32_000
"""Longer HTML is not cached."""
RENDER_SECONDS: Final = 2.0
"""A text that takes longer to render is shown as plain text."""
PAGE_SECONDS: Final = 4.0
"""Texts of one response that are not rendered within this time are shown as plain text."""
HIGHLIGHT_CHARS: Final = 4_000
"""Longer code blocks are not highlighted: some lexers take quadratic time."""
# fmt: off
LEXERS: Final = frozenset((
    "bash", "c", "c#", "c++", "console", "cpp", "cs", "csharp", "css", "diff", "docker",
    "dockerfile", "elixir", "erlang", "go", "graphql", "haskell", "html", "http", "ini", "java",
    "javascript", "js", "json", "json5", "jsonc", "jsx", "julia", "kotlin", "kt", "latex", "less",
    "lua", "make", "makefile", "md", "markdown", "nginx", "objc", "objective-c", "perl", "php",
    "pl", "postgres", "postgresql", "powershell", "ps1", "protobuf", "proto", "py", "py3",
    "pycon", "python", "python3", "r", "rb", "rs", "ruby", "rust", "scala", "scss", "sh", "shell",
    "sql", "svg", "swift", "tex", "toml", "ts", "tsx", "typescript", "vim", "xml", "yaml", "yml",
    "zsh",
))
# fmt: on
"""The languages that are highlighted; code in others is labelled but left plain."""
BARE_LINKS: Final = 300
"""A text with more "://" gets no links for bare addresses: finding them takes quadratic time."""

_CONTENT_URL = re.compile(r"/api/content/[0-9a-fA-F-]{36}\Z")
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}", re.ASCII)
_WANTED = {
    ("a", "href"): re.compile(r"https?://|mailto:|tel:|sms:|/(?!/)", re.IGNORECASE),
    ("img", "src"): _CONTENT_URL,
}
_ALIGNMENT = re.compile(r"text-align:(left|center|right)")

# fmt: off
_TAGS = {
    "a", "bdi", "blockquote", "br", "code", "del", "details", "div", "em", "h1", "h2", "h3", "h4",
    "h5", "h6", "hr", "img", "kbd", "li", "mark", "ol", "p", "pre", "s", "span", "strong", "sub",
    "summary", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
}
# fmt: on
_ATTRIBUTES = {
    "a": {"href", "title"},
    "div": {"data-language"},
    "img": {"src", "alt", "title", "loading"},
    "ol": {"start"},
    "span": {"data-src", "data-alt", "role", "aria-label"},
}
_CLASSES = {
    "bdi": {"mention"},
    "div": {"code-block", "table-scroll", "math"},
    "li": {"task"},
    "span": {
        *("remote-image", "math", "task-box", "is-done"),
        *(name for name in STANDARD_TYPES.values() if name),
    },
    "td": {"align-left", "align-center", "align-right"},
    "th": {"align-left", "align-center", "align-right"},
}


def _allow_attribute(tag: str, attribute: str, value: str) -> str | None:
    """Return `value` if it is allowed: links need a known scheme, images must be our content."""
    pattern = _WANTED.get((tag, attribute))
    return value if pattern is None or pattern.match(value) else None


_CLEANER = nh3.Cleaner(
    tags=_TAGS,
    attributes=_ATTRIBUTES,
    allowed_classes=_CLASSES,
    attribute_filter=_allow_attribute,
    url_schemes={"http", "https", "mailto", "tel", "sms"},
    link_rel="noopener nofollow noreferrer",
    set_tag_attribute_values={"a": {"target": "_blank"}},
)


def _code_block(code: str, info: str) -> str:
    """Return a code block labelled with its language, highlighted if a lexer is known."""
    match = _LANGUAGE.match(info.strip())
    language = match.group() if match else ""
    body = escapeHtml(code)
    if language.lower() in LEXERS and len(code) <= HIGHLIGHT_CHARS:
        try:
            lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
        except ClassNotFound:
            pass  # An unknown language still gets its label, without highlighting.
        else:
            # The formatter adds a newline to the last line.
            body = highlight(code, lexer, _FORMATTER)
            if not code.endswith("\n"):
                body = body.removesuffix("\n")
    return (
        f'<div class="code-block" data-language="{escapeHtml(language)}">'
        f"<pre><code>{body}</code></pre></div>\n"
    )


def _fence(
    _renderer: RendererHTML, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: _Env
) -> str:
    return _code_block(tokens[idx].content, tokens[idx].info)


def _indented(
    _renderer: RendererHTML, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: _Env
) -> str:
    return _code_block(tokens[idx].content, "")


def _image(
    renderer: RendererHTML, tokens: Sequence[Token], idx: int, options: OptionsDict, env: _Env
) -> str:
    token = tokens[idx]
    source = str(token.attrs.get("src", ""))
    alt = escapeHtml(renderer.renderInlineAsText(token.children or [], options, env))
    if _CONTENT_URL.match(source):
        return f'<img src="{source}" alt="{alt}" loading="lazy">'
    if _is_remote(source):
        source = escapeHtml(source)
        return f'<span class="remote-image" data-src="{source}" data-alt="{alt}">{alt}</span>'
    return alt


def _is_remote(source: str) -> bool:
    try:
        parts = urlsplit(source)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.netloc)


def _table_open(
    _renderer: RendererHTML, _tokens: Sequence[Token], _idx: int, _options: OptionsDict, _env: _Env
) -> str:
    # The box scrolls sideways so that a wide table does not widen the page.
    return '<div class="table-scroll"><table>\n'


def _table_close(
    _renderer: RendererHTML, _tokens: Sequence[Token], _idx: int, _options: OptionsDict, _env: _Env
) -> str:
    return "</table></div>\n"


def _cell_open(
    _renderer: RendererHTML, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: _Env
) -> str:
    # The page's policy forbids style attributes, so the alignment becomes a class.
    token = tokens[idx]
    match = _ALIGNMENT.match(str(token.attrs.get("style", "")))
    return f'<{token.tag} class="align-{match.group(1)}">' if match else f"<{token.tag}>"


def _make_parser(*, linkify: bool) -> MarkdownIt:
    parser = MarkdownIt("gfm-like", {"html": False, "breaks": True, "linkify": linkify})
    if parser.linkify is not None:
        # "main.py" and "notes.md" are file names in a chat, not hosts in Paraguay or Moldova.
        parser.linkify.set({"fuzzy_link": False, "fuzzy_email": False})
    for name, rule in {
        "fence": _fence,
        "code_block": _indented,
        "image": _image,
        "table_open": _table_open,
        "table_close": _table_close,
        "th_open": _cell_open,
        "td_open": _cell_open,
    }.items():
        parser.add_render_rule(name, rule)
    add_scripts(parser)
    add_rules(parser)
    return parser


_FORMATTER = HtmlFormatter(nowrap=True)
_PARSER = _make_parser(linkify=True)
_PARSER_WITHOUT_LINKIFY = _make_parser(linkify=False)
_LOCK = Lock()
# None marks a text whose rendering was stopped.
_rendered: OrderedDict[bytes, str | None] = OrderedDict()
_processes = ChildProcesses("chat_app.markdown")


def render(text: str, *, asker: str = "", until: float | None = None) -> str:
    """Return `text` as sanitised HTML, safe to insert into a page of this server.

    The result holds no script, style, form, frame or handler; links open in a new tab without
    referrer; an image from another host becomes `<span class="remote-image" data-src data-alt>`;
    code is `<div class="code-block" data-language><pre><code>` with Pygments classes. Any text is
    accepted. It is rendered in another process, which is killed after RENDER_SECONDS; the text is
    then shown as plain text, as is one that is not rendered before `until` (`time.monotonic()`).
    Callers take turns, so each `asker` waits only for its own texts. The HTML of recent texts is
    cached, and so is the fact that one was stopped, which makes rendering a page of history again
    cheap.
    """
    encoded = text.encode("utf-8", "replace")  # a lone surrogate cannot be sent: it becomes "?"
    digest = hashlib.blake2b(encoded, digest_size=16).digest()
    with _LOCK:
        if digest in _rendered:
            _rendered.move_to_end(digest)
            cached = _rendered[digest]
            return _as_written(encoded) if cached is None else cached
    seconds = RENDER_SECONDS if until is None else min(RENDER_SECONDS, until - time.monotonic())
    if seconds <= 0:
        return _as_written(encoded)
    html: str | None
    try:
        html = _processes.ask(encoded, asker=asker, seconds=seconds).decode()
    except NoneFree:
        return _as_written(encoded)
    except TooSlow:
        if seconds < RENDER_SECONDS:
            return _as_written(encoded)
        logger.warning("a text of %d bytes takes too long to render", len(encoded))
        html = None
    if html is None or len(html) <= CACHED_CHARS:
        with _LOCK:
            _rendered[digest] = html
            if len(_rendered) > CACHED_TEXTS:
                _rendered.popitem(last=False)
    return _as_written(encoded) if html is None else html


def _as_written(encoded: bytes) -> str:
    return f"<p>{escapeHtml(encoded.decode())}</p>".replace("\n", "<br>\n")


def plain(text: str, *, asker: str = "", until: float | None = None) -> str:
    """Return `text` on one line without its Markdown markup; the result is text, not HTML."""
    if not text:
        return ""
    html = nh3.clean(render(text, asker=asker, until=until), tags=set())
    return " ".join(unescape(html).split())


def render_here(encoded: bytes) -> bytes:
    """Return a text as sanitised HTML. Not thread-safe, since linkify-it keeps state."""
    crowded = encoded.count(b"://") > BARE_LINKS
    parser = _PARSER_WITHOUT_LINKIFY if crowded else _PARSER
    return _CLEANER.clean(parser.render(encoded.decode())).strip().encode()


if __name__ == "__main__":
    serve(render_here, sys.stdin.buffer, sys.stdout.buffer)
