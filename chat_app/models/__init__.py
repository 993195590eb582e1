"""The chat domain as rows: one ordered log per chat, and what can be read from it.

`chats` has chats, logs and contents, `members` who is in them, `conversation` what members did with
messages. Other apps call the functions of `log`, `members` and `contents`, not these classes.
"""

from chat_app.models.chats import (
    Chat,
    ChatBudgetPeriod,
    ChatEvent,
    ChatKind,
    Content,
    ContentUse,
    Message,
    MessageStatus,
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
from chat_app.models.members import (
    AgentMention,
    ContextScope,
    Participant,
    ParticipantReplyTrigger,
    ParticipantRole,
)

__all__ = [
    "EMOJI_CHARS",
    "AgentMention",
    "Chat",
    "ChatBudgetPeriod",
    "ChatEvent",
    "ChatKind",
    "Content",
    "ContentUse",
    "ContextScope",
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
