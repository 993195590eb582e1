"""Pages as Markdown: what they say, what is left out, and pages that mean harm."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app.tools.page_text import PageText, read_page

BASE = "https://page.example/a/b"


def text(source: str) -> str:
    return read_page(source, base=BASE, limit=100_000).text


def test_a_page_becomes_markdown() -> None:
    page = read_page(
        """<!doctype html><html><head><title> Rain &amp;
        Sun </title><style>p { color: red }</style></head><body><nav><a href=/x>menu</a></nav>
        <h1>Weather <em>today</em></h1><p>It   rains in <a href="/bern">Bern</a>, a &lt; b.<br>Now
        <ul><li>one<li>two<ul><li>inner</ul></ul><ol><li><p>a</p></li><li>b</li></ol>
        <table><tr><th>x<th>y</tr><tr><td>1</td><td>2</td></tr></table>
        <pre>\nif x:\n  y &gt; 1\n</pre><img alt="A cat" src=x><script>if (a<b) "</p>"</script>
        <hr>end<footer>imprint</footer></body></html>""",
        base=BASE,
        limit=1000,
    )
    assert page == PageText(
        title="Rain & Sun",
        text="""\
# Weather today

It rains in [Bern](https://page.example/bern), a < b.
Now

- one
- two
  - inner
1. a
2. b

x | y
1 | 2

```
if x:
  y > 1
```

[image: A cat]

---

end""",
        is_cut=False,
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("plain", "plain"),
        ("", ""),
        ("1 < 2 & 3 > 2", "1 < 2 & 3 > 2"),
        ("a<!-- b --> c<!--> d<!---> e<!doctype x>f<?php g ?>h</>i", "a c d efhi"),
        ("a<!-- no end", "a"),
        ("a<b no end", "a"),
        ("a</b no end", "a"),
        ("a<script>b", "a"),
        ("a<script>b</scripty>c</script >d", "ad"),
        ("<P CLASS='x>y' title=\"</p>\">a</P>b", "a\n\nb"),
        ("<a href='/x>y'>a</a>", "[a](https://page.example/x>y)"),
        ("<a\nhref = c>a b</a>c", "[a b](https://page.example/a/c)c"),
        ("a<a href=x> b </a>c", "a [b](https://page.example/a/x) c"),
        ("<a data-href=x>a</a> <a href>b</a> <a>c</a>", "a b c"),
        ("<a href='javascript:alert(1)'>a</a> <a href='data:,x'>b</a>", "a b"),
        ("<a href='mailto:a@b.example'>a</a>", "a"),
        ("<a href='http://[::1'>a</a>", "a"),
        ("<a href='" + "x" * 500 + "'>a</a>", "a"),
        ("<a href=x><h2>card</h2></a>", "## card"),
        ("<svg><title>x</title><svg></svg>y</svg>z", "z"),
        ("<svg/>a<nav>b", "a"),
        ("<nav>a<nav>b</nav>c</nav>d", "d"),
        ("</li></ul></a></pre></td>a", "a"),
        ("<h1></h1><p>a", "a"),
        ("<li>a<li>b", "- a\n- b"),
        ("a\x00b\x1bc\x7f", "abc"),
        (
            "&#0;&#x110000;&nbsp;&unknown;",
            "\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER} &unknown;",
        ),
        ("<title>one</title><title>two</title>x", "x"),
    ],
)
def test_broken_and_odd_pages_are_read_as_well_as_they_can_be(source: str, expected: str) -> None:
    assert text(source) == expected


def test_a_page_at_the_limit_is_whole_and_one_past_it_is_cut() -> None:
    source = "<p>" + "x" * 100
    assert read_page(source, base=BASE, limit=100) == PageText(
        title="", text="x" * 100, is_cut=False
    )
    assert read_page(source + "y", base=BASE, limit=100) == PageText(
        title="", text="x" * 100, is_cut=True
    )
    assert read_page("<p>a</p>" * 50, base=BASE, limit=10).is_cut


# fmt: off
HOSTILE = [
    "<div>", "<p>", "<b>", "<a ", "<!--", "<![CDATA[", "<!x", "<?", "<a x='", "<a x=\"'", "</p>",
    "<ul><li>", "<a href=x>", "<a href=x>y</a>", "<a href='", "&", "&#", "&am", "<", "</", "< ",
    "<script>", "<title>", "<nav>", "<svg/>", "<a =", "<a ==", '<a = "', "<pre>", "<img alt=x>",
    "<a =' =\"", "<a =\" ='>", "href= ", "<a href", " ", "\n", "x", "<table><tr><td>",
]
# fmt: on


@pytest.mark.sampled(10)
@pytest.mark.parametrize("piece", HOSTILE)
def test_no_page_takes_long(piece: str) -> None:
    source = piece * (500_000 // len(piece))
    began = time.process_time()
    read_page(source, base=BASE, limit=10**9)
    # What grows with the square of the length needs minutes for it.
    assert time.process_time() - began < 5


@given(
    st.lists(
        st.sampled_from(
            [*HOSTILE, "-->", "</script>", "</title>", "</nav>", ">", "'", '"', "a", "é"]
        )
    ).map("".join),
    st.integers(min_value=0, max_value=50),
)
def test_every_page_gives_a_text_within_the_limit(source: str, limit: int) -> None:
    page = read_page(source, base=BASE, limit=limit)
    assert len(page.text) <= limit
    assert not page.is_cut or len(page.text) == limit
