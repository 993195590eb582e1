"""Reads of a thread for returning clients: its messages and the running answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

import uamp
from chat_app.log import history
from sessions_app import database, selectors
from sessions_app.process import registry

if TYPE_CHECKING:
    from collections.abc import Sequence


async def messages_of(chat_id: str) -> list[uamp.ChatMessage]:
    """Return the last messages of a chat that the caller may read, oldest first.

    At most as many as a turn may send back (`Limits.messages`).
    """
    limit = uamp.DEFAULT_LIMITS.messages
    return await database.run(history.last_messages, chat_id, limit=limit)


async def output_of(response_id: str) -> Sequence[uamp.ContentItem]:
    """Return the output of a response so far, from its run here or as last stored."""
    run = registry.current().runs.get(response_id)
    if run is not None:
        return run.answer.snapshot().output
    stored = await database.run(selectors.output_so_far, response_id)
    return msgspec.convert(stored, tuple[uamp.ContentItem, ...])
