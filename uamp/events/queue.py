"""Events of the messages of a chat that are queued while agents answer; all of them are additions.

A ``response.create`` with ``queue`` adds one. One class per wire type.
"""

import msgspec

from uamp.events.base import Event
from uamp.types.bounds import Count, Identifier, Time


class QueueRemove(Event, frozen=True, kw_only=True, tag="queue.remove"):
    """Take a message out of the queue: one's own, or any as an owner of the chat."""

    chat_id: Identifier | None = None
    item_id: Identifier


class QueueStart(Event, frozen=True, kw_only=True, tag="queue.start"):
    """Send one's own queued message now, beside the answers that run, or a failed one again."""

    chat_id: Identifier | None = None
    item_id: Identifier


class QueueItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message that is sent to the chat when the answers that run have ended.

    ``status`` is queued, starting or failed; ``code`` and ``reason`` say why it failed. ``text`` is
    its beginning, ``files`` how many files it has. ``client_event_id`` is the ``event_id`` of the
    ``response.create`` that added it. ``queued_at`` is in Unix milliseconds.
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
    """The queue of a chat as it is now, the next one first.

    It is sent after each change, and at the begin of a session while something is queued; it is no
    entry of the log. ``at`` is in Unix milliseconds: one with a smaller ``at`` is older.
    """

    chat_id: str
    at: Time
    items: tuple[QueueItem, ...] = ()
