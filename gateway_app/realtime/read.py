"""The events of a Realtime client, and the response options in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

import uamp
from gateway_app.openai.errors import refused, unsupported
from gateway_app.openai.request import CallId
from gateway_app.realtime.audio_fields import (
    AudioFields,
    BetaFormat,
    OutputFields,
    SpeechSettings,
    SpokenFields,
    TurnDetection,
    Voice,
    name_of,
)
from gateway_app.realtime.items import ItemId, RealtimeItem
from uamp import ErrorCode, RemoteProtocolError
from uamp.types.bounds import Count, Temperature, Tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLACE: Final = re.compile(r"at `\$\.([^`]+)`")
_EVENT_ID_CHARS: Final = uamp.DEFAULT_LIMITS.event_id_chars
_Modalities: TypeAlias = Annotated[
    tuple[Literal["text", "audio"], ...], msgspec.Meta(min_length=1, max_length=2)
]
_MetadataKey: TypeAlias = Annotated[str, msgspec.Meta(max_length=64)]
_MetadataValue: TypeAlias = Annotated[str, msgspec.Meta(max_length=512)]


class RealtimeTool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool that the client runs; MCP servers are not supported."""

    type: Literal["function"] = msgspec.field(default_factory=lambda: "function")
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    description: str | None = None
    parameters: dict[str, Any] | None = None

    @property
    def definition(self) -> uamp.ToolDefinition:
        """The tool as a UAMP definition."""
        return uamp.ToolDefinition(
            function=uamp.FunctionDefinition(
                name=self.name, description=self.description, parameters=self.parameters
            )
        )


class RealtimeToolChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The function that the model has to call."""

    type: Literal["function"] = msgspec.field(default_factory=lambda: "function")
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]

    @property
    def choice(self) -> uamp.ToolChoice:
        """The choice in UAMP's format."""
        return uamp.ToolChoice(function=uamp.ChosenFunction(name=self.name))


class GenerationFields(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a session or a response; None leaves a setting unchanged.

    Holds the members of both the GA and the beta dialect; members that are missing here are
    ignored.
    """

    instructions: str | None = None
    tools: Annotated[tuple[RealtimeTool, ...], msgspec.Meta(max_length=128)] | None = None
    tool_choice: Literal["none", "auto", "required"] | RealtimeToolChoice | None = None
    temperature: Temperature | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: Tokens | Literal["inf"] | None = None
    max_response_output_tokens: Tokens | Literal["inf"] | None = None
    output_modalities: _Modalities | None = None
    modalities: _Modalities | None = None

    @property
    def limit(self) -> int | Literal["inf"] | None:
        """The maximum tokens of an answer, from either dialect's member."""
        return self.max_output_tokens or self.max_response_output_tokens

    @property
    def requested_modalities(self) -> tuple[str, ...] | None:
        """The modalities of an answer, from either dialect's member."""
        return self.output_modalities or self.modalities

    def check(self, place: str, *, speaks: bool) -> None:
        """Raise RemoteProtocolError unsupported_modality if a text-only agent is to speak."""
        for name in ("output_modalities", "modalities"):
            modalities = getattr(self, name)
            if modalities is not None and "text" not in modalities and not speaks:
                raise refused(
                    f"{place}.{name}",
                    'The agent does not speak. Ask for ["text"].',
                    ErrorCode.UNSUPPORTED_MODALITY,
                )


class SessionFields(GenerationFields, frozen=True, kw_only=True):
    """The `session` member of session.update; only the GA dialect has `type`."""

    type: Literal["realtime", "transcription"] | None = None
    audio: AudioFields | None = None
    voice: Voice | None = None
    input_audio_format: BetaFormat | None = None
    output_audio_format: BetaFormat | None = None
    turn_detection: TurnDetection | UnsetType | None = UNSET

    def merged_into(self, current: SessionFields, *, speaks: bool) -> SessionFields:
        """Return the fields after this update of `current`; raises RemoteProtocolError."""
        if self.type == "transcription":
            raise unsupported("session.type", "Agents of this server do not transcribe.")
        self.check("session", speaks=speaks)
        fields = {name: getattr(self, name) for name in current.__struct_fields__}
        if self.limit is not None:
            fields |= {"max_output_tokens": self.limit, "max_response_output_tokens": None}
        if self.requested_modalities is not None:
            fields |= {"output_modalities": self.requested_modalities, "modalities": None}
        fields = {name: UNSET if value is None else value for name, value in fields.items()}
        # Only in turn_detection does null have a meaning.
        fields["turn_detection"] = self.turn_detection
        changes = {name: value for name, value in fields.items() if value is not UNSET}
        return msgspec.structs.replace(current, **changes)

    def patch(self, speech: SpeechSettings | None = None) -> uamp.SessionPatch:
        """Return the update for the UAMP session, including the agent's speech settings."""
        tools = None if self.tools is None else tuple(tool.definition for tool in self.tools)
        patch = uamp.SessionPatch(instructions=self.instructions, tools=tools)
        if speech is None:
            return patch
        voice = None if speech.voice is None else uamp.VoiceConfig(voice_id=speech.voice)
        return msgspec.structs.replace(patch, voice=voice, output_audio_format=speech.output_format)


class ResponseFields(GenerationFields, frozen=True, kw_only=True):
    """The `response` member of response.create.

    `input` replaces the conversation as the whole context of the response; with `conversation` set
    to `none`, the answer is not added to the conversation.
    """

    audio: SpokenFields | None = None
    voice: Voice | None = None
    output_audio_format: BetaFormat | None = None
    conversation: Literal["auto", "none"] = "auto"
    input: Annotated[tuple[RealtimeItem, ...], msgspec.Meta(max_length=500)] | None = None
    metadata: Annotated[dict[_MetadataKey, _MetadataValue], msgspec.Meta(max_length=16)] | None = (
        None
    )

    def check(self, place: str, *, speaks: bool) -> None:
        """Raise RemoteProtocolError unsupported_modality also for a voice of a text-only agent."""
        super().check(place, speaks=speaks)
        output = OutputFields() if self.audio is None else self.audio.output
        named = {
            "audio.output.voice": output.voice,
            "audio.output.format": output.format,
            "voice": self.voice,
            "output_audio_format": self.output_audio_format,
        }
        for name, value in named.items():
            if value is not None and not speaks:
                refusal = "The agent does not speak. Leave it out."
                raise refused(f"{place}.{name}", refusal, ErrorCode.UNSUPPORTED_MODALITY)

    def config(
        self,
        session: SessionFields,
        messages: Sequence[uamp.Message],
        model: str | None,
        *,
        is_spoken: bool,
    ) -> uamp.ResponseConfig:
        """Return the response's overrides of its session; a tool call ends the response."""
        chosen = self.tool_choice or session.tool_choice
        limit = self.limit or session.limit
        parallel = self.parallel_tool_calls
        output = OutputFields() if self.audio is None else self.audio.output
        voice = name_of(output.voice or self.voice)
        return uamp.ResponseConfig(
            modalities=("text", "audio") if is_spoken else ("text",),
            instructions=self.instructions,
            tools=None if self.tools is None else tuple(tool.definition for tool in self.tools),
            messages=tuple(messages),
            model=model,
            voice=None if voice is None else uamp.VoiceConfig(voice_id=voice),
            output_audio_format=output.format.name if output.format else self.output_audio_format,
            client_tools="end",
            temperature=session.temperature if self.temperature is None else self.temperature,
            max_tokens=None if limit == "inf" else limit,
            tool_choice=chosen.choice if isinstance(chosen, RealtimeToolChoice) else chosen,
            parallel_tool_calls=session.parallel_tool_calls if parallel is None else parallel,
        )


class RealtimeFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A client event without relevant members, and the base class of the others."""

    type: str
    event_id: Annotated[str, msgspec.Meta(max_length=_EVENT_ID_CHARS)] | None = None


class SessionUpdateFrame(RealtimeFrame, frozen=True, kw_only=True):
    """session.update."""

    session: SessionFields


class ItemCreateFrame(RealtimeFrame, frozen=True, kw_only=True):
    """conversation.item.create."""

    item: RealtimeItem
    previous_item_id: ItemId | None = None


class ItemFrame(RealtimeFrame, frozen=True, kw_only=True):
    """conversation.item.retrieve and conversation.item.delete."""

    item_id: ItemId


class ItemTruncateFrame(ItemFrame, frozen=True, kw_only=True):
    """conversation.item.truncate."""

    content_index: Count
    audio_end_ms: Count


class ResponseCreateFrame(RealtimeFrame, frozen=True, kw_only=True):
    """response.create."""

    response: ResponseFields | None = None


class ResponseCancelFrame(RealtimeFrame, frozen=True, kw_only=True):
    """response.cancel."""

    response_id: ItemId | None = None


class PaymentFrame(RealtimeFrame, frozen=True, kw_only=True):
    """payment.submit, in UAMP's format (UAMP §5.15)."""

    payment: uamp.Payment
    response_id: ItemId | None = None


class ApprovalFrame(RealtimeFrame, frozen=True, kw_only=True):
    """tool.approve, in UAMP's format."""

    call_id: CallId
    approved: bool = True
    response_id: ItemId | None = None
    reason: str | None = None


class AudioAppendFrame(RealtimeFrame, frozen=True, kw_only=True):
    """input_audio_buffer.append, with base64 audio."""

    audio: str


FRAMES: Final[dict[str, type[RealtimeFrame]]] = {
    "session.update": SessionUpdateFrame,
    "conversation.item.create": ItemCreateFrame,
    "conversation.item.retrieve": ItemFrame,
    "conversation.item.delete": ItemFrame,
    "conversation.item.truncate": ItemTruncateFrame,
    "response.create": ResponseCreateFrame,
    "response.cancel": ResponseCancelFrame,
    "payment.submit": PaymentFrame,
    "tool.approve": ApprovalFrame,
    "input_audio_buffer.append": AudioAppendFrame,
    "input_audio_buffer.commit": RealtimeFrame,
    "input_audio_buffer.clear": RealtimeFrame,
    "output_audio_buffer.clear": RealtimeFrame,
}


def read_frame(frame: str | bytes) -> RealtimeFrame:
    """Parse the event in a frame.

    Raises RemoteProtocolError with the client's `event_id`, if readable, and the place of the
    mistake as `param` in its details.
    """
    value = uamp.load_json(frame, uamp.DEFAULT_LIMITS)
    members = value if isinstance(value, dict) else {}
    event_id, kind = members.get("event_id"), members.get("type")
    if not isinstance(event_id, str) or len(event_id) > _EVENT_ID_CHARS:
        event_id = None
    frame_type = FRAMES.get(kind) if isinstance(kind, str) else None
    if frame_type is None:
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT,
            f"There is no event of the type {str(kind)[:100]!r}.",
            event_id=event_id,
            details={"param": "type"},
        )
    try:
        return msgspec.convert(value, frame_type)
    except msgspec.ValidationError as error:
        place = _PLACE.search(str(error))
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT,
            f"{error}.",
            event_id=event_id,
            details={"param": place[1]} if place else None,
        ) from None
