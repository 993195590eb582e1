"""Events of the calls in a chat, beside the four of the specification; all of them are additions.

One class per wire type; a field without a default is required on the wire.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from uamp.events.base import Event
from uamp.types.bounds import Count, Identifier, Time

_Mid: TypeAlias = Annotated[str, msgspec.Meta(max_length=64)]
_MediaKind: TypeAlias = Annotated[str, msgspec.Meta(max_length=32)]
Media: TypeAlias = Annotated[tuple[_MediaKind, ...], msgspec.Meta(max_length=8)]
"""The kinds of media of a call, such as audio."""


class SessionDescription(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A WebRTC session description: ``type`` is offer, answer, pranswer or rollback.

    ``sdp`` has at most 65,536 characters.
    """

    type: Annotated[str, msgspec.Meta(max_length=16)]
    sdp: Annotated[str, msgspec.Meta(max_length=65_536)]


class IceCandidate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A WebRTC candidate, as ``RTCIceCandidate.toJSON`` of browsers writes it.

    An empty ``candidate`` says that no more follow.
    """

    candidate: Annotated[str, msgspec.Meta(max_length=2048)]
    sdp_mid: _Mid | None = None
    sdp_m_line_index: Count | None = None
    username_fragment: Annotated[str, msgspec.Meta(max_length=256)] | None = None


class CallSignal(Event, frozen=True, kw_only=True, tag="call.signal"):
    """What the clients of two participants of a call agree on: a description or a candidate.

    ``to`` is the participant that receives it, in the session in which they are in the call. The
    server sets ``from``. It is sent on and not kept.
    """

    call_id: Identifier
    chat_id: Identifier | None = None
    from_: Identifier | None = msgspec.field(default=None, name="from")
    to: Identifier
    sdp: SessionDescription | None = None
    candidate: IceCandidate | None = None


class CallMember(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person of a call: ``state`` is ringing, joined, declined, missed or left.

    ``joined_at``, in Unix milliseconds, is another one each time that the person joins: then the
    connections to their former client are over.
    """

    user_id: str
    username: str
    state: str
    joined_at: Time | None = None
    rings_until: Time | None = None


AgentActivity: TypeAlias = Literal["listens", "thinks", "waits", "speaks"]
"""What an agent in a call does; it waits for a person who pays or allows a tool."""


class CallAgentAdd(Event, frozen=True, kw_only=True, tag="call.agent_add"):
    """Add an agent of the chat to the call that one takes part in, and be its host.

    ``agent`` is its name. The host's client sends it what is said and plays what it answers, and
    its answers are the host's, who pays where the asker does. An agent that is in the call gets
    another host so.
    """

    call_id: Identifier
    chat_id: Identifier | None = None
    agent: Identifier


class CallAgentRemove(Event, frozen=True, kw_only=True, tag="call.agent_remove"):
    """Let an agent leave the call; any participant may."""

    call_id: Identifier
    chat_id: Identifier | None = None
    agent: Identifier


class CallAgentState(Event, frozen=True, kw_only=True, tag="call.agent_state"):
    """What an agent in the call does now: ``state`` is listens, thinks, waits or speaks.

    Its host sends it, and the server sends it on to the chat with ``from``. It is not kept: an
    agent of which nothing was received listens.
    """

    call_id: Identifier
    chat_id: Identifier | None = None
    from_: Identifier | None = msgspec.field(default=None, name="from")
    agent: Identifier
    state: AgentActivity


class CallSpeech(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """To whom a turn is said: the ``agent`` of the call whose host sends it, by its name."""

    call_id: Identifier
    agent: Identifier


class CallAgent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent of a call: ``state`` is joined or left, ``host`` the user id of its host.

    One that left has a ``reason``: removed, host_left, not_member (of the chat) or ended (the
    call). ``joined_at``, in Unix milliseconds, is another one when another person becomes its host.
    """

    agent_id: str
    agent: str
    host: str
    state: str
    joined_at: Time
    reason: str | None = None


class CallUpdated(Event, frozen=True, kw_only=True, tag="call.updated"):
    """A call of the chat as it is now: ``state`` is ringing, running or ended.

    It is sent after each change, and at the begin of a session while the call goes on; it is no
    entry of the log. ``revision`` grows with each change: one with a smaller number is older.
    Times are Unix milliseconds.
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
    """A call of the chat has ended, an entry of the log.

    ``reason`` is ended, declined, unanswered or cancelled; only the first has a ``duration_ms``,
    from the first answer on. ``started_by`` began the call, ``participants`` are the others who
    took part.
    """

    call_id: str
    chat_id: str
    started_by: CallPerson | None = None
    participants: tuple[CallPerson, ...] = ()
    started_at: Time
    duration_ms: Time | None = None
    reason: str
