"""Delivery to the members of a chat. The layer is a doorbell, the log is the truth (D2, F2).

Every layer message carries what its event says, encoded once, so that nobody queries to deliver it.
Whoever misses one finds out by `seq` or `offset` and reads the log. Sending is time-boxed: a layer
that hangs costs half a second and no fact.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

import msgspec
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

logger = logging.getLogger(__name__)

SEND_TIMEOUT_SECONDS: Final = 0.5
# Every process listens here for what concerns its running responses.
PROCESSES_GROUP: Final = "processes"

_home: asyncio.AbstractEventLoop | None = None


def chat_group(chat_id: str) -> str:
    """Return the group of all sockets and streams that follow a chat."""
    return f"chat.{chat_id}"


def session_group(session_id: str) -> str:
    """Return the group of the event streams of one session: replies to its HTTP requests."""
    return f"session.{session_id}"


def event_message(
    *, chat_id: str, seq: int, event_type: str, response_id: str, frame: str, origin: str = ""
) -> dict[str, Any]:
    """Return the layer message for one durable event; `frame` has its `seq` and no `session_id`."""
    return {
        "type": "chat.event",
        "chat": chat_id,
        "seq": seq,
        "event": event_type,
        "response": response_id,
        "frame": frame,
        "origin": origin,
    }


def delta_message(
    *, chat_id: str, response_id: str, offset: int, text: str, origin: str
) -> dict[str, Any]:
    """Return the layer message for text of a running response; `offset` is in code points."""
    return {
        "type": "chat.delta",
        "chat": chat_id,
        "response": response_id,
        "offset": offset,
        "text": text,
        "origin": origin,
    }


def text_message(*, chat_id: str, response_id: str, text: str) -> dict[str, Any]:
    """Return the layer message for the whole text of a running response: it replaces all text."""
    return {"type": "chat.text", "chat": chat_id, "response": response_id, "text": text}


def signal_message(
    *,
    chat_id: str,
    frame: str,
    origin: str = "",
    response_id: str = "",
    user_id: int | None = None,
    to_user_id: int | None = None,
    to_session_id: str | None = None,
) -> dict[str, Any]:
    """Return the layer message for an event that is not kept: typing, presence, progress, voice.

    `response_id` is the response it belongs to, if any; `user_id` the person whom it is about, who
    does not need to hear it; `to_user_id` and `to_session_id` the only person and the only session
    that it is for, if there is one.
    """
    return {
        "type": "chat.signal",
        "chat": chat_id,
        "frame": frame,
        "origin": origin,
        "response": response_id,
        "user": user_id,
        "to": to_user_id,
        "session": to_session_id,
    }


async def send(group: str, message: dict[str, Any]) -> None:
    """Send one layer message to a group; a layer that fails is logged, the log repairs it."""
    layer = get_channel_layer()
    try:
        async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
            await layer.group_send(group, message)
    except Exception:
        # Whatever a layer raises, the fact is committed and readers find it by polling the log.
        logger.warning("channel layer did not take a message for %s", group, exc_info=True)


async def publish(chat_id: str, messages: Iterable[dict[str, Any]]) -> None:
    """Send layer messages to a chat's group, in order."""
    group = chat_group(chat_id)
    for message in messages:
        await send(group, message)


def publish_on_commit(chat_id: str, messages: Sequence[dict[str, Any]]) -> None:
    """Send layer messages once the current transaction has committed (synchronous callers)."""
    transaction.on_commit(lambda: publish_from_thread(chat_id, messages))


def publish_from_thread(chat_id: str, messages: Sequence[dict[str, Any]]) -> None:
    """Send layer messages from synchronous code: on the server's loop where there is one.

    A loop of its own for each call would mean a connection of its own to Redis.
    """
    if _home is not None and _home.is_running():
        asyncio.run_coroutine_threadsafe(publish(chat_id, messages), _home)
    else:
        async_to_sync(publish)(chat_id, messages)


def set_home(loop: asyncio.AbstractEventLoop) -> None:
    """Name the loop of this server process."""
    global _home  # noqa: PLW0603 a process has one server loop
    _home = loop


def frame_of(payload: dict[str, Any], seq: int) -> str:
    """Return a stored event as a frame without `session_id`.

    PostgreSQL gives members back in an order of its own; a frame begins with what every event has.
    """
    head = {name: payload[name] for name in ("type", "event_id", "timestamp")}
    return msgspec.json.encode({**head, "seq": seq, **payload}).decode()
