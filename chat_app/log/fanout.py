"""Delivery to the members of a chat. Layer messages are hints; the log is authoritative.

Every layer message carries its event, encoded once, so that delivery needs no query. A process that
misses one notices by `seq` or `offset` and reads the log. Sending is time-boxed: a hanging layer
costs half a second and loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from typing import TYPE_CHECKING, Any, Final

import msgspec
from channels.layers import get_channel_layer
from django.db import transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence

logger = logging.getLogger(__name__)

SEND_TIMEOUT_SECONDS: Final = 0.5
# Every process listens here for messages about its running responses.
PROCESSES_GROUP: Final = "processes"


def chat_group(chat_id: str) -> str:
    """Return the group of all sockets and streams that follow a chat."""
    return f"chat.{chat_id}"


def session_group(session_id: str) -> str:
    """Return the group of the event streams of one session: replies to its HTTP requests."""
    return f"session.{session_id}"


def person_group(user_id: int) -> str:
    """Return the group of all sockets that watch the chats of a person."""
    return f"person.{user_id}"


def event_message(
    *, chat_id: str, seq: int, event_type: str, response_id: str, frame: str, origin: str = ""
) -> dict[str, Any]:
    """Return the layer message for a durable event; `frame` has its `seq` but no `session_id`."""
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
    """Return the layer message that replaces the whole text of a running response."""
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
    before_end: bool = False,
    is_watched: bool = False,
) -> dict[str, Any]:
    """Return the layer message for a transient event: typing, presence, progress, voice.

    `response_id` is the response it belongs to, if any; `user_id` the person it is about, who need
    not receive it; `to_user_id` and `to_session_id` its only recipients, if set. With `before_end`
    it is part of the answer, and is dropped once the end of that was sent. With `is_watched` it
    also reaches sockets that watch the chat without a session in it.
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
        "before_end": before_end,
        "watched": is_watched,
    }


def person_message(
    user_id: int, frame: str, *, added: str = "", removed: str = ""
) -> dict[str, Any]:
    """Return the layer message for the sockets that watch the chats of a person.

    `added` or `removed` names a chat that they start or stop watching.
    """
    return {
        "type": "person.event",
        "person": user_id,
        "frame": frame,
        "added": added,
        "removed": removed,
    }


def send_to_person_on_commit(message: dict[str, Any], *, waits: bool = True) -> None:
    """Send a message of `person_message` on commit (from threads).

    Without `waits` the thread does not wait until it is sent.
    """
    group = person_group(message["person"])
    run = _threads.run if waits else _threads.start
    transaction.on_commit(lambda: run(send, group, message))


_listeners: Final[list[Callable[[str, dict[str, Any]], None]]] = []


def also_tell(listener: Callable[[str, dict[str, Any]], None]) -> None:
    """Also call a function with the group and the layer message of each send of this process.

    It runs on the loop that sends, and must neither block nor raise.
    """
    if listener not in _listeners:
        _listeners.append(listener)


async def send(group: str, message: dict[str, Any]) -> None:
    """Send one layer message to a group; failures are only logged, since the log remains."""
    layer = get_channel_layer()
    try:
        async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
            await layer.group_send(group, message)
    except Exception:
        # Whatever a layer raises, the fact is committed, and readers find it by polling the log.
        logger.warning("channel layer did not take a message for %s", group, exc_info=True)
    for listener in _listeners:
        listener(group, message)


async def publish(chat_id: str, messages: Iterable[dict[str, Any]]) -> None:
    """Send layer messages to a chat's group, in order."""
    group = chat_group(chat_id)
    for message in messages:
        await send(group, message)


def publish_on_commit(chat_id: str, messages: Sequence[dict[str, Any]]) -> None:
    """Send layer messages once the current transaction has committed (synchronous callers)."""
    transaction.on_commit(lambda: publish_from_thread(chat_id, messages))


def publish_from_thread(chat_id: str, messages: Sequence[dict[str, Any]]) -> None:
    """Send layer messages to a chat's group from synchronous code, in order; returns when sent."""
    _threads.run(publish, chat_id, messages)


def send_from_thread(group: str, message: dict[str, Any]) -> None:
    """Send one layer message to a group from synchronous code; returns when sent."""
    _threads.run(send, group, message)


class _ThreadSender:
    """The one loop on which all threads of a process send.

    Any thread without a running event loop may call `run`, which blocks until the message is sent.
    Connections to Redis belong to a loop, so a loop per call would mean a connection per call. A
    forked child does not inherit threads, and creates its own loop.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        os.register_at_fork(after_in_child=self._forget)

    def start(self, function: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        """Start a coroutine function that handles its own errors; see `run`."""
        asyncio.run_coroutine_threadsafe(function(*arguments), self._running_loop())

    def run(self, function: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        """Run a coroutine function to completion; raises RuntimeError on the thread of a loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run_coroutine_threadsafe(function(*arguments), self._running_loop()).result()
        else:
            raise RuntimeError("Code on a loop awaits fanout.publish; it must not wait for it.")

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="fanout", daemon=True).start()
            return self._loop

    def _forget(self) -> None:
        self._lock, self._loop = threading.Lock(), None


_threads: Final = _ThreadSender()


def frame_of(payload: dict[str, Any], seq: int) -> str:
    """Return a stored event as a frame without `session_id`.

    PostgreSQL does not preserve the order of members; a frame begins with the ones common to all
    events.
    """
    head = {name: payload[name] for name in ("type", "event_id", "timestamp")}
    return msgspec.json.encode({**head, "seq": seq, **payload}).decode()
