"""The chat domain as rows: one ordered log per chat, and tables that can be read without it.

`chats` has chats, messages and contents, `logs` the logs, `log_tree` the tree of their heads,
`members` who is in a chat, `links` the ways in for others, `conversation` what members did with
messages, `calls` voice calls, `forks` chats that begin with the history of others, `link_cards`
previews of linked pages, `people` profiles, settings and the server's name, `push` the browsers
that receive notifications, `threads` replies to messages, `transcripts` the words of recordings,
`repeats` requests with an `Idempotency-Key`, `uploads` files that arrive in parts. Other apps call
the functions of `log`, `members`, `links`, `contents` and `calls`, not these classes.
"""

from chat_app.models.calls import (
    CallAgentReason,
    CallMemberState,
    CallReason,
    CallState,
    VoiceCall,
    VoiceCallAgent,
    VoiceCallMember,
)
from chat_app.models.chats import (
    Chat,
    ChatBudgetPeriod,
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
from chat_app.models.forks import ChatOrigin
from chat_app.models.link_cards import LinkCard, LinkCardState
from chat_app.models.links import InviteLink, ShareLink
from chat_app.models.log_tree import LogTree, TreeCheckpoint, TreeCosignature, TreeNode
from chat_app.models.logs import ChatEvent, LogCheckpoint, LogErasure
from chat_app.models.members import (
    AgentMention,
    ContextScope,
    Participant,
    ParticipantReplyTrigger,
    ParticipantRole,
)
from chat_app.models.people import (
    SITE_NAME_CHARS,
    Density,
    NotificationLevel,
    PersonSettings,
    Profile,
    ProfilePicture,
    SendKey,
    Site,
    Theme,
)
from chat_app.models.previews import ContentPreview
from chat_app.models.push import PushDelivery, PushSubscription, UnreadMail
from chat_app.models.repeats import RepeatedRequest
from chat_app.models.threads import MessageMention, MessageThread, ThreadFollower
from chat_app.models.transcripts import Transcript, TranscriptState
from chat_app.models.uploads import Upload, UploadPart

__all__ = [
    "EMOJI_CHARS",
    "SITE_NAME_CHARS",
    "AgentMention",
    "CallAgentReason",
    "CallMemberState",
    "CallReason",
    "CallState",
    "Chat",
    "ChatBudgetPeriod",
    "ChatEvent",
    "ChatKind",
    "ChatOrigin",
    "Content",
    "ContentPreview",
    "ContentUse",
    "ContextScope",
    "Density",
    "InviteLink",
    "LinkCard",
    "LinkCardState",
    "LogCheckpoint",
    "LogErasure",
    "LogTree",
    "Message",
    "MessageDeletion",
    "MessageMention",
    "MessageRevision",
    "MessageStatus",
    "MessageThread",
    "NotificationLevel",
    "Participant",
    "ParticipantReplyTrigger",
    "ParticipantRole",
    "PayerRule",
    "PersonSettings",
    "Pin",
    "Presence",
    "Profile",
    "ProfilePicture",
    "PushDelivery",
    "PushSubscription",
    "Reaction",
    "ReadReceipt",
    "RepeatedRequest",
    "SendKey",
    "ShareLink",
    "SharedState",
    "Site",
    "Theme",
    "ThreadFollower",
    "Transcript",
    "TranscriptState",
    "TreeCheckpoint",
    "TreeCosignature",
    "TreeNode",
    "UnreadMail",
    "Upload",
    "UploadPart",
    "VoiceCall",
    "VoiceCallAgent",
    "VoiceCallMember",
    "new_chat_id",
    "new_epoch",
    "new_message_id",
]
