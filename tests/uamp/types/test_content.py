"""Content ids: kept, found in the URL, or made (UAMP §8.5.4)."""

import pytest

import uamp
from uamp.types.content import with_content_id

_ID = "550e8400-e29b-41d4-a716-446655440000"


@pytest.mark.parametrize(
    "url",
    [
        f"/api/content/{_ID}",
        f"/api/content/{_ID}/",
        f"/api/content/{_ID.upper()}",
        f"/api/content/{_ID}?sig=a/b&exp=1#x",
        f"https://example.com/api/content/{_ID}",
        f"http://localhost:8000/api/content/{_ID}?x",
    ],
)
def test_the_id_is_read_from_the_url(url: str) -> None:
    assert uamp.content_id_of(url) == _ID


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/api/content/",
        f"/api/content/{_ID}x",
        f"/api/content/{_ID}/raw",
        f"/other/api/content/{_ID}",
        f"https://example.com/?u=/api/content/{_ID}",
        f"https://example.com#/api/content/{_ID}",
        f"ftp://example.com/api/content/{_ID}",
        "/api/content/550e8400-...",
    ],
)
def test_other_urls_have_no_id(url: str) -> None:
    assert uamp.content_id_of(url) is None


_MEDIA = [
    uamp.ImageContent(image=uamp.MediaUrl(url=f"/api/content/{_ID}")),
    uamp.AudioContent(audio=uamp.MediaUrl(url=f"/api/content/{_ID}")),
    uamp.VideoContent(video=uamp.MediaUrl(url=f"/api/content/{_ID}")),
    uamp.FileContent(file=f"/api/content/{_ID}", filename="a", mime_type="b/c"),
]


@pytest.mark.parametrize("item", _MEDIA, ids=lambda item: type(item).__name__)
def test_a_medium_takes_the_id_of_its_url(item: uamp.MediaContent) -> None:
    labelled = with_content_id(item, lambda: "new")
    assert isinstance(labelled, uamp.MediaContent)
    assert labelled.content_id == _ID
    assert uamp.media_of(labelled) == uamp.media_of(item)


def test_a_medium_keeps_its_own_id() -> None:
    item = uamp.ImageContent(image=uamp.MediaUrl(url=f"/api/content/{_ID}"), content_id="mine")
    assert with_content_id(item, lambda: "new") is item


def test_a_medium_without_an_id_gets_a_new_one() -> None:
    item = uamp.ImageContent(image="AAAA", alt_text="a cat")
    assert with_content_id(item, lambda: "new") == uamp.ImageContent(
        image="AAAA", alt_text="a cat", content_id="new"
    )


def test_text_has_no_medium_and_no_id() -> None:
    item = uamp.TextContent(text="a")
    assert uamp.media_of(item) is None
    assert with_content_id(item, lambda: "new") is item
