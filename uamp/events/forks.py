"""Events of chats that start with the history of another chat, both ways; both are additions."""

import msgspec

from uamp.events.base import Event
from uamp.events.members import Actor, Title
from uamp.types.bounds import Count, Identifier, Time


class ChatFork(Event, frozen=True, kw_only=True, tag="chat.fork"):
    """Create a chat of your own that starts with the history up to a message of this chat.

    ``title`` defaults to that of the source. ``key`` is chosen by the client: the same key for the
    same message leads to the same chat again; without one, the session and ``event_id`` serve as
    the key.
    """

    chat_id: Identifier | None = None
    message_id: Identifier
    title: Title | None = None
    key: Identifier | None = None


class ForkSource(msgspec.Struct, frozen=True, kw_only=True):
    """The last message of a copied history; ``title`` is the title of its chat at the time."""

    chat_id: str | None
    message_id: str
    title: str


class ChatForked(Event, frozen=True, kw_only=True, tag="chat.forked"):
    """A chat was created from the history of another chat; the answer to ``chat.fork``.

    It is also the entry of the new chat's log after the copied ``messages``. ``agents_left_out``
    are the names of agents of the source that did not become members, because the person (``by``)
    may not use them. ``forked_at`` is in milliseconds.
    """

    chat_id: str
    title: str
    source: ForkSource
    messages: Count
    agents_left_out: tuple[str, ...] | None = None
    by: Actor | None = None
    forked_at: Time
