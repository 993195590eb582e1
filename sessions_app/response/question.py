"""The message that a response answers, bound by the signature of the answer (UAMP §6.7).

Its hash is stored when the response begins: the message may be edited before the answer is signed,
and another process may sign it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

import uamp
from uamp.signatures import request_of, sha256_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chat_app.log.entries import NewMessage

_INLINE_CHARS: Final = 4096
"""A longer text is hashed on another thread: it takes about a millisecond for each 200 KB."""


def question_hash(
    message_id: str, role: str, content: str, content_items: Sequence[Any], salt: str | None
) -> str:
    """Return the `request_hash` of a message, or "" if it has no canonical form.

    An answer to such a message cannot be signed.
    """
    message = {
        "id": message_id,
        "role": role,
        "content": content,
        "content_items": content_items,
        "salt": salt,
    }
    try:
        return sha256_of(request_of(message))
    except ValueError:
        return ""


async def hash_of_message(message: NewMessage) -> str:
    """Return the `question_hash` of a new message without blocking the event loop."""
    chars = len(message.content) + sum(
        len(item.text) for item in message.content_items if isinstance(item, uamp.TextContent)
    )
    if chars <= _INLINE_CHARS:
        return _hash_of(message)
    return await asyncio.to_thread(_hash_of, message)


def _hash_of(message: NewMessage) -> str:
    items = msgspec.to_builtins(message.content_items)
    return question_hash(message.id, message.role, message.content, items, message.salt)
