"""The capabilities that this server and its agents announce (UAMP §9)."""

from collections.abc import Iterable
from typing import Any

import msgspec

from agents_app.providers.options import audio_formats, speech_formats
from agents_app.selectors import AgentSpec
from agents_app.tools.registry import server_tools
from uamp.events.tables import CONVERSATION_CLIENT_EVENTS, CONVERSATION_SERVER_EVENTS
from uamp.types.capabilities import (
    AudioCapabilities,
    Capabilities,
    ConversationCapabilities,
    FileCapabilities,
    ImageCapabilities,
    ToolCapabilities,
)

SERVER_ID = "uamp-server"
MAX_TOOLS = 128

_IMAGE = ImageCapabilities(formats=("png", "jpeg", "gif", "webp"), max_size_bytes=20 * 1024 * 1024)
_DOCUMENTS = FileCapabilities(
    supported_mime_types=("application/pdf", "application/json", "text/*"),
    supports_pdf=True,
    supports_code=True,
    supports_structured_data=True,
)
CONVERSATION = ConversationCapabilities(
    client_events=CONVERSATION_CLIENT_EVENTS,
    server_events=CONVERSATION_SERVER_EVENTS,
    features=(
        "ask_again", "call_agents", "calls", "deletes", "edits", "export", "forks", "members",
        "pins", "presence", "quotes", "reactions", "read_receipts", "search", "threads", "typing",
        "versions",
    ),
)  # fmt: skip
"""The conversation events that people and programs may use in chats here, whichever agent answers.
"""
_MODALITIES = ("text", "image", "audio", "video", "file")
_CSV = FileCapabilities(
    supported_mime_types=("text/csv", "text/tab-separated-values"), supports_structured_data=True
)


def agent_capabilities(spec: AgentSpec) -> Capabilities:
    """Return an agent's capabilities, with its prices as an extension.

    `context_window` and `max_output_tokens` come from its options.
    """
    reads_media = spec.provider != "scripted"
    reads_csv = "csv_report" in spec.tools
    reads_pictures = (
        reads_media or "edit_picture" in spec.tools or spec.options.get("script") == "studio"
    )
    formats = audio_formats(spec.provider, spec.options)
    if reads_media:
        sound = ("audio",) if formats else ()
        modalities: tuple[str, ...] = ("text", "image", *sound, "file")
    else:
        modalities = (
            "text",
            *(("image",) if reads_pictures else ()),
            *(("file",) if reads_csv else ()),
        )
    file = _CSV if reads_csv else None
    return Capabilities(
        id=spec.name,
        model_id=spec.name,
        provider=SERVER_ID,
        modalities=modalities,
        supports_streaming=True,
        supports_thinking=reads_media or spec.options.get("script") == "thinker",
        context_window=spec.options.get("context_window"),
        max_output_tokens=spec.options.get("max_output_tokens"),
        image=_IMAGE if reads_pictures else None,
        audio=_audio(formats, speech_formats(spec.provider)),
        file=_DOCUMENTS if reads_media else file,
        tools=_tools(spec.tools),
        provides=spec.tools or None,
        extensions={} if spec.pricing.is_free else {"pricing": msgspec.to_builtins(spec.pricing)},
    )


def server_capabilities(agents: Iterable[AgentSpec] = ()) -> Capabilities:
    """Return the combined capabilities of this server for a caller who may use `agents`.

    Without agents, they are those common to every agent with a model. The extension `threads` means
    that inputs may name a thread.
    """
    announced = [agent_capabilities(spec) for spec in agents]
    modalities = {kind for announcement in announced for kind in announcement.modalities} or {
        "text",
        "image",
        "file",
    }
    sounds = [announcement.audio for announcement in announced if announcement.audio]
    received = {name for sound in sounds for name in sound.input_formats or ()}
    spoken = {name for sound in sounds for name in sound.output_formats or ()}
    return Capabilities(
        id=SERVER_ID,
        model_id=SERVER_ID,
        provider=SERVER_ID,
        modalities=tuple(kind for kind in _MODALITIES if kind in modalities),
        supports_streaming=True,
        supports_thinking=True,
        image=_IMAGE,
        audio=_audio(tuple(sorted(received)), tuple(sorted(spoken))),
        file=_DOCUMENTS,
        tools=_tools(tuple(server_tools())),
        extensions={"threads": True},
        conversation=CONVERSATION,
    )


def models_list(agents: Iterable[AgentSpec]) -> list[dict[str, Any]]:
    """Convert agents to the model objects of OpenAI's list; `created` is in seconds."""
    return [
        {"id": spec.name, "object": "model", "created": spec.created_at, "owned_by": SERVER_ID}
        for spec in agents
    ]


def _audio(received: tuple[str, ...], spoken: tuple[str, ...]) -> AudioCapabilities | None:
    """Return the audio formats that a model accepts and those that it answers in."""
    if not received:
        return None
    return AudioCapabilities(
        input_formats=received, output_formats=spoken or None, supports_realtime=bool(spoken)
    )


def _tools(built_in: tuple[str, ...]) -> ToolCapabilities:
    return ToolCapabilities(
        supports_tools=True,
        supports_parallel_tools=True,
        supports_streaming_tools=False,
        max_tools_per_request=MAX_TOOLS,
        built_in_tools=built_in or None,
    )
