"""Contents in texts for models: by id, never by address."""

import pytest

from uamp.content_labels import labelled, pure
from uamp.storable_text import storable, storable_items, storable_json
from uamp.types.content import ContentItem, FileContent, ImageContent, MediaUrl, TextContent

ID = "0f9619ff-8b86-4011-b42d-00c04fc964ff"
ADDRESS = f"https://chat.example/api/content/{ID}?for=p..chat_1&signature=a:b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        (f"see {ADDRESS} there", f"see content_id {ID} there"),
        (
            f"see /api/content/{ID}?for=p.12.chat_1&amp;signature=a:b there",
            f"see content_id {ID} there",
        ),
    ],
)
def test_an_address_gives_its_place_to_the_id(text: str, expected: str) -> None:
    assert pure(text) == expected


@pytest.mark.parametrize(
    ("item", "label"),
    [
        (TextContent(text="words"), ""),
        (ImageContent(image="QQ=="), ""),
        (ImageContent(image=MediaUrl(url="https://elsewhere.example/a.png")), ""),
        (ImageContent(image="QQ==", content_id="c1"), "[image: content_id=c1]"),
        (ImageContent(image=MediaUrl(url=f"/api/content/{ID}")), f"[image: content_id={ID}]"),
        (
            FileContent(
                file="QQ==",
                filename="a.csv",
                mime_type="text/csv",
                content_id="c2",
                description="rain",
            ),
            "[file: content_id=c2, a.csv, rain]",
        ),
    ],
)
def test_a_medium_is_named_below_the_text(item: ContentItem, label: str) -> None:
    assert labelled("done", [item]) == "\n\n".join(part for part in ("done", label) if part)


def test_texts_that_no_database_takes_are_replaced() -> None:
    assert (storable("plain"), storable("é\0")) == ("plain", "é\N{REPLACEMENT CHARACTER}")
    value = {"a\0": ["\ud800", 1, {"b": "\0"}]}
    assert storable_json(value) == {
        "a\N{REPLACEMENT CHARACTER}": ["?", 1, {"b": "\N{REPLACEMENT CHARACTER}"}]
    }
    assert storable_items(()) == ()
    assert storable_items([TextContent(text="a\0")]) == (
        TextContent(text="a\N{REPLACEMENT CHARACTER}"),
    )
