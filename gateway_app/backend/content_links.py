"""Temporary addresses of stored contents, for clients that have no key of this server."""

from __future__ import annotations

import uamp
from chat_app.contents.addresses import ContentReader
from chat_app.contents.references import absolute_url


def content_link(url: str, *, base_url: str, user_id: int | None, chat_id: str) -> str:
    """Return an address of a medium that any client can read for a while.

    It works while the chat shows the content and the person, if any, is in the chat. An address
    elsewhere is returned unchanged, and so is every address if there is neither a person nor a
    chat: it would have no reader.
    """
    if user_id is None and not chat_id:
        return url
    item = uamp.ImageContent(image=uamp.MediaUrl(url=url))
    reader = ContentReader(user_id=user_id, chat_id=chat_id)
    return absolute_url(item, base_url=base_url, reader=reader) or url
