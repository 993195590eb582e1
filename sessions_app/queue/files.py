"""The files of queued messages: the stored contents that their inputs name. Synchronous."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import uamp
from chat_app.contents.quota import ContentOwner
from chat_app.contents.reading_rights import ContentNotFound, readable_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from chat_app.contents.reading_rights import ContentRecord
    from sessions_app.models import QueuedTurn

_MEDIA: Final = ("image", "audio", "video", "file")


class QueuedFile(NamedTuple):
    """A stored content in a queued message, and what its sender wrote about it."""

    content: ContentRecord
    description: str


def named_contents(inputs: Sequence[dict[str, Any]]) -> Iterator[tuple[str | None, str]]:
    """Yield the content id of each medium among inputs, and its description.

    The id is None for data in the message itself and for an address elsewhere.
    """
    for input_event in inputs:
        for kind in _MEDIA:
            medium = input_event.get(kind)
            if medium is not None and input_event.get("type") == f"input.{kind}":
                url = medium.get("url", "") if isinstance(medium, dict) else ""
                yield uamp.content_id_of(url), str(input_event.get("alt_text") or "")


def files_of(row: QueuedTurn) -> list[QueuedFile]:
    """Return the files of a queued message that its credential may still read, in order.

    The right to show them in the chat was checked when the message was queued. Its home may have
    the message by now, so losing that right must not change the message.
    """
    owner = ContentOwner(
        user_id=row.user_id, chats=None if row.chats is None else frozenset(row.chats)
    )
    files = []
    for content_id, description in named_contents(row.inputs):
        if content_id is None:
            continue
        try:
            content = readable_in(content_id, owner=owner, chat_id=row.chat_id)
        except ContentNotFound:
            continue
        files.append(QueuedFile(content, description))
    return files
