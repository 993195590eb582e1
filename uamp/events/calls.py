"""Events of calls in a chat, besides the four of the specification; all are additions.

One class per wire type; a field without a default is required on the wire.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from uamp.events.base import Event
from uamp.types.bounds import Count, Identifier, Time

_Mid: TypeAlias = Annotated[str, msgspec.Meta(max_length=64)]
_MediaKind: TypeAlias = Annotated[str, msgspec.Meta(max_length=32)]
Media: TypeAlias = Annotated[tuple[_MediaKind, ...], msgspec.Meta(max_length=8)]
"""The kinds of media in a call, such as audio."""


class SessionDescription(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A WebRTC session description: ``type`` is offer, answer, pranswer or rollback.

    ``sdp`` has at most 65,536 characters.
    """

    type: Annotated[str, msgspec.Meta(max_length=16)]
    sdp: Annotated[str, msgspec.Meta(max_length=65_536)]


class IceCandidate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A WebRTC candidate, as written by ``RTCIceCandidate.toJSON`` in browsers.

    An empty ``candidate`` signals the end of candidates.
    """

    candidate: Annotated[str, msgspec.Meta(max_length=2048)]
    sdp_mid: _Mid | None = None
    sdp_m_line_index: Count | None = None
    username_fragment: Annotated[str, msgspec.Meta(max_length=256)] | None = None


class CallSignal(Event, frozen=True, kw_only=True, tag="call.signal"):
    """Signalling between the clients of two participants of a call: a description or a candidate.

    ``to`` is the participant who receives it, in the session in which they joined the call. The
    server sets ``from``. It is relayed, not stored.
    """

    call_id: Identifier
    chat_id: Identifier | None = None
    from_: Identifier | None = msgspec.field(default=None, name="from")
    to: Identifier
    sdp: SessionDescription | None = None
    candidate: IceCandidate | None = None


class CallMember(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person in a call: ``state`` is ringing, joined, declined, missed or left.

    ``joined_at``, in Unix milliseconds, changes each time the person joins: connections to their
    previous client are then void.
    """

    user_id: str
    username: str
    state: str
    joined_at: Time | None = None
    rings_until: Time | None = None


AgentActivity: TypeAlias = Literal["listens", "thinks", "waits", "speaks"]
"""The activity of an agent in a call; it waits for a person to pay or to allow a tool."""


class CallAgentAdd(Event, frozen=True, kw_only=True, tag="call.agent_add"):
    """Add an agent of the chat to the call that the sender has joined, and become its host.

    ``agent`` is its name. The host's client sends it the speech of the call and plays its answers.
    The host owns these answers, and pays whenever the asker would. Adding an agent that is already
    in the call changes its host.
    """

    call_id: Identifier
    chat_id: Identifier | None = None
    agent: Identifier


class CallAgentRemove(Event, frozen=True, kw_only=True, tag="call.agent_remove"):
    """Remove an agent from the call; any participant may."""

    call_id: Identifier
    chat_id: Identifier | None = None
    agent: Identifier


class CallAgentState(Event, frozen=True, kw_only=True, tag="call.agent_state"):
    """The current activity of an agent in the call: ``state`` is listens, thinks, waits or speaks.

    Its host sends it, and the server relays it to the chat with ``from`` set. It is not stored: an
    agent without a known state is listening.
    """

    call_id: Identifier
    chat_id: Identifier | None = None
    from_: Identifier | None = msgspec.field(default=None, name="from")
    agent: Identifier
    state: AgentActivity


class CallSpeech(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The addressee of a spoken turn: the ``agent`` of the call, by name, whose host sends it."""

    call_id: Identifier
    agent: Identifier


class CallAgent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent in a call: ``state`` is joined or left, ``host`` the user id of its host.

    An agent that has left has a ``reason``: removed, host_left, not_member (of the chat) or ended
    (the call). ``joined_at``, in Unix milliseconds, changes with the host.
    """

    agent_id: str
    agent: str
    host: str
    state: str
    joined_at: Time
    reason: str | None = None


class CallUpdated(Event, frozen=True, kw_only=True, tag="call.updated"):
    """The current state of a call in the chat: ``state`` is ringing, running or ended.

    Sent after each change, and at the start of a session while a call is in progress; it is not an
    entry of the log. ``revision`` grows with each change: a smaller number is an older state. Times
    are Unix milliseconds.
    """

    call_id: str
    chat_id: str
    state: str
    revision: Count
    started_by: str | None = None
    media: tuple[str, ...] = ()
    started_at: Time
    answered_at: Time | None = None
    ended_at: Time | None = None
    reason: str | None = None
    members: tuple[CallMember, ...] = ()
    agents: tuple[CallAgent, ...] = ()


class CallPerson(msgspec.Struct, frozen=True, kw_only=True):
    """A person who took part in a call."""

    user_id: str
    username: str


class CallEnded(Event, frozen=True, kw_only=True, tag="call.ended"):
    """A call in the chat has ended; an entry of the log.

    ``reason`` is ended, declined, unanswered or cancelled; only ended has a ``duration_ms``,
    counted from the first answer. ``started_by`` started the call, ``participants`` are the others
    who took part.
    """

    call_id: str
    chat_id: str
    started_by: CallPerson | None = None
    participants: tuple[CallPerson, ...] = ()
    started_at: Time
    duration_ms: Time | None = None
    reason: str
