"""The seam to the app that asks agents of peers by signed envelopes (docs/envelopes.md).

Keys, peers and envelopes are of the app above this one. It gives one function: a question in, the
events of UAMP out.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass

import aiohttp

from agents_app.outbound.rules import Target
from uamp.events import Event
from upp.providers.http.sse import EventReader


@dataclass(frozen=True, kw_only=True)
class PeerQuestion:
    """A text for an agent of a peer.

    `receiver` is the DID of the agent, `target` where its server is, `hops` how many servers have
    passed the question on with this one. `silent` is in seconds.
    """

    protocol: str
    target: Target
    receiver: str
    text: str
    hops: int
    silent: float


AskPeer = Callable[[PeerQuestion], AsyncGenerator[Event]]
"""Yields the answer, up to its end. Closing it before that cancels the answer over there.

Raises RemoteProtocolError for an answer that fails, or cannot be trusted."""

_asked_by: list[AskPeer] = []


def asked_by(ask: AskPeer) -> None:
    """Set the function that asks the agents of peers."""
    _asked_by[:] = [ask]


def ask_peer(question: PeerQuestion) -> AsyncGenerator[Event]:
    """Ask an agent of a peer; see AskPeer. Raises RuntimeError where no app asks peers."""
    if not _asked_by:
        raise RuntimeError("no app asks peers")
    return _asked_by[0](question)


async def events_of(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the data of the server-sent events of a response; raises EventTooLongError."""
    reader = EventReader()
    async for chunk in response.content.iter_any():
        for data in reader.feed(chunk):
            yield data
