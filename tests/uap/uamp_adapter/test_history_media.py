"""Media and documents of a stored conversation, as sent to a model."""

import base64
from typing import Any

import pytest

from tests.agents_app.run_context import Media
from tests.uap.uamp_adapter.messages import CONTENT, PNG, shape, user
from uamp.types.content import (
    AudioContent,
    FileContent,
    ImageContent,
    MediaUrl,
    Message,
    TextContent,
    VideoContent,
)
from uap.uamp_adapter import media as media_module
from uap.uamp_adapter.history import attachments_of, to_conversation
from upp import AudioBlock, DocumentBlock, ImageBlock, TextBlock, UserMessage


def linked(number: int) -> MediaUrl:
    return MediaUrl(url=f"/api/content/{CONTENT}{number}")


async def test_a_script_gets_the_text_alone_and_knows_the_attachments() -> None:
    attached = FileContent(
        file=linked(0), filename="a.csv", mime_type="text/csv", content_id="id-1"
    )
    conversation = await to_conversation(
        [user("see", TextContent(text="see"), attached)], agent_name="bot"
    )
    (message,) = conversation.messages
    assert shape([message]) == [("user", ["see"])]
    assert attachments_of(message) == [
        {"content_id": "id-1", "kind": "file", "filename": "a.csv", "mime_type": "text/csv"}
    ]
    assert attachments_of(UserMessage(content=())) == []


async def test_a_message_without_text_for_a_script_is_empty() -> None:
    conversation = await to_conversation(
        [user(None, ImageContent(image=linked(0)))], agent_name="bot"
    )
    assert shape(conversation.messages) == [("user", [""])]


async def test_a_model_gets_media_where_they_stood() -> None:
    media = Media(
        {
            f"{CONTENT}0": (PNG, "application/octet-stream"),
            f"{CONTENT}1": (b"%PDF", "application/pdf"),
            f"{CONTENT}2": (b"x" * 20, "text/csv"),
            f"{CONTENT}3": (b"PK", "application/zip"),
        }
    )
    items = (
        TextContent(text="before"),
        ImageContent(image=linked(0), format="png"),
        TextContent(text="after"),
        FileContent(file=linked(1), filename="p", mime_type="application/pdf"),
        FileContent(file=linked(2), filename="a.csv", mime_type="text/csv"),
        FileContent(file=linked(3), filename="z", mime_type="application/zip"),
        FileContent(file=linked(9), filename="gone.txt", mime_type="text/plain"),
        ImageContent(image=MediaUrl(url="https://elsewhere.example/a.png")),
        ImageContent(image="no base64!"),
        ImageContent(image=base64.b64encode(b"\xff\xd8\xff").decode()),
        AudioContent(audio=linked(0), format="wav"),
        VideoContent(video=linked(0)),
    )
    conversation = await to_conversation(
        [user("before after", *items)], agent_name="bot", media=media
    )
    (message,) = conversation.messages
    assert isinstance(message, UserMessage)
    picture, pdf, table, jpeg = (b for b in message.content if not isinstance(b, TextBlock))
    assert isinstance(picture, ImageBlock)
    assert picture.mime_type == "image/png"
    assert isinstance(pdf, DocumentBlock)
    assert (pdf.title, pdf.mime_type) == ("p", "application/pdf")
    assert isinstance(table, DocumentBlock)
    assert table.source.data == "x" * 20  # type: ignore[union-attr] # it is a TextSource
    assert isinstance(jpeg, ImageBlock)
    assert jpeg.mime_type == "image/jpeg"
    texts = [block.text for block in message.content if isinstance(block, TextBlock)]
    assert texts == [
        "before",
        f"[attachment: content_id={CONTENT}0, kind=image, mime_type=image/png]",
        "after",
        f"[attachment: content_id={CONTENT}1, kind=file, filename=p, mime_type=application/pdf]",
        f"[attachment: content_id={CONTENT}2, kind=file, filename=a.csv, mime_type=text/csv]",
        f"[attachment: content_id={CONTENT}3, kind=file, filename=z, mime_type=application/zip]",
        f"[attachment: content_id={CONTENT}9, kind=file, filename=gone.txt, mime_type=text/plain]",
        "[attachment: kind=image]",
        "[attachment: kind=image]",
        "[attachment: kind=image]",
        f"[attachment: content_id={CONTENT}0, kind=audio, mime_type=audio/wav]",
        f"[attachment: content_id={CONTENT}0, kind=video]",
    ]


async def test_media_beyond_the_budget_are_named_only_and_the_newest_come_first(
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr(media_module, "MEDIA_BYTES", len(PNG) + 5)
    media = Media({f"{CONTENT}{n}": (PNG, "image/png") for n in (0, 1)})
    messages = [
        user("old", ImageContent(image=linked(0))),
        user("new", ImageContent(image=linked(1))),
    ]
    conversation = await to_conversation(messages, agent_name="bot", media=media)
    old, new = conversation.messages
    assert isinstance(old, UserMessage)
    assert isinstance(new, UserMessage)
    assert not any(isinstance(block, ImageBlock) for block in old.content)
    assert any(isinstance(block, ImageBlock) for block in new.content)


async def test_a_long_document_is_cut_and_says_so(monkeypatch: Any) -> None:
    monkeypatch.setattr(media_module, "DOCUMENT_CHARS", 4)
    media = Media({f"{CONTENT}0": (b"abcdefgh", "text/plain")})
    attached = FileContent(file=linked(0), filename="a.txt", mime_type="text/plain")
    conversation = await to_conversation([user("", attached)], agent_name="bot", media=media)
    (message,) = conversation.messages
    assert isinstance(message, UserMessage)
    assert message.content[-1].source.data == "abcd\n[cut off after 4 characters]"  # type: ignore[union-attr] # a document


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("é\n".encode(), "é\n"),
        ("é\n".encode("utf-8-sig"), "é\n"),
        ("é\n".encode("utf-16"), "é\n"),
        (
            "é\n".encode("cp1252"),
            "[not UTF-8: \ufffd stands for what could not be read]\n\ufffd\n",
        ),
    ],
)
async def test_a_document_that_is_not_utf_8_says_so(data: bytes, text: str) -> None:
    media = Media({f"{CONTENT}0": (data, "text/csv")})
    attached = FileContent(file=linked(0), filename="a.csv", mime_type="text/csv")
    conversation = await to_conversation([user("", attached)], agent_name="bot", media=media)
    (message,) = conversation.messages
    assert isinstance(message, UserMessage)
    assert message.content[-1].source.data == text  # type: ignore[union-attr] # a document


def test_a_picture_is_known_by_its_first_bytes() -> None:
    assert media_module._picture_type(b"GIF89a...") == "image/gif"
    assert media_module._picture_type(b"RIFF....WEBPVP8 ") == "image/webp"
    assert media_module._picture_type(b"RIFF....WAVEfmt ") is None
    assert media_module._picture_type(b"<svg>") is None


async def test_what_an_agent_attached_is_not_read() -> None:
    media = Media({f"{CONTENT}0": (PNG, "image/png")})
    other = Message(
        role="assistant", content="see", content_items=(ImageContent(image=linked(0)),), name="o"
    )
    await to_conversation([other], agent_name="bot", media=media)
    assert media.asked == []


async def test_a_sound_that_is_what_was_said_has_no_label() -> None:
    sound = AudioContent(audio="QUJD", format="wav")
    media = media_module.RequestMedia(Media({}), accepts_audio=True, names_audio=False)
    await media.read([user(None, sound)])
    (block,) = media.blocks(sound)
    assert isinstance(block, AudioBlock)
    assert media_module.RequestMedia(None, accepts_audio=True).blocks(sound) == []
