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


class SessionCreate(Event, frozen=True, kw_only=True, tag="session.create"):
    """Create a session (UAMP §5.1).

    ``token`` and ``payment_token`` are the session's own; ``resume`` goes on with a session that
    lost its connection. A missing ``uamp_version`` or ``session``, as §10.4 prints it, is 1.0 and
    the default configuration. ``registers``, an addition, says that this client answers as
    ``agent`` (§10.2); ``agent`` and ``token`` inside of ``session`` say so too.
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
    """Ask what the server, or one ``model``, can do (UAMP §5.4)."""

    model: str | None = None


class ClientCapabilities(Event, frozen=True, kw_only=True, tag="client.capabilities"):
    """Say what this client can do (UAMP §5.5)."""

    capabilities: Capabilities


def _user() -> InputRole:
    """Make the default of a role that is always sent, which a plain default would not be."""
    return "user"


class InputText(Event, frozen=True, kw_only=True, tag="input.text"):
    """Text for the next turn (UAMP §5.6).

    ``reply_to``, an addition that every input may have, is the id of the message of the chat that
    the turn answers: members are shown it, and the agent is given it as a quote. ``thread``, an
    addition too, is the id of the message to whose thread the turn belongs: its message and the
    answers are shown there, with ``also_in_chat`` the message in the chat too. It may not be in a
    thread itself (thread_nested). Of several inputs of a turn the first one with either counts.
    ``messages`` is a whole history for stateless turns; ``context`` is routing metadata, a claim
    of the client. Any other ``role`` than the three is refused (invalid_event).
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
    """A piece of sound, base64; ``is_final`` ends the stream (UAMP §5.7)."""

    audio: Media
    format: str
    is_final: bool = False
    content_id: str | None = None
    reply_to: Identifier | None = None
    thread: Identifier | None = None
    also_in_chat: bool = False


class InputImage(Event, frozen=True, kw_only=True, tag="input.image"):
    """A picture for the next turn (UAMP §5.8)."""

    image: Media
    format: str | None = None
    detail: str | None = None
    alt_text: str | None = None
    content_id: str | None = None
    reply_to: Identifier | None = None
    thread: Identifier | None = None
    also_in_chat: bool = False


class InputVideo(Event, frozen=True, kw_only=True, tag="input.video"):
    """A film for the next turn (UAMP §5.9)."""

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
    """The person starts or stops typing (UAMP §5.11); ``conversation_id`` is accepted too."""

    is_typing: bool
    chat_id: str | None = None


ClientTools: TypeAlias = Literal["wait", "end"]
"""What a call of a tool of the client's does to the response that makes it."""


class ResponseConfig(GenerationOptions, frozen=True, kw_only=True, omit_defaults=True):
    """What one response overrides (UAMP §5.12); None keeps the session's value.

    ``messages`` is the whole history of a stateless turn, which the reference clients send here.
    ``client_tools``, an addition, sets what a call of a client's tool does: with ``wait`` the
    response waits for ``tool.result`` (UAMP §3.2), with ``end`` it ends, with the finish_reason
    ``tool_calls``, and the results come back in the ``messages`` of the next turn. Where nothing is
    said, a turn whose ``messages`` stand here ends and any other waits. ``voice``,
    ``output_audio_format`` and the GenerationOptions are additions too.
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
    """Ask for a response (UAMP §5.12).

    ``replaces``, an addition, is the id of an answer that is made again: the new one takes its
    place, and no input belongs to it. The person who asked the question may, and an owner of the
    chat, until another question follows.

    ``queue``, an addition too: while answers run in the chat, the message is queued (queue.updated)
    and sent when they have ended.

    ``call`` says the sounds of the turn to an agent in a call of the chat, which alone answers.
    """

    response: ResponseConfig | None = None
    response_format: ResponseFormat | None = None
    replaces: Identifier | None = None
    queue: bool = False
    call: CallSpeech | None = None


class ResponseCancel(Event, frozen=True, kw_only=True, tag="response.cancel"):
    """Cancel a response, or the current one (UAMP §5.13)."""

    response_id: str | None = None


class ToolResult(Event, frozen=True, kw_only=True, tag="tool.result"):
    """The client's answer to ``tool.call``; ``result`` is JSON text (UAMP §5.14)."""

    call_id: str
    result: str
    is_error: bool = False
    content_items: tuple[ContentItem, ...] | None = None


class ToolApprove(Event, frozen=True, kw_only=True, tag="tool.approve"):
    """A person's answer to ``tool.approval_required``, an addition; ``reason`` is for the model."""

    call_id: str
    response_id: str | None = None
    approved: bool = True
    reason: str | None = None


class StateUpdate(Event, frozen=True, kw_only=True, tag="state.update"):
    """Change the state that the clients and agents of the chat share, an addition.

    ``state`` replaces all of it, ``patch`` is a JSON Patch (RFC 6902); one of them is sent.
    ``version`` is the one that is changed: where the state has another one by now, the change is
    refused (state_conflict). Without it the last change counts.
    """

    state: dict[str, Any] | None = None
    patch: tuple[dict[str, Any], ...] | None = None
    version: Count | None = None


class _Voice(Event, frozen=True, kw_only=True):
    """The members of the four call events; ``from`` and ``to`` are user ids.

    ``call_id`` is an addition. The server gives a call one where its invitation has none; the other
    events without one are about the call that goes on in the chat. An ``sdp`` is sent on to one
    person: the one in ``to``, or else the only other one who is called or takes part.
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
    """Call the people of a chat, or the one in ``to``, with an optional WebRTC offer (UAMP §7.3).

    While a call goes on, a participant calls one more person with it.
    """


class VoiceAccept(_Voice, frozen=True, kw_only=True, tag="voice.accept"):
    """Join a call, with an optional WebRTC answer; relayed both ways (UAMP §7.3)."""


class VoiceDecline(_Voice, frozen=True, kw_only=True, tag="voice.decline"):
    """Do not join a call; relayed both ways (UAMP §7.3)."""


class VoiceEnd(_Voice, frozen=True, kw_only=True, tag="voice.end"):
    """Leave a call, with its optional ``duration_ms``; relayed both ways (UAMP §7.3).

    The last one who leaves ends it. A server sends it with the reason ``elsewhere`` to the session
    of a person who joined again in another one.
    """


class MessageRead(Event, frozen=True, kw_only=True, tag="message.read"):
    """A read receipt, both ways; ``read_at`` is Unix milliseconds (UAMP §7.1).

    The server fills ``user_id`` and ``read_at``; from a client they are ignored. So it is with
    ``thread``, an addition: a message that only a thread shows marks what was read of that thread,
    and nothing of the chat; ``replies`` of others are read by it that were not before, counted
    up to 100.
    """

    chat_id: str | None = None
    message_id: str
    thread: str | None = None
    replies: Count | None = None
    user_id: str | None = None
    read_at: Time | None = None


class MessageEdit(Event, frozen=True, kw_only=True, tag="message.edit"):
    """Change the text of one's own message, an addition; its media stay.

    ``revision`` is the one that is changed, 0 for the text that was sent: where the message has
    another one by now, the change is refused (message_conflict). Without it the last change counts.
    With ``ask_again`` each current answer to the message is made again, as ``response.create`` with
    ``replaces`` does: the text is not changed where that is refused because a later question
    follows (message_conflict) or because the message has no answer (message_not_found).
    """

    chat_id: Identifier | None = None
    message_id: Identifier
    content: str
    revision: Count | None = None
    ask_again: bool = False


class MessageDelete(Event, frozen=True, kw_only=True, tag="message.delete"):
    """Delete one's own message, or as an owner of the chat any message; an addition."""

    chat_id: Identifier | None = None
    message_id: Identifier


class MessagePin(Event, frozen=True, kw_only=True, tag="message.pin"):
    """Pin a message in its chat, an addition; the chat's setting says who may."""

    chat_id: Identifier | None = None
    message_id: Identifier


class MessageUnpin(Event, frozen=True, kw_only=True, tag="message.unpin"):
    """Take a message from the pins of its chat, an addition."""

    chat_id: Identifier | None = None
    message_id: Identifier


class ReactionAdd(Event, frozen=True, kw_only=True, tag="reaction.add"):
    """Give a message an emoji, an addition; once per member, message and emoji."""

    chat_id: Identifier | None = None
    message_id: Identifier
    emoji: Emoji


class ReactionRemove(Event, frozen=True, kw_only=True, tag="reaction.remove"):
    """Take back an emoji that one gave a message, an addition."""

    chat_id: Identifier | None = None
    message_id: Identifier
    emoji: Emoji


class Ping(Event, frozen=True, kw_only=True, tag="ping"):
    """Connection keepalive (UAMP §5.17)."""
