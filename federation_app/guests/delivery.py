"""The delivery of shared chats to peers: one item after the other for each peer.

Any process delivers. A peer that does not answer holds up no other one, because each has a task and
a thread, which no other part of the server uses. All items of one run share a connection.
What this process commits wakes it at once (`hear`); the periodic look finds everything else.
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from django.conf import settings

from agents_app.outbound.persistent_connections import PersistentConnection
from agents_app.outbound.rules import Unreachable
from agents_app.remote.addresses import policy
from agents_app.workers.connections import ReleasingThreads
from federation_app.guests import invitations, outgoing, typing_signs
from federation_app.peers.connections import tls
from sessions_app import database
from sessions_app.process import registry

if TYPE_CHECKING:
    from agents_app.outbound.guard import Posted
    from federation_app.guests.posts import SignedPost

SECONDS: Final = 2.0
"""How often a process looks for what is to be posted."""
POST_SECONDS: Final = 10.0
REFUSAL_BYTES: Final = 16 * 1024
"""The cause in a larger refusal is not read."""
AT_ONCE: Final = 8
"""How many peers a process posts to at a time; the others wait for the next round."""
SIGNS_AT_ONCE: Final = 4
"""How many peers a process sends a sign of typing to at a time; for the others it is lost."""
QUEUE: Final = '"queue.updated"'
_HEADERS: Final = {"Content-Type": "application/uamp+json"}
_post_threads: Final = ReleasingThreads(AT_ONCE, thread_name_prefix="posts")
_sign_threads: Final = ReleasingThreads(SIGNS_AT_ONCE, thread_name_prefix="typing-signs")


@dataclass
class _Doorbell:
    """What a process knows of its deliveries; everything belongs to its loop."""

    # The chats whose changes peers receive.
    chats: frozenset[str] = frozenset()
    # How often something became due; a delivery that has seen all ends.
    rings: int = 0
    is_looking: bool = False
    delivering: set[int] = field(default_factory=set)
    # When each peer last got a sign that someone types, by the monotonic clock.
    typed_at: dict[int, float] = field(default_factory=dict)
    # The peers that have yet to answer such a sign.
    unanswered_signs: set[int] = field(default_factory=set)


_doorbells: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Doorbell]] = WeakKeyDictionary()


async def deliver() -> None:
    """Begin to post what peers do not know yet. The periodic job of each process."""
    if not settings.UAMP_FEDERATION_HOST or registry.current().draining:
        return
    bell = _doorbells.setdefault(asyncio.get_running_loop(), _Doorbell())
    await _look(bell)


def hear(_group: str, message: dict[str, Any]) -> None:
    """Wake the deliveries of this process if a layer message says that something is due.

    The listener of `fanout.send`, on any loop.
    """
    for loop, bell in list(_doorbells.items()):
        if _concerns(bell, message) and not loop.is_closed():
            loop.call_soon_threadsafe(_take, bell, message)


def _concerns(bell: _Doorbell, message: dict[str, Any]) -> bool:
    kind = message["type"]
    if kind in {"chat.event", "chat.signal"}:
        return message["chat"] in bell.chats
    return kind == "person.event" and f'"{invitations.SUBJECT}"' in message["frame"]


def _take(bell: _Doorbell, message: dict[str, Any]) -> None:
    process = registry.current_or_none()
    if process is None or process.draining:
        return
    if message["type"] == "chat.signal" and (sign := typing_signs.sign_in(message)) is not None:
        process.spawn(_tell(bell, message["chat"], *sign), name="tell peers who types")
        return
    if message["type"] == "chat.signal" and QUEUE not in message["frame"]:
        return
    bell.rings += 1
    if not bell.is_looking:
        bell.is_looking = True
        process.spawn(_answer(bell), name="look for what is due to peers")


async def _answer(bell: _Doorbell) -> None:
    try:
        await _look(bell)
    finally:
        bell.is_looking = False


async def _look(bell: _Doorbell) -> None:
    rings = -1
    while rings != bell.rings:
        rings = bell.rings
        bell.chats = await database.run(typing_signs.concerned_chats)
        for peer_id in await database.run(outgoing.due_peers):
            if peer_id not in bell.delivering and len(bell.delivering) < AT_ONCE:
                bell.delivering.add(peer_id)
                registry.current().spawn(_deliver_to(bell, peer_id), name="deliver to a peer")


async def _deliver_to(bell: _Doorbell, peer_id: int) -> None:
    connection: PersistentConnection | None = None
    try:
        rings = -1
        while rings != bell.rings:
            rings = bell.rings
            while (item := await database.run(outgoing.claim, peer_id)) is not None:
                connection = connection or PersistentConnection(tls())
                posted = await _post_threads.run(_post, item.post, connection)
                if not await database.run(outgoing.finish, item, posted):
                    return
    finally:
        bell.delivering.discard(peer_id)
        if connection is not None:
            connection.close()


async def _tell(bell: _Doorbell, chat_id: str, user_id: int, is_typing: bool) -> None:  # noqa: FBT001 the members of a sign
    for post in await database.run(typing_signs.signs_for, chat_id, user_id, is_typing=is_typing):
        now = time.monotonic()
        is_early = now - bell.typed_at.get(post.peer_id, -math.inf) < typing_signs.SECONDS
        is_busy = len(bell.unanswered_signs) >= SIGNS_AT_ONCE
        if is_early or is_busy or post.peer_id in bell.unanswered_signs:
            continue
        bell.typed_at[post.peer_id] = now
        bell.unanswered_signs.add(post.peer_id)
        registry.current().spawn(_post_sign(bell, post), name="tell a peer who types")


async def _post_sign(bell: _Doorbell, post: SignedPost) -> None:
    connection: PersistentConnection | None = None
    try:
        connection = PersistentConnection(tls())
        await _sign_threads.run(_post, post, connection)
    finally:
        bell.unanswered_signs.discard(post.peer_id)
        if connection is not None:
            connection.close()


def _post(post: SignedPost, connection: PersistentConnection) -> Posted | None:
    """Post an envelope and return the answer; None if there is none."""
    rules = replace(policy(is_peer=True), seconds=POST_SECONDS, max_bytes=REFUSAL_BYTES)
    try:
        return connection.post(post.url, rules, body=post.raw, headers=_HEADERS)
    except Unreachable:
        return None
