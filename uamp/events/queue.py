"""Events of messages that are queued in a chat while agents answer; all are additions.

A ``response.create`` with ``queue`` adds one. One class per wire type.
"""

import msgspec

from uamp.events.base import Event
from uamp.types.bounds import Count, Identifier, Time


class QueueRemove(Event, frozen=True, kw_only=True, tag="queue.remove"):
    """Remove a message from the queue: your own or, as an owner of the chat, any."""

    chat_id: Identifier | None = None
    item_id: Identifier


class QueueStart(Event, frozen=True, kw_only=True, tag="queue.start"):
    """Send your own queued message now, alongside running answers, or retry a failed one."""

    chat_id: Identifier | None = None
    item_id: Identifier


class QueueItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message that is sent to the chat when the running answers have ended.

    ``status`` is queued, starting or failed; ``code`` and ``reason`` explain a failure. ``text`` is
    the beginning of the message, ``files`` the number of its files. ``client_event_id`` is the
    ``event_id`` of the ``response.create`` that added it. ``queued_at`` is in Unix milliseconds.
    """

    id: str
    user_id: str
    username: str
    text: str
    files: Count = 0
    status: str
    code: str | None = None
    reason: str | None = None
    client_event_id: str
    queued_at: Time


class QueueUpdated(Event, frozen=True, kw_only=True, tag="queue.updated"):
    """The current queue of a chat, next message first.

    Sent after each change, and at the start of a session while messages are queued; it is not an
    entry of the log. ``at`` is in Unix milliseconds: an event with a smaller ``at`` is older.
    """

    chat_id: str
    at: Time
    items: tuple[QueueItem, ...] = ()
