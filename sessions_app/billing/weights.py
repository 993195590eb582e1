"""About how many tokens a text has, before a provider has counted them (docs/money.md).

What an answer reads and writes is reserved, and a step that is cut off is charged, by these
estimates. They are in quarters of a token.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import msgspec
from django.conf import settings

import uamp
from agents_app.conversation.media import DOCUMENT_CHARS
from agents_app.providers.clients import output_bound
from agents_app.providers.options import speech_formats
from agents_app.runtime.offered_tools import offered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_app.runtime.agent_run import RunRequest
    from agents_app.selectors import AgentSpec

CHARS_PER_TOKEN: Final = 4
"""An estimate for what no provider has counted yet; what it counts takes the place of it.

Texts are weighed in quarters of a token: an ASCII character weighs one, every other character four.
"""
LABEL_WEIGHT: Final = 200
"""The label that names a medium in a model's input."""
DOCUMENT_WEIGHT: Final = DOCUMENT_CHARS * CHARS_PER_TOKEN
"""The most that a text document weighs: each of its characters may be a token."""
SOUND_MS_PER_TOKEN: Final = 50
"""An estimate of what a model speaks; OpenAI's models speak a token in so many milliseconds."""
MEDIUM_TOKENS: Final = 1_600
"""An estimate of a picture or a sound; what vendors count of one depends on its size."""


def weight(text: str) -> int:
    """Return a text's estimate in quarter tokens: one for ASCII, four for other characters.

    Chinese, Japanese and emoji have about a token for each character. It is measured for every
    piece of a running answer: text that is all ASCII is not looked at.
    """
    if text.isascii():
        return len(text)
    ascii_chars = len(text.encode("ascii", "ignore"))
    return ascii_chars + CHARS_PER_TOKEN * (len(text) - ascii_chars)


def tokens_of(quarters: int) -> int:
    """Return the whole tokens of a weight."""
    return math.ceil(quarters / CHARS_PER_TOKEN)


def sound_tokens(ms: int) -> int:
    """Return about how many tokens a model spoke in so many milliseconds."""
    return math.ceil(ms / SOUND_MS_PER_TOKEN)


def step_usage(spec: AgentSpec, request: RunRequest) -> uamp.UsageStats:
    """Return the estimate of a step's most use, hidden reasoning included."""
    writes = max(
        1,
        output_bound(
            spec,
            request.params,
            most=settings.UAMP_RESERVE_TOKENS,
            hidden=settings.UAMP_RESERVE_REASONING_TOKENS,
        ),
    )
    return uamp.UsageStats(
        input_tokens=tokens_of(_read_weight(spec, request)),
        output_tokens=writes,
        audio=_sound_usage(spec, request, writes),
    )


def _sound_usage(spec: AgentSpec, request: RunRequest, writes: int) -> uamp.AudioUsage | None:
    """Return how much of a step may be sound, for a model that speaks: all that it writes."""
    if not speech_formats(spec.provider):
        return None
    sounds = sum(
        isinstance(item, uamp.AudioContent)
        for message in request.history
        for item in message.content_items or ()
    )
    spoken = writes if "speech" in request.params else None
    return uamp.AudioUsage(input_tokens=sounds * MEDIUM_TOKENS or None, output_tokens=spoken)


def _read_weight(spec: AgentSpec, request: RunRequest) -> int:
    """Return about what the provider is sent for the first step of a request weighs."""
    total = weight(spec.instructions) + weight(request.instructions or "")
    total += sum(map(_message_weight, request.history))
    total += sum(map(_item_weight, request.resume))
    for name, about, parameters in offered(spec, request):
        total += weight(name) + weight(about) + _json_weight(parameters)
    if request.response_format is not None:
        total += _json_weight(request.response_format)
    return total


def _json_weight(value: object) -> int:
    return weight(msgspec.json.encode(value).decode())


def _message_weight(message: uamp.Message) -> int:
    # A message with media is sent as its items, another one as its content.
    items = sum(map(_item_weight, message.content_items or ()))
    calls = sum(map(_call_weight, message.tool_calls or ()))
    return max(weight(message.content or ""), items) + calls + weight(message.name or "")


def _call_weight(call: uamp.ToolCallData) -> int:
    return weight(call.id) + weight(call.name) + weight(call.arguments)


def result_weight(result: str, items: Sequence[uamp.ContentItem] | None) -> int:
    """Return the estimate of a result for a model, which reads media by name."""
    return weight(result) + LABEL_WEIGHT * len(items or ())


def _item_weight(item: uamp.ContentItem) -> int:
    match item:
        case uamp.TextContent(text=text) | uamp.ThinkingContent(thinking=text):
            return weight(text)
        case uamp.ToolCallContent(tool_call=call):
            return _call_weight(call)
        case uamp.ToolResultContent(tool_result=found):
            return weight(found.call_id) + result_weight(found.result, found.content_items)
        case uamp.FileContent():
            return LABEL_WEIGHT + min(_document_weight(item), DOCUMENT_WEIGHT)
    return LABEL_WEIGHT + MEDIUM_TOKENS * CHARS_PER_TOKEN


def _document_weight(item: uamp.FileContent) -> int:
    """Return about what a document weighs: as many quarters as it has characters in base64.

    Three bytes may be one character of Chinese, and so a token. What is stored is read when the
    answer runs; only its size is known before.
    """
    if isinstance(item.file, str):
        return len(item.file)
    size = item.size_bytes
    return DOCUMENT_WEIGHT if size is None else math.ceil(size / 3) * CHARS_PER_TOKEN
