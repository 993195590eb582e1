"""Events of chats that begin with the history of another one, both ways; both are additions."""

import msgspec

from uamp.events.base import Event
from uamp.events.members import Actor, Title
from uamp.types.bounds import Count, Identifier, Time


class ChatFork(Event, frozen=True, kw_only=True, tag="chat.fork"):
    """Make a new chat of one's own that begins with the history up to a message of the chat.

    ``title`` is what it is called, as the source without one. ``key`` is the client's: the same one
    for the same message leads to the same chat again; without it the session and ``event_id`` do.
    """

    chat_id: Identifier | None = None
    message_id: Identifier
    title: Title | None = None
    key: Identifier | None = None


class ForkSource(msgspec.Struct, frozen=True, kw_only=True):
    """The message of a chat, called ``title`` then, with which a copied history ends."""

    chat_id: str | None
    message_id: str
    title: str


class ChatForked(Event, frozen=True, kw_only=True, tag="chat.forked"):
    """A chat was made from the history of another one; the answer to ``chat.fork``.

    It is also the entry of the new chat's log that follows the ``messages`` which were copied.
    ``agents_left_out`` are the names of agents of the source that are no members, because the
    person (``by``) may not use them. ``forked_at`` is in milliseconds.
    """

    chat_id: str
    title: str
    source: ForkSource
    messages: Count
    agents_left_out: tuple[str, ...] | None = None
    by: Actor | None = None
    forked_at: Time
