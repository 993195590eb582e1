"""Events that a server sends, except payments (UAMP §6, §7, §11).

One class per wire type; a field without a default is required on the wire.
"""

from typing import Any

import msgspec

from uamp.events.base import Event
from uamp.types.bounds import Count, Percent, Time
from uamp.types.capabilities import Capabilities
from uamp.types.content import ContentItem, Media, ToolCallData, ToolResultData
from uamp.types.session import Session, UsageStats


def _none() -> tuple[ContentItem, ...]:
    """Create the default of a list that is always sent; a plain default would be left out."""
    return ()


class ErrorDetail(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error: a code of ``uamp.errors``, a message for people, and details for programs."""

    code: str
    message: str
    details: dict[str, Any] | None = None


class SessionCreated(Event, frozen=True, kw_only=True, tag="session.created"):
    """The session is open (UAMP §6.1).

    Additions: ``epoch`` and ``seq`` identify the log and its last place; ``resumed`` means that the
    session continues from where the client lost it. ``state`` is the state that the chat's clients
    and agents share, and ``state_version`` its version, if there is one and the session is not new.
    """

    uamp_version: str = msgspec.field(default_factory=lambda: "1.0")
    session: Session
    chat: str | None = None
    agent: str | None = None
    epoch: str | None = None
    resumed: bool | None = None
    state: dict[str, Any] | None = None
    state_version: Count | None = None


class SessionUpdated(Event, frozen=True, kw_only=True, tag="session.updated"):
    """The session was updated (UAMP §6.2)."""

    session: Session | None = None


class SessionError(Event, frozen=True, kw_only=True, tag="session.error"):
    """A session or frame has an error (UAMP §6.3)."""

    error: ErrorDetail


class CapabilitiesAnnounced(Event, frozen=True, kw_only=True, tag="capabilities"):
    """The capabilities of the model or agent (UAMP §6.4)."""

    capabilities: Capabilities


class ResponseCreated(Event, frozen=True, kw_only=True, tag="response.created"):
    """A response started (UAMP §6.5).

    Additions: ``agent`` answers the message ``message_id`` in the chat ``chat_id``; ``transport``
    names the transport or protocol through which the turn arrived, as in ``ChatMessage.transport``;
    ``replaces`` is the first version of an answer being regenerated; ``thread`` is the message
    whose thread the answer will belong to.
    """

    response_id: str
    agent: str | None = None
    message_id: str | None = None
    chat_id: str | None = None
    transport: str | None = None
    replaces: str | None = None
    thread: str | None = None


class ToolProgress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The progress of a server-side tool (UAMP §6.6); ``progress_percent`` is 0-100."""

    call_id: str
    text: str = msgspec.field(default_factory=str)
    replace: bool | None = None
    status: str | None = None
    progress_percent: Percent | None = None
    media_type: str | None = None
    kind: str | None = None
    estimated_duration_ms: Time | None = None
    thumbnail_url: str | None = None


class Delta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of a response; ``type`` names the field that it carries (UAMP §6.6).

    ``image``, ``video`` and ``file`` deltas, an addition of the reference implementation, carry a
    whole medium with the fields of the content item of that type. ``audio`` is a piece of audio in
    base64; with a URL it is the whole recording, which replaces the pieces.
    """

    type: str
    text: str | None = None
    audio: Media | None = None
    tool_call: ToolCallData | None = None
    tool_result: ToolResultData | None = None
    tool_progress: ToolProgress | None = None
    image: Media | None = None
    video: Media | None = None
    file: Media | None = None
    format: str | None = None
    filename: str | None = None
    mime_type: str | None = None
    content_id: str | None = None
    description: str | None = None
    display_hint: str | None = None
    alt_text: str | None = None
    duration_ms: Time | None = None


class ResponseDelta(Event, frozen=True, kw_only=True, tag="response.delta"):
    """A piece of a response (UAMP §6.6).

    ``offset``, on text, counts the code points of the response sent before this piece; a piece at
    offset 0 replaces all text so far.
    """

    response_id: str | None = None
    delta: Delta
    offset: Count | None = None


class ResponseOutput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The finished response: ``status`` is completed, cancelled or failed (UAMP §6.7)."""

    id: str
    status: str
    output: tuple[ContentItem, ...] = msgspec.field(default_factory=_none)
    usage: UsageStats | None = None
    finish_reason: str | None = None
    error: ErrorDetail | None = None
    metadata: dict[str, Any] | None = None


class ResponseDone(Event, frozen=True, kw_only=True, tag="response.done"):
    """A response is complete (UAMP §6.7); ``signature`` is a compact JWT.

    A server always sends ``response``; connected agents end a turn without it. Additions, here and
    in ``response.error`` and ``response.cancelled``: ``signature_error`` says why an answer that
    should be signed is not; ``digital_source_type`` says that AI made the output (IPTC).
    """

    response_id: str | None = None
    response: ResponseOutput | None = None
    signature: str | None = None
    signature_error: str | None = None
    digital_source_type: str | None = None


class ResponseError(Event, frozen=True, kw_only=True, tag="response.error"):
    """A response failed (UAMP §6.8).

    Additions: ``usage`` and ``partial_output`` are its usage and output up to the failure; it has a
    ``signature`` if it was paid.
    """

    response_id: str | None = None
    error: ErrorDetail
    partial_output: tuple[ContentItem, ...] | None = None
    usage: UsageStats | None = None
    signature: str | None = None
    signature_error: str | None = None
    digital_source_type: str | None = None


class ResponseCancelled(Event, frozen=True, kw_only=True, tag="response.cancelled"):
    """A response was cancelled (UAMP §6.9); ``usage``, an addition, is its usage until then.

    Also additions: ``user_id`` and ``username`` are those of the person who cancelled it; it has a
    ``signature`` if it was paid.
    """

    response_id: str | None = None
    partial_output: tuple[ContentItem, ...] = msgspec.field(default_factory=_none)
    usage: UsageStats | None = None
    user_id: str | None = None
    username: str | None = None
    signature: str | None = None
    signature_error: str | None = None
    digital_source_type: str | None = None


class ToolCall(Event, frozen=True, kw_only=True, tag="tool.call"):
    """Ask the client to run a tool; ``arguments`` is JSON text (UAMP §6.10)."""

    call_id: str
    name: str
    arguments: str
    response_id: str | None = None


class ToolCallDone(Event, frozen=True, kw_only=True, tag="tool.call_done"):
    """A server-side tool call is complete (UAMP §6.11)."""

    call_id: str
    response_id: str | None = None


class ToolApprovalRequired(Event, frozen=True, kw_only=True, tag="tool.approval_required"):
    """A tool call needs a person's approval, given with ``tool.approve`` (an addition).

    ``arguments`` is JSON text. ``expires_at`` is Unix seconds; a later answer has no effect.
    ``user_id`` is the person who asked for the work; they or an owner of the chat decide.
    """

    call_id: str
    name: str
    arguments: str
    response_id: str
    agent: str | None = None
    user_id: str | None = None
    expires_at: Time | None = None


class ToolApprovalDone(Event, frozen=True, kw_only=True, tag="tool.approval_done"):
    """A person approved or refused a tool call, or the time for it has run out (an addition).

    ``user_id`` and ``username`` are those of the person who decided.
    """

    call_id: str
    response_id: str
    approved: bool
    user_id: str | None = None
    username: str | None = None


class StateUpdated(Event, frozen=True, kw_only=True, tag="state.updated"):
    """The chat's state changed (an addition); ``patch`` (RFC 6902) produces ``version``.

    A client or person (``user_id``) changed it, or ``agent`` with a tool in ``response_id``.
    """

    chat_id: str
    version: Count
    patch: tuple[dict[str, Any], ...]
    user_id: str | None = None
    agent: str | None = None
    response_id: str | None = None


class Progress(Event, frozen=True, kw_only=True, tag="progress"):
    """The progress of a long operation (UAMP §6.12).

    ``target`` is tool, response, upload or reasoning; ``percent`` is 0-100; ``user_id`` is the
    person whom the operation waits for.
    """

    target: str
    target_id: str | None = None
    stage: str | None = None
    message: str | None = None
    percent: Percent | None = None
    step: Count | None = None
    total_steps: Count | None = None
    response_id: str | None = None
    user_id: str | None = None


class Thinking(Event, frozen=True, kw_only=True, tag="thinking"):
    """Reasoning; ``is_delta`` appends to the previous thought (UAMP §6.13)."""

    content: str
    stage: str | None = None
    redacted: bool = False
    is_delta: bool = False
    response_id: str | None = None


class AudioDelta(Event, frozen=True, kw_only=True, tag="audio.delta"):
    """A piece of a spoken answer, base64 (UAMP §6.14). This server sends `response.delta`."""

    response_id: str | None = None
    audio: str


class AudioDone(Event, frozen=True, kw_only=True, tag="audio.done"):
    """The spoken answer is complete (UAMP §6.14). This server sends `response.delta`."""

    response_id: str | None = None
    duration_ms: Time | None = None


class TranscriptDelta(Event, frozen=True, kw_only=True, tag="transcript.delta"):
    """A piece of the transcription (UAMP §6.15). This server sends transcripts whole."""

    response_id: str | None = None
    transcript: str


class TranscriptDone(Event, frozen=True, kw_only=True, tag="transcript.done"):
    """The transcription is complete; ``transcript`` is the full text (UAMP §6.15).

    ``role``, an addition, names the speaker: user for the speech that the response answers. The
    words of a speaking agent are the text of its response.
    """

    response_id: str | None = None
    transcript: str | None = None
    role: str | None = None


class UsageDelta(Event, frozen=True, kw_only=True, tag="usage.delta"):
    """Usage since the last such event, after each inference of a response (UAMP §6.16)."""

    response_id: str | None = None
    delta: UsageStats


class RateLimit(Event, frozen=True, kw_only=True, tag="rate_limit"):
    """The remaining quota; ``reset_at`` is Unix seconds, as printed in §6.17."""

    limit: Count
    remaining: Count
    reset_at: Time


class Pong(Event, frozen=True, kw_only=True, tag="pong"):
    """The answer to a ping; ``reply_to`` is the ping's ``event_id`` (UAMP §6.19)."""

    reply_to: str | None = None


def text_delta(response_id: str, text: str, offset: int | None = None) -> ResponseDelta:
    """Return a text delta; ``offset`` counts the code points sent before it (UAMP §6.6)."""
    return ResponseDelta(
        response_id=response_id, delta=Delta(type="text", text=text), offset=offset
    )
