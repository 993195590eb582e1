"""All events and the tables that find a class by its wire type (UAMP §15).

A type is in the table of each side that may send it. Internal events (§11) are in neither, so they
are unknown events when a peer sends one.
"""

from uamp.events.base import Event
from uamp.events.calls import (
    CallAgentAdd,
    CallAgentRemove,
    CallAgentState,
    CallEnded,
    CallSignal,
    CallUpdated,
)
from uamp.events.client import (
    CapabilitiesQuery,
    ClientCapabilities,
    InputAudio,
    InputFile,
    InputImage,
    InputText,
    InputTyping,
    InputVideo,
    MessageDelete,
    MessageEdit,
    MessagePin,
    MessageRead,
    MessageUnpin,
    Ping,
    ReactionAdd,
    ReactionRemove,
    ResponseCancel,
    ResponseCreate,
    SessionCreate,
    SessionEnd,
    SessionUpdate,
    StateUpdate,
    ToolApprove,
    ToolResult,
    VoiceAccept,
    VoiceDecline,
    VoiceEnd,
    VoiceInvite,
)
from uamp.events.conversation import (
    MessageCreated,
    MessageDeleted,
    MessageEdited,
    MessagePinned,
    MessageUnpinned,
    PresenceOffline,
    PresenceOnline,
    PresenceTyping,
    ProfileChanged,
    ReactionAdded,
    ReactionRemoved,
)
from uamp.events.forks import ChatFork, ChatForked
from uamp.events.members import (
    AgentStopped,
    ChatUpdate,
    ChatUpdated,
    LinkCreated,
    LinkRevoked,
    ParticipantAdd,
    ParticipantJoined,
    ParticipantLeft,
    ParticipantRemove,
    ParticipantUpdate,
    ParticipantUpdated,
)
from uamp.events.payments import (
    PaymentAccepted,
    PaymentBalance,
    PaymentError,
    PaymentRequired,
    PaymentSubmit,
)
from uamp.events.queue import QueueRemove, QueueStart, QueueUpdated
from uamp.events.server import (
    AudioDelta,
    AudioDone,
    CapabilitiesAnnounced,
    Pong,
    Progress,
    RateLimit,
    ResponseCancelled,
    ResponseCreated,
    ResponseDelta,
    ResponseDone,
    ResponseError,
    SessionCreated,
    SessionError,
    SessionUpdated,
    StateUpdated,
    Thinking,
    ToolApprovalDone,
    ToolApprovalRequired,
    ToolCall,
    ToolCallDone,
    TranscriptDelta,
    TranscriptDone,
    UsageDelta,
)
from uamp.events.system import (
    SystemCancel,
    SystemError,  # noqa: A004 - named for its wire type
    SystemPing,
    SystemPong,
    SystemStop,
    SystemUnroutable,
)
from uamp.events.watching import ChatActivity, ChatsWatch, ChatsWatched, PersonChanged

InputEvent = InputText | InputAudio | InputImage | InputVideo | InputFile

ClientEvent = (
    SessionCreate
    | SessionUpdate
    | StateUpdate
    | SessionEnd
    | CapabilitiesQuery
    | ClientCapabilities
    | InputText
    | InputAudio
    | InputImage
    | InputVideo
    | InputFile
    | InputTyping
    | ResponseCreate
    | ResponseCancel
    | ToolResult
    | ToolApprove
    | PaymentSubmit
    | VoiceInvite
    | VoiceAccept
    | VoiceDecline
    | VoiceEnd
    | CallSignal
    | CallAgentAdd
    | CallAgentRemove
    | CallAgentState
    | QueueRemove
    | QueueStart
    | MessageRead
    | MessageEdit
    | MessageDelete
    | MessagePin
    | MessageUnpin
    | ReactionAdd
    | ReactionRemove
    | ChatUpdate
    | ChatFork
    | ParticipantAdd
    | ParticipantRemove
    | ParticipantUpdate
    | ChatsWatch
    | Ping
)

ServerEvent = (
    SessionCreated
    | SessionUpdated
    | SessionError
    | SessionEnd
    | CapabilitiesAnnounced
    | ResponseCreated
    | ResponseDelta
    | ResponseDone
    | ResponseError
    | ResponseCancelled
    | ToolCall
    | ToolCallDone
    | ToolApprovalRequired
    | ToolApprovalDone
    | StateUpdated
    | Progress
    | Thinking
    | AudioDelta
    | AudioDone
    | TranscriptDelta
    | TranscriptDone
    | UsageDelta
    | RateLimit
    | PresenceTyping
    | PresenceOnline
    | PresenceOffline
    | ProfileChanged
    | MessageCreated
    | MessageEdited
    | MessageDeleted
    | MessagePinned
    | MessageUnpinned
    | ReactionAdded
    | ReactionRemoved
    | ChatUpdated
    | ChatForked
    | ParticipantJoined
    | ParticipantUpdated
    | ParticipantLeft
    | LinkCreated
    | LinkRevoked
    | AgentStopped
    | MessageRead
    | PaymentRequired
    | PaymentAccepted
    | PaymentBalance
    | PaymentError
    | VoiceInvite
    | VoiceAccept
    | VoiceDecline
    | VoiceEnd
    | CallSignal
    | CallAgentState
    | CallUpdated
    | CallEnded
    | QueueUpdated
    | ChatsWatched
    | ChatActivity
    | PersonChanged
    | Pong
)

SystemEvent = SystemError | SystemStop | SystemCancel | SystemPing | SystemPong | SystemUnroutable


def _by_type(*classes: type[Event]) -> dict[str, type[Event]]:
    return {str(cls.__struct_config__.tag): cls for cls in classes}


CLIENT_EVENTS: dict[str, type[Event]] = _by_type(*ClientEvent.__args__)
SERVER_EVENTS: dict[str, type[Event]] = _by_type(*ServerEvent.__args__)
SYSTEM_EVENTS: dict[str, type[Event]] = _by_type(*SystemEvent.__args__)

ANSWER_EVENTS: dict[str, type[Event]] = _by_type(
    CapabilitiesAnnounced,
    ResponseCreated,
    ResponseDelta,
    ResponseDone,
    ResponseError,
    ResponseCancelled,
    Thinking,
    Progress,
    ToolCall,
    ToolCallDone,
    UsageDelta,
    PaymentRequired,
)
"""Events that a connected agent sends besides client events: its answers (UAMP §6, §10.2)."""

# Events of turns and of the connection itself; all others are about the surrounding chat.
_GROUPS_OF_TURNS = frozenset(
    {
        "session", "capabilities", "client", "input", "response", "tool", "state", "progress",
        "thinking", "audio", "transcript", "usage", "rate_limit", "payment", "ping", "pong",
    }
)  # fmt: skip


def _of_conversation(table: dict[str, type[Event]]) -> tuple[str, ...]:
    types = (name for name in table if name.partition(".")[0] not in _GROUPS_OF_TURNS)
    typing = (name for name in table if name == "input.typing")
    return tuple(sorted((*types, *typing)))


CONVERSATION_CLIENT_EVENTS = _of_conversation(CLIENT_EVENTS)
"""Types of events with which a client acts on a chat: messages, reactions, pins, members, calls."""
CONVERSATION_SERVER_EVENTS = _of_conversation(SERVER_EVENTS)
"""Types of events that report to a client what happens in a chat besides the turns."""
