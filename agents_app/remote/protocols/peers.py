"""The port to the app that calls agents of peers with signed envelopes (docs/envelopes.md).

Keys, peers and envelopes belong to the app above this one. It provides a single function that takes
a question and yields UAMP events.
"""

from collections.abc import AsyncGenerator, AsyncIterable, Callable
from dataclasses import dataclass, field

from agents_app.outbound.rules import Target
from uamp.events import Event
from upp.providers.http.sse import EventReader


@dataclass(frozen=True, kw_only=True)
class PeerQuestion:
    """A text for an agent of a peer.

    `receiver` is the DID of the agent, `target` the address of its server, and `hops` the number of
    servers that have passed the question on, including this one. `silent` is in seconds. `token` is
    the capability token that the agent's server has issued, if any.
    """

    protocol: str
    target: Target
    receiver: str
    text: str
    hops: int
    silent: float
    token: str = field(default="", repr=False)


AskPeer = Callable[[PeerQuestion], AsyncGenerator[Event]]
"""Yields the answer up to its end. Closing it early cancels the answer on the other side.

Raises RemoteProtocolError if the answer fails or cannot be trusted."""

_asked_by: list[AskPeer] = []


def asked_by(ask: AskPeer) -> None:
    """Set the function that calls agents of peers."""
    _asked_by[:] = [ask]


def ask_peer(question: PeerQuestion) -> AsyncGenerator[Event]:
    """Call an agent of a peer; see AskPeer. Raises RuntimeError if no function has been set."""
    if not _asked_by:
        raise RuntimeError("no app asks peers")
    return _asked_by[0](question)


async def events_of(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    """Yield the data of the server-sent events in a body; raises EventTooLongError."""
    reader = EventReader()
    async for chunk in chunks:
        for data in reader.feed(chunk):
            yield data
