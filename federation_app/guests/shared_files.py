"""The files of messages in shared chats, as envelopes describe them. Synchronous."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

import uamp
from chat_app.contents import references
from chat_app.contents.reading_rights import contents_of
from federation_app.guests.contents import DESCRIPTION_CHARS, MAX_FILES, SharedFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from chat_app.contents.reading_rights import ContentRecord

FILE_PATH: Final = "v1/files"
TURN: Final = "turn-"
"""The beginning of the name of a message that waited here (`QueuedTurn`), before its row's id."""
_TURN: Final = re.compile(rf"{TURN}([0-9]{{1,18}})-")


def turn_of(ref: object) -> int | None:
    """Return the row of a message that waits here, by its name; None for any other name."""
    match = _TURN.match(str(ref))
    return None if match is None else int(match[1])


def describe(content: ContentRecord, description: str) -> SharedFile:
    """Return a stored content as envelopes describe it."""
    return SharedFile(
        file=str(content.pk),
        name=content.filename,
        type=content.mime_type,
        size=content.size_bytes,
        sha256=content.sha256,
        description=description[:DESCRIPTION_CHARS],
    )


def files_in(content_items: Sequence[dict[str, Any]]) -> tuple[list[SharedFile], int]:
    """Return the stored files of a message's items, and how many media are not among them."""
    media = [item for item in read_items(content_items) if references.media_of(item) is not None]
    ids = [references.content_ids([item]) for item in media]
    contents = contents_of([content_id for content_ids in ids for content_id in content_ids])
    files = [
        describe(contents[content_ids[0]], _description(item))
        for item, content_ids in zip(media, ids, strict=True)
        if content_ids and content_ids[0] in contents
    ][:MAX_FILES]
    return files, len(media) - len(files)


def read_items(content_items: Sequence[dict[str, Any]]) -> tuple[uamp.ContentItem, ...]:
    """Return the items of a message in the log."""
    return msgspec.convert(list(content_items), tuple[uamp.ContentItem, ...])


def message_items(
    text: str, files: Iterable[tuple[ContentRecord, str]]
) -> tuple[uamp.ContentItem, ...]:
    """Return the items of a message with files and their descriptions; () without files."""
    media = [_item(content, description) for content, description in files]
    if not media:
        return ()
    words = (uamp.TextContent(text=text),) if text else ()
    return (*words, *media)


def input_of(content: ContentRecord, description: str) -> dict[str, Any]:
    """Return the client event with which a file becomes part of a message."""
    item = msgspec.to_builtins(_item(content, description))
    names = ("image", "audio", "video", "file", "format", "filename", "mime_type", "alt_text")
    members = {name: item[name] for name in names if name in item}
    last = {"is_final": True} if item["type"] == "audio" else {}
    return {"type": f"input.{item['type']}", **members, **last}


def _item(content: ContentRecord, description: str) -> uamp.ContentItem:
    item = references.item_of(content)
    if isinstance(item, uamp.ImageContent) and description:
        return msgspec.structs.replace(item, alt_text=description)
    return item


def _description(item: uamp.ContentItem) -> str:
    return (item.alt_text or "") if isinstance(item, uamp.ImageContent) else ""
