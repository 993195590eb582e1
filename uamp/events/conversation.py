"""Events that a server sends about the people and the messages of a chat (UAMP §6.18, §7.1, §11).

One class per wire type; a field without a default is required on the wire.
"""

import msgspec

from uamp.events.base import Event
from uamp.types.bounds import Count, Time
from uamp.types.content import ContentItem


class PresenceTyping(Event, frozen=True, kw_only=True, tag="presence.typing"):
    """Another participant is typing (UAMP §6.18)."""

    user_id: str
    username: str | None = None
    is_typing: bool
    chat_id: str | None = None


class PresenceOnline(Event, frozen=True, kw_only=True, tag="presence.online"):
    """A user or agent came online; ``kind`` is user or agent (UAMP §7.1)."""

    user_id: str
    username: str | None = None
    kind: str | None = None
    chat_id: str | None = None
    status: str | None = None
    last_seen_at: Time | None = None


class PresenceOffline(Event, frozen=True, kw_only=True, tag="presence.offline"):
    """A user or agent went offline; ``last_seen_at`` is Unix milliseconds (UAMP §7.1)."""

    user_id: str
    username: str | None = None
    kind: str | None = None
    chat_id: str | None = None
    status: str | None = None
    last_seen_at: Time | None = None


class ProfileChanged(Event, frozen=True, kw_only=True, tag="profile.changed"):
    """A person changed how they are shown: their whole public profile (an addition).

    An empty text means that nothing was chosen. ``avatar_url`` is relative to the server.
    """

    user_id: str
    username: str
    chat_id: str | None = None
    display_name: str = ""
    status_text: str = ""
    avatar_emoji: str = ""
    avatar_colour: str = ""
    avatar_url: str | None = None


class ChatMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stored message as it appears in the chat; ``created_at`` is Unix milliseconds.

    ``status`` is cancelled or failed for an incomplete answer. ``client_event_id`` is the
    ``event_id`` of the response.create that sent it. ``transport`` names the transport or protocol
    through which it, or the question it answers, reached the server. ``reply_to`` is the id of the
    chat message it replies to. ``thread`` is the id of the message whose thread it belongs to: it
    appears there, and with ``also_in_chat`` in the chat too. ``version_of`` is the id of the first
    version of a regenerated answer: the message replaces every earlier version. In a fork
    ``copied_from`` is the id of the source message it was copied from; its ``created_at`` is the
    original's. An edited message has the number of its ``revision`` and ``edited_at``; a deleted
    message has ``deleted_at``, but neither text nor content items nor ``salt``, the random string
    that the hashes of a message cover. ``digital_source_type`` marks an agent's message as made by
    AI (IPTC Digital Source Type).
    """

    id: str
    role: str
    content: str = msgspec.field(default_factory=str)
    content_items: tuple[ContentItem, ...] | None = None
    name: str | None = None
    sender_id: str | None = None
    sender_kind: str | None = None
    created_at: Time
    response_id: str | None = None
    status: str | None = None
    client_event_id: str | None = None
    transport: str | None = None
    reply_to: str | None = None
    version_of: str | None = None
    thread: str | None = None
    also_in_chat: bool = False
    copied_from: str | None = None
    revision: Count | None = None
    edited_at: Time | None = None
    deleted_at: Time | None = None
    digital_source_type: str | None = None
    salt: str | None = None


class MessageCreated(Event, frozen=True, kw_only=True, tag="message.created"):
    """A new message in a chat (UAMP §7.1).

    ``mentions``, an addition, are the ids of the people in the chat whom it mentions.
    ``followers``, also an addition, are the people a reply concerns: they follow its thread, or it
    mentions them.
    """

    chat_id: str
    message: ChatMessage
    mentions: tuple[str, ...] | None = None
    followers: tuple[str, ...] | None = None


class MessageEdited(Event, frozen=True, kw_only=True, tag="message.edited"):
    """The author edited a message (an addition); ``content`` is the whole new text.

    ``revision`` counts the edits of the message. If the message was deleted later, ``deleted_at``
    is set and the text is missing.
    """

    chat_id: str
    message_id: str
    content: str
    content_items: tuple[ContentItem, ...] | None = None
    revision: Count
    edited_at: Time
    user_id: str
    deleted_at: Time | None = None


class MessageDeleted(Event, frozen=True, kw_only=True, tag="message.deleted"):
    """A message was deleted by its author or an owner of the chat, ``user_id`` (an addition).

    Its place in the log stays. Its entries have no body when they are read from the log later.
    ``thread`` is the thread it belonged to; ``user_id`` is empty if the server deleted it, because
    it was too old or belonged to work for a deleted message.
    """

    chat_id: str
    message_id: str
    deleted_at: Time
    user_id: str
    thread: str | None = None


class MessagePinned(Event, frozen=True, kw_only=True, tag="message.pinned"):
    """A member, ``user_id``, pinned a message in the chat (an addition)."""

    chat_id: str
    message_id: str
    user_id: str


class MessageUnpinned(Event, frozen=True, kw_only=True, tag="message.unpinned"):
    """A member, ``user_id``, unpinned a message in the chat (an addition)."""

    chat_id: str
    message_id: str
    user_id: str


class ReactionAdded(Event, frozen=True, kw_only=True, tag="reaction.added"):
    """A member, ``user_id``, reacted to a message with an emoji (an addition)."""

    chat_id: str
    message_id: str
    emoji: str
    user_id: str


class ReactionRemoved(Event, frozen=True, kw_only=True, tag="reaction.removed"):
    """A member, ``user_id``, removed their reaction (an addition)."""

    chat_id: str
    message_id: str
    emoji: str
    user_id: str
