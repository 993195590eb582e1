"""Events of a connection that follows all chats of its person, without a session in each of them.

They are additions to UAMP 1.0. A client that does not send ``chats.watch`` receives none of them.
"""

import msgspec

from uamp.events.base import Event
from uamp.types.bounds import Count, Time


class ChatsWatch(Event, frozen=True, kw_only=True, tag="chats.watch"):
    """Receive what happens in the chats of the person of this connection.

    It belongs to no session. The answer is ``chats.watched``.
    """


class ChatsWatched(Event, frozen=True, kw_only=True, tag="chats.watched"):
    """So many chats are watched from now on, those that were written to last.

    ``more`` says that the person is in further chats, of which the client receives later that
    something happened. A second ``chats.watched`` says that the client took too little of what it
    was sent: read the list of chats again.
    """

    chats: Count
    more: bool = False


class ActivityMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A new message in short; ``content`` is its beginning, ``created_at`` Unix milliseconds.

    ``mentions`` are the ids of the people whom it mentions; ``is_followed`` says that the person
    of the connection follows its thread.
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

    ``kind`` is the type of the entry of the chat's log at ``at_seq``: ``message.created`` has the
    ``message``, ``message.read`` is about the person's own marker and has ``message_id``, for a
    thread also ``thread`` and ``replies`` as that event has them. With the kind ``changed`` the
    client reads the chat again by REST.
    """

    chat_id: str
    kind: str
    at_seq: Count
    message: ActivityMessage | None = None
    message_id: str | None = None
    thread: str | None = None
    replies: Count | None = None


class PersonChanged(Event, frozen=True, kw_only=True, tag="person.changed"):
    """Something that belongs to the person of this connection is another; REST has what it is now.

    ``subject`` is ``chat_added``, ``chat_removed``, ``chat_settings`` (each with ``chat_id``),
    ``settings`` or ``balance``.
    """

    subject: str
    chat_id: str | None = None
