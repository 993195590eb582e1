"""The events of a chat to a peer that follows it, as signed `notify` envelopes (envelope §4.1).

A peer follows the chats of its account. It has a session in the chat, like any other client, and so
the same rights: it loses the chat with the membership. `delta_seq` is the place in the chat's log,
so that a reader resumes from any process, and nothing is stored per delta.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.utils import timezone

import uamp
from chat_app.log.history import chat_heads
from chat_app.members.membership import is_member
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.streams.deltas import DeltaType, delta_at
from federation_app.exchange import admission
from federation_app.exchange.answers import envelope_error
from federation_app.exchange.replies import signed_event
from federation_app.exchange.turns import TRANSPORT
from federation_app.exchange.windowed import WindowedStream, open_streams
from sessions_app import database
from sessions_app.connection.defaults import Defaults
from sessions_app.handlers.sessions import find_session
from sessions_app.transports.followed_response import FollowedResponse, received
from sessions_app.transports.http_exchange import HEARTBEAT_SECONDS, HttpExchange
from uamp import RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from federation_app.envelope.streams.deltas import StreamDelta
    from federation_app.models import EnvelopeStream, Peer
    from sessions_app.access.principal import Principal

_OWN_MEMBERS: Final = ("session_id", "event_id")
"""Members of an event that belong to the session, not to the chat."""


def head_of(peer: Peer, chat_id: str) -> int:
    """Return the last place in the log of a chat of a peer's account.

    Raises EnvelopeError not_found, for a foreign chat and for none alike.
    """
    head = chat_heads([chat_id]).get(chat_id)
    if head is None or not is_member(chat_id, peer.user_id):
        raise EnvelopeError(EnvelopeCode.NOT_FOUND, "There is no such chat.", detail="chat")
    return head


def check_place(peer: Peer, chat_id: str, place: int) -> int:
    """Return the last place in the log of a chat as `head_of` does.

    Raises EnvelopeError conflict if `place` is a later one.
    """
    head = head_of(peer, chat_id)
    if place > head:
        raise EnvelopeError(EnvelopeCode.CONFLICT, f"The last event is {head}.", detail="after")
    return head


class ChatStream(WindowedStream):
    """The durable events of a chat, each a `chunk` whose payload is a signed `notify`."""

    def __init__(
        self, stream: EnvelopeStream, principal: Principal, *, peer: Peer, limit: int, after: int
    ) -> None:
        super().__init__(stream, principal, limit=limit, after=after)
        self._peer = peer
        self._after = after
        self._is_cancelled = False
        self._http = HttpExchange(None, principal, TRANSPORT, defaults=Defaults())
        self._followed = FollowedResponse(self._http)

    async def join(self) -> None:
        """See WindowedStream. Raises EnvelopeError not_found if the account is not a member.

        A cancelled subscription has nothing to join.
        """
        if await database.run(admission.cancelled, [self.stream.pk]):
            self._is_cancelled = True
            return
        await database.run(check_place, self._peer, self.stream.chat_id, self._after)
        session_id = self.stream.session_id
        session = await find_session(session_id, self._principal)
        resume = uamp.Resume(after=self._after, session_id=session_id if session else None)
        create = ev.SessionCreate(
            uamp_version="1.0",
            session=uamp.SessionConfig(id=session_id),
            chat=None if session else self.stream.chat_id,
            resume=resume,
        )
        self._http.end_with_process()
        self._http.connection.outgoing.end_when(lambda: self.must_end)
        self._http.stay()
        await self._followed.take(create)
        self._followed.check()

    async def leave(self) -> None:
        """See WindowedStream; a reader without a place begins after what was acknowledged here."""
        await self._http.close()
        await database.run(admission.acknowledge, self.stream, self.window.acknowledged)

    async def deltas(self) -> AsyncIterator[StreamDelta | None]:
        """See WindowedStream; a chat has no end, but the peer may cancel its subscription.

        Raises EnvelopeError also at the end of the membership.
        """
        queue = self._http.connection.outgoing
        try:
            while not self._is_cancelled:
                batch = await queue.batch(HEARTBEAT_SECONDS)
                self.check_trust()
                if batch is None or self._is_cancelled:
                    break
                if not batch:
                    yield None
                for frame in batch:
                    received(frame)
                    if frame.seq is None or frame.seq < self.window.next:
                        continue
                    await self.wait_for_room()
                    if self.must_end:
                        break
                    yield await self._delta(frame.seq, msgspec.json.decode(frame.text))
                self._followed.check()
        except RemoteProtocolError as error:
            raise envelope_error(error) from None
        if self._is_cancelled:
            number, now = self.window.take(is_end=True), timezone.now()
            yield delta_at(number, self.stream.stream_id, now, DeltaType.CANCEL, {})
            return
        raise EnvelopeError(EnvelopeCode.BUSY, "The process is shutting down. Resume the stream.")

    def cancel(self) -> None:
        """End the deltas with a `cancel`."""
        self._is_cancelled = True
        self.wake()

    def wake(self) -> None:
        """See WindowedStream."""
        super().wake()
        self._http.connection.outgoing.wake()

    @property
    def must_end(self) -> bool:
        """See WindowedStream: who has cancelled a subscription may not acknowledge any more."""
        return self._is_cancelled or super().must_end

    async def _delta(self, seq: int, event: dict[str, Any]) -> StreamDelta:
        content = {name: value for name, value in event.items() if name not in _OWN_MEMBERS}
        envelope = await database.run(signed_event, self._peer, self.stream, content)
        number = self.window.take()
        if number != seq:
            # The log has no gaps, and neither do the events that a session receives from it.
            raise RuntimeError(f"event {seq} of {self.stream.chat_id} follows {number - 1}")
        payload = {"envelope": envelope}
        return delta_at(seq, self.stream.stream_id, timezone.now(), DeltaType.CHUNK, payload)


def cancel_readers(stream_pk: int) -> None:
    """End a subscription for its readers in this process. Others find the cancellation's row."""
    for reader in open_streams(stream_pk):
        if isinstance(reader, ChatStream):
            reader.cancel()
