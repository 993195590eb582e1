"""Events that a client sends, except payments (UAMP §5, §7).

One class per wire type; a field without a default is required on the wire.
"""

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from uamp.events.base import Event
from uamp.events.calls import CallSpeech, SessionDescription
from uamp.events.calls import Media as CallMedia
from uamp.types.bounds import Count, Emoji, Identifier, Time
from uamp.types.capabilities import Capabilities
from uamp.types.content import ContentItem, InputRole, Media, Message
from uamp.types.generation import GenerationOptions
from uamp.types.session import (
    ResponseFormat,
    Resume,
    SessionConfig,
    SessionPatch,
    ToolDefinition,
    VoiceConfig,
)

AgentNames: TypeAlias = Annotated[tuple[Identifier, ...], msgspec.Meta(max_length=50)]
"""Agents of a chat, by name or id."""


class SessionCreate(Event, frozen=True, kw_only=True, tag="session.create"):
    """Create a session (UAMP §5.1).

    ``token`` and ``payment_token`` apply to this session; ``resume`` continues a session that lost
    its connection. A missing ``uamp_version`` or ``session``, as printed in §10.4, stands for 1.0
    and the default configuration. ``registers``, an addition, registers this client as ``agent``
    (§10.2); so do ``agent`` and ``token`` inside ``session``.
    """

    uamp_version: str = msgspec.field(default_factory=lambda: "1.0")
    session: SessionConfig = msgspec.field(default_factory=SessionConfig)
    agent: str | None = None
    chat: str | None = None
    token: str | None = None
    payment_token: str | None = None
    client_capabilities: Capabilities | None = None
    resume: Resume | None = None
    registers: bool = False


class SessionUpdate(Event, frozen=True, kw_only=True, tag="session.update"):
    """Refresh tokens or change the configuration (UAMP §5.2, §10.3).

    Without ``session_id`` it concerns every session of the connection.
    """

    token: str | None = None
    payment_token: str | None = None
    session: SessionPatch | None = None


class SessionEnd(Event, frozen=True, kw_only=True, tag="session.end"):
    """End a session; either side sends it (UAMP §5.3)."""

    reason: str | None = None


class CapabilitiesQuery(Event, frozen=True, kw_only=True, tag="capabilities.query"):
    """Ask for the capabilities of the server, or of one ``model`` (UAMP §5.4)."""

    model: str | None = None


class ClientCapabilities(Event, frozen=True, kw_only=True, tag="client.capabilities"):
    """Announce the capabilities of this client (UAMP §5.5)."""

    capabilities: Capabilities


def _user() -> InputRole:
    """Create the default of a role that is always sent; a plain default would be left out."""
    return "user"


class InputText(Event, frozen=True, kw_only=True, tag="input.text"):
    """Text for the next turn (UAMP §5.6).

    ``reply_to``, an addition that every input may have, is the id of the chat message that the turn
    replies to: members see the reply, and the agent gets the message as a quote. ``thread``, also
    an addition, is the id of the message whose thread the turn belongs to: its message and the
    answers appear there, and with ``also_in_chat`` the message appears in the chat too. That
    message must not be in a thread itself (thread_nested). If several inputs of a turn have either,
    the first counts. ``messages`` is a complete history for stateless turns; ``context`` is routing
    metadata, which the client merely claims. Any ``role`` but the three is refused (invalid_event).
    """

    text: str
    role: InputRole = msgspec.field(default_factory=_user)
    messages: tuple[Message, ...] | None = None
    payment_token: str | None = None
    context: dict[str, Any] | None = None
    agent: str | None = None
    caller: dict[str, Any] | None = None
    reply_to: Identifier | None = None
    thread: Identifier | None = None
    also_in_chat: bool = False


class InputAudio(Event, frozen=True, kw_only=True, tag="input.audio"):
    """A piece of audio, base64; ``is_final`` ends the stream (UAMP §5.7)."""

    audio: Media
    format: str
    is_final: bool = False
    content_id: str | None = None
    reply_to: Identifier | None = None
    thread: Identifier | None = None
    also_in_chat: bool = False


class InputImage(Event, frozen=True, kw_only=True, tag="input.image"):
    """An image for the next turn (UAMP §5.8)."""

    image: Media
    format: str | None = None
    detail: str | None = None
    alt_text: str | None = None
    content_id: str | None = None
    reply_to: Identifier | None = None
    thread: Identifier | None = None
    also_in_chat: bool = False


class InputVideo(Event, frozen=True, kw_only=True, tag="input.video"):
    """A video for the next turn (UAMP §5.9)."""

    video: Media
    format: str | None = None
    content_id: str | None = None
    reply_to: Identifier | None = None
    thread: Identifier | None = None
    also_in_chat: bool = False


class InputFile(Event, frozen=True, kw_only=True, tag="input.file"):
    """A document for the next turn (UAMP §5.10)."""

    file: Media
    filename: str
    mime_type: str
    content_id: str | None = None
    reply_to: Identifier | None = None
    thread: Identifier | None = None
    also_in_chat: bool = False


class InputTyping(Event, frozen=True, kw_only=True, tag="input.typing"):
    """The person started or stopped typing (UAMP §5.11); ``conversation_id`` is accepted too."""

    is_typing: bool
    chat_id: str | None = None


ClientTools: TypeAlias = Literal["wait", "end"]
"""The effect of a call to a client tool on the response that makes it."""


class ResponseConfig(GenerationOptions, frozen=True, kw_only=True, omit_defaults=True):
    """The options that one response overrides (UAMP §5.12); None keeps the session's value.

    ``messages`` is the complete history of a stateless turn, which the reference clients send here.
    ``client_tools``, an addition, sets the effect of a call to a client tool: with ``wait`` the
    response waits for ``tool.result`` (UAMP §3.2); with ``end`` it ends with the finish_reason
    ``tool_calls``, and the results come back in the ``messages`` of the next turn. By default a
    turn with ``messages`` here ends, and any other waits. ``voice``, ``output_audio_format`` and
    the GenerationOptions are additions too.
    """

    modalities: tuple[str, ...] | None = None
    instructions: str | None = None
    tools: tuple[ToolDefinition, ...] | None = None
    messages: tuple[Message, ...] | None = None
    model: str | None = None
    voice: VoiceConfig | None = None
    output_audio_format: str | None = None
    client_tools: ClientTools | None = None


class ResponseCreate(Event, frozen=True, kw_only=True, tag="response.create"):
    """Request a response (UAMP §5.12).

    ``replaces``, an addition, is the id of an answer to regenerate: the new answer takes its place,
    and the request has no input. The person who asked the question and the owners of the chat may
    do so until another question follows.

    ``queue``, also an addition: while answers are running in the chat, the message is queued
    (queue.updated) and sent when they have ended.

    ``call`` directs the turn's audio to an agent in a call of the chat; only that agent answers.

    ``agents``, an addition, are the members of the chat that answer, by name or id, whatever their
    triggers; with an empty list no agent answers.
    """

    response: ResponseConfig | None = None
    response_format: ResponseFormat | None = None
    replaces: Identifier | None = None
    queue: bool = False
    call: CallSpeech | None = None
    agents: AgentNames | None = None


class ResponseCancel(Event, frozen=True, kw_only=True, tag="response.cancel"):
    """Cancel a response, or the current one (UAMP §5.13)."""

    response_id: str | None = None


class ToolResult(Event, frozen=True, kw_only=True, tag="tool.result"):
    """The client's result for ``tool.call``; ``result`` is JSON text (UAMP §5.14)."""

    call_id: str
    result: str
    is_error: bool = False
    content_items: tuple[ContentItem, ...] | None = None


class ToolApprove(Event, frozen=True, kw_only=True, tag="tool.approve"):
    """A person's answer to ``tool.approval_required`` (an addition); the model gets ``reason``."""

    call_id: str
    response_id: str | None = None
    approved: bool = True
    reason: str | None = None


class StateUpdate(Event, frozen=True, kw_only=True, tag="state.update"):
    """Change the state that the clients and agents of the chat share (an addition).

    Send either ``state``, which replaces all of it, or ``patch``, a JSON Patch (RFC 6902).
    ``version`` is the version being changed: if the state has a different version by now, the
    change is refused (state_conflict). Without ``version`` the last change wins.
    """

    state: dict[str, Any] | None = None
    patch: tuple[dict[str, Any], ...] | None = None
    version: Count | None = None


class _Voice(Event, frozen=True, kw_only=True):
    """The fields of the four call events; ``from`` and ``to`` are user ids.

    ``call_id`` is an addition. The server assigns one if the invitation has none; other events
    without one refer to the call in progress in the chat. An ``sdp`` is relayed to one person: the
    one in ``to``, or else the only other person who is called or takes part.
    """

    call_id: Identifier | None = None
    chat_id: Identifier | None = None
    from_: Identifier | None = msgspec.field(default=None, name="from")
    to: Identifier | None = None
    media: CallMedia | None = None
    sdp: SessionDescription | None = None
    reason: Annotated[str, msgspec.Meta(max_length=500)] | None = None
    duration_ms: Time | None = None


class VoiceInvite(_Voice, frozen=True, kw_only=True, tag="voice.invite"):
    """Call the people of a chat, or only ``to``, with an optional WebRTC offer (UAMP §7.3).

    During a call, a participant sends it to call one more person.
    """


class VoiceAccept(_Voice, frozen=True, kw_only=True, tag="voice.accept"):
    """Join a call, with an optional WebRTC answer; relayed both ways (UAMP §7.3)."""


class VoiceDecline(_Voice, frozen=True, kw_only=True, tag="voice.decline"):
    """Decline a call; relayed both ways (UAMP §7.3)."""


class VoiceEnd(_Voice, frozen=True, kw_only=True, tag="voice.end"):
    """Leave a call, with an optional ``duration_ms``; relayed both ways (UAMP §7.3).

    The call ends when the last person leaves. If a person joins again in another session, the
    server sends this event with the reason ``elsewhere`` to the earlier session.
    """


class MessageRead(Event, frozen=True, kw_only=True, tag="message.read"):
    """A read receipt, both ways; ``read_at`` is Unix milliseconds (UAMP §7.1).

    The server fills in ``user_id`` and ``read_at`` and ignores a client's values. The same applies
    to ``thread``, an addition: a receipt for a message that appears only in a thread marks that
    thread as read up to there, and nothing in the chat; ``replies`` is how many replies by others
    it newly marks as read, counted up to 100.
    """

    chat_id: str | None = None
    message_id: str
    thread: str | None = None
    replies: Count | None = None
    user_id: str | None = None
    read_at: Time | None = None


class MessageEdit(Event, frozen=True, kw_only=True, tag="message.edit"):
    """Edit the text of your own message; its media stay (an addition).

    ``revision`` is the revision being changed, 0 for the original text: if the message has a
    different revision by now, the change is refused (message_conflict). Without it the last change
    wins. With ``ask_again`` each current answer to the message is regenerated, as by
    ``response.create`` with ``replaces``. If that is refused, because a later question follows
    (message_conflict) or the message has no answer (message_not_found), the text is not changed
    either.
    """

    chat_id: Identifier | None = None
    message_id: Identifier
    content: str
    revision: Count | None = None
    ask_again: bool = False


class MessageDelete(Event, frozen=True, kw_only=True, tag="message.delete"):
    """Delete your own message or, as an owner of the chat, any message (an addition)."""

    chat_id: Identifier | None = None
    message_id: Identifier


class MessagePin(Event, frozen=True, kw_only=True, tag="message.pin"):
    """Pin a message in its chat; a setting of the chat decides who may (an addition)."""

    chat_id: Identifier | None = None
    message_id: Identifier


class MessageUnpin(Event, frozen=True, kw_only=True, tag="message.unpin"):
    """Unpin a message in its chat (an addition)."""

    chat_id: Identifier | None = None
    message_id: Identifier


class ReactionAdd(Event, frozen=True, kw_only=True, tag="reaction.add"):
    """React to a message with an emoji, once per member, message and emoji (an addition)."""

    chat_id: Identifier | None = None
    message_id: Identifier
    emoji: Emoji


class ReactionRemove(Event, frozen=True, kw_only=True, tag="reaction.remove"):
    """Remove your own reaction from a message (an addition)."""

    chat_id: Identifier | None = None
    message_id: Identifier
    emoji: Emoji


class Ping(Event, frozen=True, kw_only=True, tag="ping"):
    """Connection keepalive (UAMP §5.17)."""
