"""The events of one inference for a Realtime server: session, conversation and question.

Pure. The latest audio is committed as the speech to answer, so that the server can transcribe it;
earlier messages are added to the conversation as items.
"""

import base64
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from upp.conversation.messages import (
    AssistantMessage,
    AudioBlock,
    DocumentBlock,
    ImageBlock,
    Message,
    TextBlock,
    TextSource,
    UrlSource,
    UserContent,
    UserMessage,
)
from upp.errors import ErrorCode, UPPError
from upp.model import LLMRequest
from upp.providers.realtime.sound import ALAW, PCM16, ULAW, Sound, read_wave
from upp.tools import Tool

SPEECH: Final = "speech"
"""The parameter that requests a spoken answer: {"voice", "format"}, both optional."""
TRANSCRIPTION: Final = "transcription"
"""The parameter that requests transcripts of the latest audio, in the vendor's format."""
APPEND_BYTES: Final = 192 * 1024
"""The most audio bytes per event."""
MAX_TOKENS: Final = 4096
"""The vendor's maximum per answer; an unlimited answer may use the model's own maximum."""
_OUR_FORMATS: Final = {"pcm16": PCM16, "g711_ulaw": ULAW, "g711_alaw": ALAW}
_WAVE: Final = frozenset({"audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"})

Sent = dict[str, Any]


def events_of(request: LLMRequest, *, provider: str) -> Iterator[Sent]:
    """Yield the events of an inference; raises UPPError INVALID_REQUEST if it cannot be sent.

    They are generated one at a time: a conversation may contain megabytes of audio.
    """
    earlier, newest = _split_audio(request.messages)
    received = [_sound(block, provider) for block in newest]
    kind = received[-1].format if received else PCM16
    if any(sound.format != kind for sound in received):
        raise _refusal("All audio of a message must have the same format.", provider)
    yield {"type": "session.update", "session": _session(request, kind)}
    for message in earlier:
        for item in _items(message, kind, provider):
            yield {"type": "conversation.item.create", "item": item}
    for sound in received:
        for at in range(0, len(sound.samples), APPEND_BYTES):
            piece = base64.b64encode(sound.samples[at : at + APPEND_BYTES]).decode()
            yield {"type": "input_audio_buffer.append", "audio": piece}
        yield {"type": "input_audio_buffer.commit"}
    yield {"type": "response.create"}


def transcripts_of(request: LLMRequest) -> int:
    """Return the number of audio transcripts that the server will send for a request."""
    return len(_split_audio(request.messages)[1]) if request.params.get(TRANSCRIPTION) else 0


def _split_audio(messages: Sequence[Message]) -> tuple[list[Message], list[AudioBlock]]:
    """Return the conversation without the audio of its last message, and that audio."""
    newest = messages[-1] if messages else None
    if not isinstance(newest, UserMessage) or not newest.audio:
        return [*messages], []
    other_blocks = tuple(block for block in newest.content if not isinstance(block, AudioBlock))
    text_message = [msgspec.structs.replace(newest, content=other_blocks)] if other_blocks else []
    return [*messages[:-1], *text_message], [*newest.audio]


def _session(request: LLMRequest, received: str) -> Sent:
    params = request.params
    speech = params.get(SPEECH)
    sound: Sent = {"input": {"format": _format(received), "turn_detection": None}}
    if params.get(TRANSCRIPTION):
        sound["input"]["transcription"] = params[TRANSCRIPTION]
    if speech is not None:
        spoken = _OUR_FORMATS.get(speech.get("format"), PCM16)
        sound["output"] = {"format": _format(spoken)}
        if speech.get("voice"):
            sound["output"]["voice"] = speech["voice"]
    limit = params.get("max_tokens")
    session: Sent = {
        "type": "realtime",
        "output_modalities": ["text" if speech is None else "audio"],
        "instructions": request.system or "",
        "tools": [_tool(tool) for tool in request.tools],
        "max_output_tokens": "inf" if limit is None else min(limit, MAX_TOKENS),
        "audio": sound,
    }
    if request.tools and "tool_choice" in params:
        session["tool_choice"] = params["tool_choice"]
    return session


def _format(kind: str) -> Sent:
    return {"type": kind, "rate": 24_000} if kind == PCM16 else {"type": kind}


def _tool(tool: Tool) -> Sent:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }


def _items(message: Message, kind: str, provider: str) -> Iterator[Sent]:
    if isinstance(message, UserMessage):
        parts = [_part(block, kind, provider) for block in message.content]
        yield {"type": "message", "role": "user", "content": parts}
    elif isinstance(message, AssistantMessage):
        if message.text:
            part = {"type": "output_text", "text": message.text}
            yield {"type": "message", "role": "assistant", "content": [part]}
        for call in message.tool_calls:
            yield {
                "type": "function_call",
                "call_id": call.tool_call_id,
                "name": call.tool_name,
                "arguments": _json(call.arguments),
            }
    else:
        for result in message.results:
            output = result.result if isinstance(result.result, str) else _json(result.result)
            yield {
                "type": "function_call_output",
                "call_id": result.tool_call_id,
                "output": output,
            }


def _part(block: UserContent, kind: str, provider: str) -> Sent:
    match block:
        case TextBlock(text=text):
            return {"type": "input_text", "text": text}
        case ImageBlock():
            return {"type": "input_image", "image_url": _url(block)}
        case DocumentBlock(source=TextSource(data=text)):
            title = f"{block.title}:\n" if block.title else ""
            return {"type": "input_text", "text": title + text}
        case AudioBlock():
            sound = _sound(block, provider)
            if sound.format != kind:
                # The vendor's sessions have a single format.
                return {"type": "input_text", "text": "[a sound in another format]"}
            data = base64.b64encode(sound.samples).decode()
            return {"type": "input_audio", "audio": data}
        case _:
            raise _refusal(
                f"A {type(block).__name__} of type {block.mime_type} cannot be sent this way.",
                provider,
            )


def _sound(block: AudioBlock, provider: str) -> Sound:
    sound = read_wave(block.data) if block.mime_type in _WAVE else None
    if sound is None or not sound.samples:
        raise _refusal(
            "Audio must be a mono WAV file: 16-bit PCM at 24 kHz, or G.711 at 8 kHz.",
            provider,
        )
    return sound


def _url(block: ImageBlock) -> str:
    source = block.source
    if isinstance(source, UrlSource):
        return source.url
    data = source.data
    if isinstance(data, bytes):
        data = base64.b64encode(data).decode()
    return f"data:{block.mime_type};base64,{data}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _refusal(message: str, provider: str) -> UPPError:
    return UPPError(message, code=ErrorCode.INVALID_REQUEST, provider=provider)
