"""Whether the open streams of a process may go on: one look at the rows for all of them."""

from __future__ import annotations

from typing import Final

from federation_app.exchange import admission
from federation_app.exchange.chats import ChatStream
from federation_app.exchange.windowed import all_open
from federation_app.peers import registry
from sessions_app import database

SECONDS: Final = 2.0
"""Streams end within five seconds after their peer is revoked, also when the process is busy."""


async def check_streams() -> None:
    """End the streams of peers that are no longer trusted, and cancelled subscriptions.

    Another process may have received the cancellation.
    """
    streams = all_open()
    if not streams:
        return
    peers = {stream.stream.peer_id for stream in streams}
    # A subscription may have several readers.
    readers = [stream for stream in streams if isinstance(stream, ChatStream)]
    accepted = await database.run(registry.accepted, peers)
    for stream in streams:
        if stream.stream.peer_id not in accepted:
            stream.refuse()
    if readers:
        pks = {reader.stream.pk for reader in readers}
        cancelled = await database.run(admission.cancelled, pks)
        for reader in readers:
            if reader.stream.pk in cancelled:
                reader.cancel()
