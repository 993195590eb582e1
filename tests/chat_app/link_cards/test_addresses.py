"""The links of a text that get a card, and the facts in the head of a page."""

from __future__ import annotations

import time

import pytest

from chat_app.link_cards.addresses import addresses_of
from chat_app.link_cards.heads import PageHead, read_head


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://a.example/x.", ["https://a.example/x"]),
        ("(https://a.example/x_(y)), then", ["https://a.example/x_(y)"]),
        ("[name](https://a.example/x)", ["https://a.example/x"]),
        ("<https://a.example/x>", ["https://a.example/x"]),
        ("https://a.example/#part https://a.example/#other", ["https://a.example/"]),
        ("**https://a.example**", ["https://a.example"]),
        ("`https://a.example` and ```\nhttps://b.example\n```", []),
        ("```\nhttps://never.closed", []),
        ("ftp://a.example javascript:alert(1) //a.example", []),
        (
            "https://1.example https://2.example https://3.example https://4.example",
            ["https://1.example", "https://2.example", "https://3.example"],
        ),
        ("https://a.example/" + "x" * 2048, []),
        ("HTTPS://A.example/ÄÖ", ["HTTPS://A.example/ÄÖ"]),
    ],
)
def test_links_of_a_text(text: str, expected: list[str]) -> None:
    assert addresses_of(text) == expected


@pytest.mark.parametrize(
    "piece", ["`", "```", "https://", "https://a(", "(", "https://a.b/)))))", "'*_~", ")"]
)
def test_no_text_takes_long(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    started = time.process_time()
    addresses_of(text)
    addresses_of(f"https://a{text}")
    assert time.process_time() - started < 1


def test_the_head_of_a_page_names_it() -> None:
    page = """<!doctype html><html><head><title>Plain &amp; simple</title>
        <meta name="description" content="What it   is
        about"><meta property="og:site_name" content='A site'>
        <meta property="og:title" content="The &lt;b&gt; title"></head>
        <body><meta property="og:title" content="not this one"></body>"""
    assert read_head(page) == PageHead("The <b> title", "What it is about", "A site")
    assert read_head("<title>Only \u202e\u0007this</title>") == PageHead("Only this", "", "")
    assert read_head("<title>  </title><meta name=description content=x>") is None
    assert read_head("no page") is None


def test_what_a_page_says_is_bounded() -> None:
    long = "x" * 10_000
    head = read_head(
        f'<title>{long}</title><meta name="description" content="{long}">'
        f'<meta property="og:site_name" content="{long}">'
    )
    assert head is not None
    assert [len(head.title), len(head.description), len(head.site)] == [200, 300, 80]
    assert head.title.endswith("…")
