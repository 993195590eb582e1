"""Remembers received events and the frames that answered them (UAMP §4).

The oldest are forgotten first, so neither many events nor long answers make it grow without bound.
"""

from collections import OrderedDict
from hashlib import blake2b

import msgspec

from uamp.events.base import Event
from uamp.limits import Limits


class _Answered(msgspec.Struct):
    """A remembered event: the digest of its body and the frames that answered it."""

    digest: bytes
    replies: list[str] = msgspec.field(default_factory=list)


class EventMemory:
    """The event ids of one session, or of the connection itself, with their answers.

    Only the Connection that owns it calls it.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._events: OrderedDict[str, _Answered] = OrderedDict()
        self._reply_chars = 0

    def __contains__(self, event_id: str) -> bool:
        return event_id in self._events

    def digest(self, event_id: str) -> bytes:
        """Return the digest of a remembered event."""
        return self._events[event_id].digest

    def replies_to(self, event_id: str) -> tuple[str, ...]:
        """Return the frames that answered a remembered event."""
        return tuple(self._events[event_id].replies)

    def add(self, event_id: str, digest: bytes) -> None:
        """Start remembering an event."""
        self._events[event_id] = _Answered(digest)
        self._shrink()

    def keep_reply(self, event_id: str, frame: str) -> None:
        """Store ``frame`` as an answer to a remembered event."""
        replies = self._events[event_id].replies
        if len(replies) < self._limits.replies_per_event:
            replies.append(frame)
            self._reply_chars += len(frame)
            self._events.move_to_end(event_id)
            self._shrink()

    def forget(self, event_id: str) -> None:
        """Forget a remembered event, so that it counts as never received."""
        event = self._events.pop(event_id)
        self._reply_chars -= sum(map(len, event.replies))

    def _shrink(self) -> None:
        """Forget the oldest events while over the limit, but never the one just touched."""
        while len(self._events) > 1 and (
            len(self._events) > self._limits.event_ids_remembered
            or self._reply_chars > self._limits.reply_chars_remembered
        ):
            self.forget(next(iter(self._events)))


def digest_of(event: Event) -> bytes:
    """Digest the content of an event; a repeat may have a different timestamp."""
    body = msgspec.json.encode(msgspec.structs.replace(event, timestamp=None))
    return blake2b(body, digest_size=16).digest()
