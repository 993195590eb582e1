"""Events for a connection that watches all chats of its person, without a session in each.

They are additions to UAMP 1.0. A client that does not send ``chats.watch`` receives none of them.
"""

import msgspec

from uamp.events.base import Event
from uamp.types.bounds import Count, Time


class ChatsWatch(Event, frozen=True, kw_only=True, tag="chats.watch"):
    """Watch the chats of this connection's person.

    It belongs to no session. The answer is ``chats.watched``.
    """


class ChatsWatched(Event, frozen=True, kw_only=True, tag="chats.watched"):
    """The number of chats watched from now on, the most recently active ones.

    ``more`` means that the person is in further chats, whose activity the client receives with a
    delay. A second ``chats.watched`` means that the client was too slow to receive everything: it
    should read the list of chats again.
    """

    chats: Count
    more: bool = False


class ActivityMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A new message in brief; ``content`` is its beginning, ``created_at`` Unix milliseconds.

    ``mentions`` are the ids of the people it mentions; ``is_followed`` means that the connection's
    person follows its thread.
    """

    id: str
    role: str
    content: str = msgspec.field(default_factory=str)
    name: str | None = None
    sender_id: str | None = None
    sender_kind: str | None = None
    created_at: Time | None = None
    response_id: str | None = None
    mentions: tuple[str, ...] | None = None
    version_of: str | None = None
    thread: str | None = None
    also_in_chat: bool = False
    is_followed: bool = False


class ChatActivity(Event, frozen=True, kw_only=True, tag="chat.activity"):
    """Something happened in a chat that the connection watches.

    ``kind`` is the type of the entry at ``at_seq`` in the chat's log: ``message.created`` comes
    with the ``message``; ``message.read`` is about the person's own marker and comes with
    ``message_id`` and, for a thread, ``thread`` and ``replies`` as in that event. On ``changed``
    the client should read the chat again over REST.
    """

    chat_id: str
    kind: str
    at_seq: Count
    message: ActivityMessage | None = None
    message_id: str | None = None
    thread: str | None = None
    replies: Count | None = None


class PersonChanged(Event, frozen=True, kw_only=True, tag="person.changed"):
    """Something of this connection's person has changed; read its current value over REST.

    ``subject`` is ``chat_added``, ``chat_removed``, ``chat_settings`` (each with ``chat_id``),
    ``settings``, ``balance`` or ``invitations``.
    """

    subject: str
    chat_id: str | None = None
