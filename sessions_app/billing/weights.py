"""About how many tokens a text has, before a provider has counted them (docs/money.md).

What an answer reads and writes is reserved, and a step that is cut off is charged, by these
estimates. They are in quarters of a token.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
from django.conf import settings

import uamp
from agents_app.conversation.history import DOCUMENT_CHARS
from agents_app.providers.clients import output_bound
from agents_app.providers.options import speech_formats
from agents_app.runtime.offered_tools import offered
from sessions_app.billing.media_weights import (
    MEDIUM_TOKENS,
    MOST,
    MOST_OF_VENDORS,
    USUAL,
    ids_of,
    shown_tokens,
    sound_tokens_read,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agents_app.runtime.agent_run import RunRequest
    from agents_app.selectors import AgentSpec
    from chat_app.contents.extents import Extent
    from sessions_app.billing.media_weights import Rates

    Extents = Mapping[str, Sequence[Extent]]

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


def step_usage(
    spec: AgentSpec, request: RunRequest, extents: Extents | None = None
) -> uamp.UsageStats:
    """Return the estimate of a step's most use, hidden reasoning included.

    `extents` are those of the media in the request, by the ids that name them.
    """
    read = _MediaReading(spec, extents or {}, MOST_OF_VENDORS.get(spec.provider, MOST))
    writes = max(
        1,
        output_bound(
            spec,
            request.params,
            most=settings.UAMP_RESERVE_TOKENS,
            hidden=settings.UAMP_RESERVE_REASONING_TOKENS,
        ),
    )
    reads = tokens_of(read.weight_of(request))
    if window := spec.options.get("context_window"):
        # Nothing beyond it reaches the model.
        reads = min(reads, int(window))
    return uamp.UsageStats(
        input_tokens=reads,
        output_tokens=writes,
        audio=read.sound_usage(request, writes),
    )


def usual_input(
    spec: AgentSpec, request: RunRequest, extents: Extents | None = None
) -> uamp.UsageStats:
    """Return what the first step usually reads: due where it is cut off before it is counted."""
    read = _MediaReading(spec, extents or {}, USUAL)
    return uamp.UsageStats(
        input_tokens=tokens_of(read.weight_of(request)), audio=read.sound_usage(request, 0)
    )


@dataclass(frozen=True, slots=True)
class _MediaReading:
    """The input of an agent's model, by the rates of its vendor."""

    spec: AgentSpec
    extents: Extents
    rates: Rates

    def sound_usage(self, request: RunRequest, writes: int) -> uamp.AudioUsage | None:
        """Return how much of a step is sound, for a model with a price for it or that speaks."""
        pricing = self.spec.pricing
        speaks = bool(speech_formats(self.spec.provider))
        if not speaks and pricing.audio_input_per_1k is None:
            return None
        sounds = sum(
            sound_tokens_read(self.spec, item, self.extents, self.rates)
            for message in request.history
            for item in message.content_items or ()
            if isinstance(item, uamp.AudioContent)
        )
        spoken = (writes or None) if speaks and "speech" in request.params else None
        return uamp.AudioUsage(input_tokens=sounds or None, output_tokens=spoken)

    def weight_of(self, request: RunRequest) -> int:
        """Return about what the provider is sent for the first step of a request weighs."""
        spec = self.spec
        total = weight(spec.instructions) + weight(request.instructions or "")
        total += sum(map(self._message_weight, request.history))
        total += sum(map(self._item_weight, request.resume))
        return total + _offered_weight(spec, request)

    def _message_weight(self, message: uamp.Message) -> int:
        # A message with media is sent as its items, another one as its content.
        items = sum(map(self._item_weight, message.content_items or ()))
        calls = sum(map(_call_weight, message.tool_calls or ()))
        return max(weight(message.content or ""), items) + calls + weight(message.name or "")

    def _item_weight(self, item: uamp.ContentItem) -> int:
        match item:
            case uamp.TextContent(text=text) | uamp.ThinkingContent(thinking=text):
                return weight(text)
            case uamp.ToolCallContent(tool_call=call):
                return _call_weight(call)
            case uamp.ToolResultContent(tool_result=found):
                return weight(found.call_id) + result_weight(found.result, found.content_items)
            case uamp.AudioContent():
                tokens = sound_tokens_read(self.spec, item, self.extents, self.rates)
                return LABEL_WEIGHT + tokens * CHARS_PER_TOKEN
        return LABEL_WEIGHT + self._medium_weight(item)

    def _medium_weight(self, item: uamp.ContentItem) -> int:
        """Return what a picture or a document weighs, as what its bytes are."""
        shown = shown_tokens(item, self.extents, self.rates)
        if shown is not None:
            return shown * CHARS_PER_TOKEN
        texts = [
            math.ceil(one.size_bytes / 3) * CHARS_PER_TOKEN
            for name in ids_of(item)
            for one in self.extents.get(name, ())
            if one.kind == "other"
        ]
        if isinstance(item, uamp.FileContent):
            texts.append(_document_weight(item))
        elif isinstance(item, uamp.VideoContent) or not texts:
            # No model is sent a film: it is given its name.
            texts = [MEDIUM_TOKENS * CHARS_PER_TOKEN]
        return min(max(texts), DOCUMENT_WEIGHT)


def _offered_weight(spec: AgentSpec, request: RunRequest) -> int:
    total = 0
    for name, about, parameters in offered(spec, request):
        total += weight(name) + weight(about) + _json_weight(parameters)
    if request.response_format is not None:
        total += _json_weight(request.response_format)
    return total


def _json_weight(value: object) -> int:
    return weight(msgspec.json.encode(value).decode())


def _call_weight(call: uamp.ToolCallData) -> int:
    return weight(call.id) + weight(call.name) + weight(call.arguments)


def result_weight(result: str, items: Sequence[uamp.ContentItem] | None) -> int:
    """Return the estimate of a result for a model, which reads media by name."""
    return weight(result) + LABEL_WEIGHT * len(items or ())


def _document_weight(item: uamp.FileContent) -> int:
    """Return about what a document weighs: as many quarters as it has characters in base64.

    Three bytes may be one character of Chinese, and so a token. What is stored is read when the
    answer runs; only its size is known before.
    """
    if isinstance(item.file, str):
        return len(item.file)
    size = item.size_bytes
    return DOCUMENT_WEIGHT if size is None else math.ceil(size / 3) * CHARS_PER_TOKEN
