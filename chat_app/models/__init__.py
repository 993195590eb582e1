"""The chat domain as rows: one ordered log per chat, and what can be read from it.

`chats` has chats, members, logs and contents, `conversation` what members did with messages. Other
apps call the functions of `log`, `members` and `contents`, not these classes.
"""

from chat_app.models.chats import (
    Chat,
    ChatEvent,
    ChatKind,
    Content,
    ContentUse,
    Message,
    MessageStatus,
    Participant,
    ParticipantReplyTrigger,
    ParticipantRole,
    PayerRule,
    Presence,
    ReadReceipt,
    SharedState,
    new_chat_id,
    new_epoch,
    new_message_id,
)
from chat_app.models.conversation import (
    EMOJI_CHARS,
    MessageDeletion,
    MessageRevision,
    Pin,
    Reaction,
)

__all__ = [
    "EMOJI_CHARS",
    "Chat",
    "ChatEvent",
    "ChatKind",
    "Content",
    "ContentUse",
    "Message",
    "MessageDeletion",
    "MessageRevision",
    "MessageStatus",
    "Participant",
    "ParticipantReplyTrigger",
    "ParticipantRole",
    "PayerRule",
    "Pin",
    "Presence",
    "Reaction",
    "ReadReceipt",
    "SharedState",
    "new_chat_id",
    "new_epoch",
    "new_message_id",
]
