"""The contents an agent may read: the chat's, and the asker's that no chat shows (UAMP §8.5.4).

People may read more, but an agent must not carry files between their chats. Synchronous.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from agents_app.tools.registry import ToolError
from chat_app.contents import quota, reading_rights, references
from sessions_app.models import Response

if TYPE_CHECKING:
    from collections.abc import Sequence

    import uamp
    from chat_app.models import Content


def chat_owner(chat_id: str) -> quota.ContentOwner:
    """Return the owner of contents that tools create in a chat."""
    return quota.ContentOwner(key=f"chat:{chat_id}")


def asker_of(response: Response) -> quota.ContentOwner:
    """Return the owner whose contents an answer may read, within the chats of its credential.

    That is the credential that asked for it; others of the same person may use the same session.
    """
    session = response.session
    if session is None:
        return quota.ContentOwner()
    chats = response.request.get("chats")
    return quota.ContentOwner(
        user_id=session.user_id,
        key=session.principal,
        chats=None if chats is None else frozenset(chats),
    )


def readable(content_id: str, *, chat_id: str, asker: quota.ContentOwner) -> Content:
    """Return a content created or shown in the chat, or one of the asker's that no chat shows yet.

    Raises ToolError, with the same message for unknown and foreign contents.
    """
    try:
        return _readable(str(uuid.UUID(content_id)), chat_id, asker)
    except (ValueError, reading_rights.ContentNotFound):
        raise ToolError(f"There is no file {content_id[:80]!r} in this chat.") from None


def _readable(content_id: str, chat_id: str, asker: quota.ContentOwner) -> Content:
    # A file that its owner showed only in other chats is not the agent's to show here.
    here = replace(asker, chats=frozenset({chat_id}))
    for owner in (chat_owner(chat_id), here):
        content = reading_rights.readable_own(content_id, owner=owner)
        if content is not None:
            return content
    return reading_rights.in_chat(content_id, chat_id)


def presentable(
    response_id: str, chat_id: str, content_ids: Sequence[str]
) -> tuple[uamp.ContentItem, ...]:
    """Return the items of contents that a response shows, and let its chat read them."""
    asker = asker_of(Response.objects.select_related("session").get(pk=response_id))
    contents = [readable(content_id, chat_id=chat_id, asker=asker) for content_id in content_ids]
    reading_rights.use(chat_id, [str(content.pk) for content in contents])
    return tuple(references.item_of(content) for content in contents)
