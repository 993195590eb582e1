"""Short ways to blocks of media."""

from pathlib import Path

import pytest

from upp import (
    Audio,
    AudioBlock,
    Base64Source,
    BytesSource,
    Document,
    DocumentBlock,
    Image,
    ImageBlock,
    TextSource,
    UrlSource,
    Video,
    VideoBlock,
)

DATA = b"\x00\xff"


def test_media_come_from_files_with_the_types_of_their_names(tmp_path: Path) -> None:
    for name in ("a.png", "a.pdf", "a.mp3", "a.mp4"):
        (tmp_path / name).write_bytes(DATA)
    (tmp_path / "a.csv").write_text("ä,b", encoding="utf-8")
    assert Image.from_path(tmp_path / "a.png") == ImageBlock(
        source=BytesSource(data=DATA), mime_type="image/png"
    )
    assert Document.from_path(str(tmp_path / "a.pdf")) == DocumentBlock(
        source=Base64Source(data="AP8="), mime_type="application/pdf", title="a.pdf"
    )
    assert Document.from_path(tmp_path / "a.csv") == DocumentBlock(
        source=TextSource(data="ä,b"), mime_type="text/csv", title="a.csv"
    )
    assert Audio.from_path(tmp_path / "a.mp3") == AudioBlock(data=DATA, mime_type="audio/mpeg")
    assert Video.from_path(tmp_path / "a.mp4") == VideoBlock(data=DATA, mime_type="video/mp4")


def test_a_type_that_is_given_counts_and_one_that_cannot_be_detected_is_an_error(
    tmp_path: Path,
) -> None:
    strange = tmp_path / "a.strange"
    strange.write_bytes(DATA)
    assert Image.from_path(strange, "image/x").mime_type == "image/x"
    with pytest.raises(ValueError, match="cannot be inferred"):
        Image.from_path(strange)
    with pytest.raises(ValueError, match="cannot be inferred"):
        Document.from_url("https://example.org/")
    with pytest.raises(ValueError, match="cannot be inferred"):
        Document.from_path("table.csv.gz")


def test_media_come_from_addresses_texts_and_base64() -> None:
    assert Image.from_url("https://x.example/a.png?size=2") == ImageBlock(
        source=UrlSource(url="https://x.example/a.png?size=2"), mime_type="image/png"
    )
    assert Image.from_base64("AP8=", "image/png").source == Base64Source(data="AP8=")
    assert Document.from_url("https://x.example/a", "application/pdf", title="t") == DocumentBlock(
        source=UrlSource(url="https://x.example/a"), mime_type="application/pdf", title="t"
    )
    assert Document.from_text("a") == DocumentBlock(
        source=TextSource(data="a"), mime_type="text/plain"
    )
    assert Video.from_bytes(DATA, "video/mp4", duration=1.5).duration == 1.5
    assert Audio.from_base64("AP8=", "audio/wav") == AudioBlock(data=DATA, mime_type="audio/wav")
    assert Video.from_base64("AP8=", "video/mp4") == VideoBlock(data=DATA, mime_type="video/mp4")
    with pytest.raises(ValueError, match="padding"):
        Audio.from_base64("AP8=!", "audio/wav")
