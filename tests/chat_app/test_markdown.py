"""Markdown of messages: what it makes, and that nothing in it can run or fetch."""

from html.parser import HTMLParser
from time import process_time

import pytest

from chat_app import markdown
from chat_app.markdown import render
from tests.markdown_corpus import CONTENT, XSS_CORPUS

ALLOWED = {
    "bdi": {"class"},
    "a": {"href", "title", "target", "rel"},
    "div": {"class", "data-language"},
    "img": {"src", "alt", "title", "loading"},
    "ol": {"start"},
    "li": {"class"},
    "span": {"class", "data-src", "data-alt", "role", "aria-label"},
    "td": {"class"},
    "th": {"class"},
}
# fmt: off
PLAIN_TAGS = {
    "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "p",
    "pre", "s", "strong", "table", "tbody", "thead", "tr", "ul",
}
# fmt: on


class Markup(HTMLParser):
    """The tags of a piece of HTML, as a parser sees them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the tag."""
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def all(self, tag: str) -> list[dict[str, str]]:
        """Return the attributes of each such tag."""
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.mark.parametrize("text", XSS_CORPUS)
def test_nothing_in_the_corpus_can_run_or_fetch(text: str) -> None:
    markup = Markup(render(text))
    for tag, attributes in markup.tags:
        assert tag in PLAIN_TAGS or tag in ALLOWED
        assert set(attributes) <= ALLOWED.get(tag, set())
    for link in markup.all("a"):
        assert link.get("href", "https://").startswith(("https://", "http://", "mailto:"))
        assert link["rel"] == "noopener nofollow noreferrer"
        assert link["target"] == "_blank"
    for image in markup.all("img"):
        assert image["src"] == CONTENT
    for span in markup.all("span"):
        if span.get("class") == "remote-image":
            assert span["data-src"].startswith("https://evil.test/")


def test_raw_html_is_shown_as_text() -> None:
    assert render("<b>x</b>") == "<p>&lt;b&gt;x&lt;/b&gt;</p>"


def test_paragraphs_emphasis_and_line_breaks() -> None:
    assert render("a **b** _c_ ~~d~~\ne") == (
        "<p>a <strong>b</strong> <em>c</em> <s>d</s><br>\ne</p>"
    )


def test_a_bare_address_becomes_a_link_and_a_file_name_does_not() -> None:
    assert render("see https://a.test/b or main.py") == (
        '<p>see <a href="https://a.test/b" target="_blank" '
        'rel="noopener nofollow noreferrer">https://a.test/b</a> or main.py</p>'
    )


def test_code_carries_its_language_and_colours() -> None:
    assert render("```python\nreturn 1\n```") == (
        '<div class="code-block" data-language="python"><pre><code>'
        '<span class="k">return</span> <span class="mi">1</span>\n</code></pre></div>'
    )


def test_code_of_an_unknown_language_keeps_its_label() -> None:
    assert render("```nosuch\na<b\n```") == (
        '<div class="code-block" data-language="nosuch"><pre><code>a&lt;b\n</code></pre></div>'
    )


def test_long_code_is_shown_without_colours() -> None:
    code = "x = 1\n" * (markdown.HIGHLIGHT_CHARS // 6 + 1)
    assert "<span" not in render(f"```python\n{code}```")
    assert "<span" in render(f"```python\n{code[: markdown.HIGHLIGHT_CHARS - 6]}```")


def test_tables_align_by_class_inside_a_box_that_scrolls() -> None:
    assert render("|a|b|\n|:-|-:|\n|1|2|") == (
        '<div class="table-scroll"><table>\n<thead>\n<tr>\n'
        '<th class="align-left">a</th>\n<th class="align-right">b</th>\n</tr>\n</thead>\n'
        '<tbody>\n<tr>\n<td class="align-left">1</td>\n<td class="align-right">2</td>\n'
        "</tr>\n</tbody>\n</table></div>"
    )


def test_content_of_this_server_is_shown_inline() -> None:
    assert render(f"![a cat]({CONTENT})") == (
        f'<p><img src="{CONTENT}" alt="a cat" loading="lazy"></p>'
    )


def test_an_image_of_another_host_is_a_placeholder() -> None:
    assert render("![a **cat**](https://h.test/c.png?a=1&b=2)") == (
        '<p><span class="remote-image" data-src="https://h.test/c.png?a=1&amp;b=2" '
        'data-alt="a cat">a cat</span></p>'
    )


def test_an_image_that_may_not_be_shown_leaves_its_description() -> None:
    assert render("![a cat](data:image/png;base64,AA)") == "<p>a cat</p>"


def test_a_lone_surrogate_is_replaced() -> None:
    assert render("\ud800 x") == "<p>? x</p>"


def test_a_mention_is_isolated_from_the_direction_of_its_text() -> None:
    html = render("\u05e9\u05dc\u05d5\u05dd @alice. `@code` a@h.test [@bob](https://h.test)")
    assert '<bdi class="mention">@alice</bdi>.' in html
    assert '<bdi class="mention">@bob</bdi></a>' in html
    assert html.count("<bdi") == 2


def test_a_second_render_comes_from_the_cache() -> None:
    text = "cached **once**"
    assert render(text) is render(text)


def test_the_cache_is_bounded() -> None:
    for number in range(markdown.CACHED_TEXTS + 10):
        render(f"text {number}")
    assert len(markdown._rendered) == markdown.CACHED_TEXTS
    long_text = "x" * (markdown.CACHED_CHARS + 1)
    assert render(long_text) is not render(long_text)


@pytest.mark.parametrize(
    "text",
    [
        "http://a" * 8000,
        "[a](http://" * 5000,
        "[" * 50_000,
        "> " * 20_000,
        "![" * 20_000,
        "`" * 50_000,
        "*a_" * 20_000,
    ],
    ids=lambda text: text[:8],
)
def test_hostile_text_is_rendered_in_bounded_time(text: str) -> None:
    started = process_time()
    render(text)
    assert process_time() - started < 4
