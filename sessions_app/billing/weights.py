"""Token estimates for what no provider has counted yet (docs/money.md).

Reservations for an answer use the most that a model may count, the charge for an interrupted step
the usual number. The unit is a quarter of a token.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
from django.conf import settings

import uamp
from agents_app.conversation.history import DOCUMENT_CHARS
from agents_app.conversation.text_weights import CHARS_PER_TOKEN, max_weight, weight
from agents_app.providers.options import speech_formats
from agents_app.providers.output_limits import output_bound
from agents_app.runtime.offered_tools import tool_definitions
from agents_app.runtime.prompt_texts import checkpoint_texts, first_texts, later_texts
from sessions_app.billing.media_weights import (
    MEDIUM_TOKENS,
    USUAL,
    ids_of,
    max_rates,
    sound_tokens_read,
    tokens_of_media,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agents_app.runtime.agent_run import RunRequest
    from agents_app.selectors import AgentSpec
    from chat_app.contents.extents import Extent
    from sessions_app.billing.media_weights import Rates

    Extents = Mapping[str, Sequence[Extent]]
    Weigh = Callable[[str], int]

LABEL_WEIGHT: Final = 200
"""The weight of the label of a medium in a model's input, without the name of its file."""
_LABEL_FRAME: Final = 100
"""The part of it that is not the client's."""
_SPEAKER: Final = "[agent ]"
_INTERRUPTED: Final = "The call was interrupted and has no result."
CUT_WEIGHT: Final = 150
"""More than the notes on a document that was cut off or is not UTF-8."""
_ZEROS: Final = "0" * 16
"""How much longer a number may be that was written with an exponent, such as 1e15."""
_EXPONENT: Final = re.compile(r"\d[eE]")
_LABEL_FIELDS: Final = ("content_id", "description", "format", "mime_type")
DOCUMENT_WEIGHT: Final = DOCUMENT_CHARS * CHARS_PER_TOKEN
"""The usual weight of the longest text document, in which every character may be a token."""
_BYTES_PER_CHAR: Final = 4
"""The most bytes of a character, of which each may be a token."""
SOUND_MS_PER_TOKEN: Final = 50
"""An estimate for speech; OpenAI's models use one token per this many milliseconds."""


def tokens_of(quarters: int) -> int:
    """Convert a weight to whole tokens, rounding up."""
    return math.ceil(quarters / CHARS_PER_TOKEN)


def sound_tokens(ms: int) -> int:
    """Return the approximate number of tokens in this many milliseconds of speech."""
    return math.ceil(ms / SOUND_MS_PER_TOKEN)


def step_usage(
    spec: AgentSpec, request: RunRequest, extents: Extents | None = None
) -> uamp.UsageStats:
    """Return the most that a step is expected to use, including hidden reasoning.

    `extents` holds the extents of the request's media by id.
    """
    read = _MediaReading(spec, extents or {}, max_rates(spec))
    writes = max(
        1,
        output_bound(
            spec,
            request.params,
            visible=settings.UAMP_RESERVE_TOKENS,
            hidden=settings.UAMP_RESERVE_REASONING_TOKENS,
        ),
    )
    return uamp.UsageStats(
        input_tokens=read.tokens_of_input(request),
        output_tokens=writes,
        audio=read.sound_usage(request, writes),
    )


def usual_input(
    spec: AgentSpec, request: RunRequest, extents: Extents | None = None
) -> uamp.UsageStats:
    """Return the usual input of the first step, charged if it is interrupted before counting."""
    read = _MediaReading(spec, extents or {}, USUAL)
    return uamp.UsageStats(
        input_tokens=read.tokens_of_input(request), audio=read.sound_usage(request, 0)
    )


def whole_input(spec: AgentSpec, request: RunRequest, extents: Extents) -> int:
    """Return a conversation's usual input tokens, including those beyond a context window."""
    return tokens_of(_MediaReading(spec, extents, USUAL).weight_of(request))


def media_tokens(spec: AgentSpec, request: RunRequest, extents: Extents) -> int:
    """Return the most tokens that a model counts for the sounds, pictures and PDFs of a request."""
    rates = max_rates(spec)
    return sum(
        sound_tokens_read(spec, item, extents, rates)
        if isinstance(item, uamp.AudioContent)
        else tokens_of_media(item, extents, rates) or 0
        for message in request.history
        for item in message.content_items or ()
    )


def later_prompts(spec: AgentSpec, request: RunRequest) -> int:
    """Return the prompt tokens that a later step adds to those that were read and written."""
    return tokens_of(sum(map(max_weight, later_texts(spec, request))))


@dataclass(frozen=True, slots=True)
class _MediaReading:
    """The input of an agent's model, at its vendor's highest or usual rates."""

    spec: AgentSpec
    extents: Extents
    rates: Rates

    @property
    def _weigh(self) -> Weigh:
        return weight if self.rates is USUAL else max_weight

    def sound_usage(self, request: RunRequest, writes: int) -> uamp.AudioUsage | None:
        """Return the sound in a step, for models that speak or charge extra for sound input."""
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

    def tokens_of_input(self, request: RunRequest) -> int:
        """Return the input of a request's first step, within the agent's context window."""
        reads, window = tokens_of(self.weight_of(request)), self.spec.options.get("context_window")
        # Input beyond the context window never reaches the model.
        return min(reads, int(window)) if window else reads

    def weight_of(self, request: RunRequest) -> int:
        """Return the approximate weight of the input that a request's first step sends."""
        spec, weigh = self.spec, self._weigh
        total = weigh(spec.instructions) + weigh(request.instructions or "")
        total += sum(map(weigh, first_texts(spec, request)))
        total += sum(map(self._message_weight, request.history))
        return total + self._resumed_weight(request) + _offered_weight(spec, request, weigh)

    def _resumed_weight(self, request: RunRequest) -> int:
        """Return the weight of the answer so far; a checkpoint may hold more of it."""
        total, checkpoint = sum(map(self._item_weight, request.resume)), request.checkpoint
        if checkpoint is None:
            return total
        since = sum(map(self._item_weight, checkpoint.output_since(request.resume)))
        return max(total, sum(map(self._weigh, checkpoint_texts(checkpoint))) + since)

    def _message_weight(self, message: uamp.Message) -> int:
        # A message with media is sent as its items, any other as its content.
        weigh = self._weigh
        items = sum(map(self._item_weight, message.content_items or ()))
        calls = sum(_call_weight(call, weigh) for call in message.tool_calls or ())
        named = weigh(_SPEAKER + message.name) if message.name else 0
        answered = weigh(message.tool_call_id or "")
        return max(weigh(message.content or ""), items) + calls + named + answered

    def _item_weight(self, item: uamp.ContentItem) -> int:
        match item:
            case uamp.TextContent(text=text) | uamp.ThinkingContent(thinking=text):
                return self._weigh(text)
            case uamp.ToolCallContent(tool_call=call):
                return _call_weight(call, self._weigh)
            case uamp.ToolResultContent(tool_result=result):
                about = result.result, result.content_items, self._weigh
                return self._weigh(result.call_id) + result_weight(*about)
            case uamp.AudioContent():
                tokens = sound_tokens_read(self.spec, item, self.extents, self.rates)
                return _label_weight(item, self._weigh) + tokens * CHARS_PER_TOKEN
        return _label_weight(item, self._weigh) + self._medium_weight(item)

    def _medium_weight(self, item: uamp.ContentItem) -> int:
        """Return the weight of a picture or document, according to its actual bytes."""
        tokens = tokens_of_media(item, self.extents, self.rates)
        if tokens is not None:
            return tokens * CHARS_PER_TOKEN
        is_usual = self.rates is USUAL
        texts = [
            max(min(math.ceil(extent.size_bytes / 3), DOCUMENT_CHARS), amount) * CHARS_PER_TOKEN
            for name in ids_of(item)
            for extent in self.extents.get(name, ())
            if extent.kind == "other"
            for amount in (0 if is_usual else extent.amount,)
        ]
        if isinstance(item, uamp.FileContent):
            if not texts or isinstance(item.file, str):
                texts.append(_document_weight(item, is_usual=is_usual))
        elif isinstance(item, uamp.VideoContent) or not texts:
            # Models do not receive films, only their names.
            texts = [MEDIUM_TOKENS * CHARS_PER_TOKEN]
        return max(texts) + CUT_WEIGHT


def _offered_weight(spec: AgentSpec, request: RunRequest, weigh: Weigh) -> int:
    total = 0
    for name, about, parameters in tool_definitions(spec, request):
        total += weigh(name) + weigh(about) + weigh(_json(parameters))
    if request.response_format is not None:
        total += weigh(_json(request.response_format))
    return total


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _call_weight(call: uamp.ToolCallData, weigh: Weigh) -> int:
    """Return the weight of a call, as which its result may be named, or that it has none."""
    longer = weigh(_ZEROS) * len(_EXPONENT.findall(call.arguments))
    named = weigh(call.id) + 2 * weigh(call.name)
    return named + weigh(call.arguments) + longer + weigh(_INTERRUPTED)


def result_weight(result: str, items: Sequence[uamp.ContentItem] | None, weigh: Weigh) -> int:
    """Return the weight of a tool result, whose media the model reads only by name."""
    return weigh(result) + sum(_label_weight(item, weigh) for item in items or ())


def _label_weight(item: uamp.ContentItem, weigh: Weigh) -> int:
    # The name of a file is also the title of its document.
    filename = 2 * weigh(item.filename) if isinstance(item, uamp.FileContent) else 0
    fields = (getattr(item, name, None) for name in _LABEL_FIELDS)
    return max(LABEL_WEIGHT, _LABEL_FRAME + sum(weigh(text) for text in fields if text)) + filename


def _document_weight(item: uamp.FileContent, *, is_usual: bool) -> int:
    """Return the weight of a document whose bytes are not measured.

    Usually three bytes are a token, which may be a Chinese character; at most every byte is one.
    Stored documents are read only when the answer runs; before that, only their size is known.
    """
    size = item.size_bytes
    if isinstance(item.file, str):
        # Base64 has four characters for three bytes.
        size = math.ceil(len(item.file) / 4) * 3
    limit = DOCUMENT_WEIGHT if is_usual else _BYTES_PER_CHAR * DOCUMENT_WEIGHT
    if size is None:
        return limit
    return min((math.ceil(size / 3) if is_usual else size) * CHARS_PER_TOKEN, limit)
