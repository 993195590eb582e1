"""The delivery of shared chats to peers: one item after the other for each peer.

Any process delivers. A peer that does not answer holds up no other one, because each has a task.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from django.conf import settings

from agents_app.outbound import guard
from agents_app.outbound.rules import Unreachable
from agents_app.remote.addresses import policy
from federation_app.guests import outgoing
from federation_app.peers.connections import tls
from sessions_app import database
from sessions_app.process import registry

if TYPE_CHECKING:
    from federation_app.guests.outgoing import OutgoingEnvelope

SECONDS: Final = 0.5
"""How often a process looks for what is to be posted."""
POST_SECONDS: Final = 10.0
AT_ONCE: Final = 8
"""How many peers a process posts to at a time; the others wait for the next round."""
_HEADERS: Final = {"Content-Type": "application/uamp+json"}
_under_way: Final[set[int]] = set()


async def deliver() -> None:
    """Begin to post what peers do not know yet. The periodic job of each process."""
    if not settings.UAMP_FEDERATION_HOST or registry.current().draining:
        return
    for peer_id in await database.run(outgoing.due_peers):
        if peer_id not in _under_way and len(_under_way) < AT_ONCE:
            _under_way.add(peer_id)
            registry.current().spawn(_deliver_to(peer_id), name="deliver to a peer")


async def _deliver_to(peer_id: int) -> None:
    try:
        while (item := await database.run(outgoing.claim, peer_id)) is not None:
            status = await asyncio.to_thread(_post, item)
            if not await database.run(outgoing.finish, item, status):
                return
    finally:
        _under_way.discard(peer_id)


def _post(item: OutgoingEnvelope) -> int | None:
    """Post an envelope and return the status; None without an answer."""
    try:
        return guard.post(
            item.url,
            replace(policy(), seconds=POST_SECONDS),
            body=item.raw,
            headers=_HEADERS,
            tls=tls(),
        )
    except Unreachable:
        return None
