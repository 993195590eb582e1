"""The result of one call of `generate` or `stream` (UPP-1.3 §7)."""

from collections.abc import Mapping
from typing import Any

import msgspec

from upp.conversation.messages import AssistantMessage, Message
from upp.tools import ToolExecution


class TokenUsage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Tokens as counted by the provider; whether input includes cached tokens varies.

    `output_tokens` is everything the model wrote and is paid for, including reasoning.
    `reasoning_tokens` (our addition) is the reasoning part, 0 if the provider does not say.
    `audio_input_tokens` and `audio_output_tokens` (our additions) are the audio parts of the
    uncached input and of the output.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    audio_input_tokens: int = 0
    audio_output_tokens: int = 0

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            total_tokens=self.total_tokens + other.total_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            audio_input_tokens=self.audio_input_tokens + other.audio_input_tokens,
            audio_output_tokens=self.audio_output_tokens + other.audio_output_tokens,
        )

    def within(self, *, read: int, written: int) -> "TokenUsage":
        """Return counts between 0 and these bounds, for a server whose counts are not trusted."""
        input_tokens = _clamp(self.input_tokens, read)
        output_tokens = _clamp(self.output_tokens, written)
        return TokenUsage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            total_tokens=input_tokens + output_tokens,
            cache_read_tokens=_clamp(self.cache_read_tokens, read),
            cache_write_tokens=_clamp(self.cache_write_tokens, read),
            reasoning_tokens=_clamp(self.reasoning_tokens, output_tokens),
            audio_input_tokens=_clamp(self.audio_input_tokens, input_tokens),
            audio_output_tokens=_clamp(self.audio_output_tokens, output_tokens),
        )


def _clamp(count: int, maximum: int) -> int:
    return min(max(count, 0), maximum)


class Turn(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The new inputs and everything produced from them, without the given history.

    `response` is the last assistant message and `cycles` the number of inferences. `stop_reason`
    (our addition) says why the last one ended: end_turn, max_tokens, tool_use, content_filter or
    the provider's own word. `data` is the structured output, if a structure was requested.
    """

    messages: tuple[Message, ...]
    response: AssistantMessage
    tool_executions: tuple[ToolExecution, ...]
    usage: TokenUsage
    cycles: int
    stop_reason: str
    data: Any = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape (UPP-1.2 appendix A.3, with `response`)."""
        shape: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return shape

    @classmethod
    def from_json(cls, shape: Mapping[str, Any]) -> "Turn":
        """Create a turn from its JSON shape.

        Other implementations do not write `stopReason`, which is then empty; the original one does
        not write `response`, which is then the last assistant message. Raises
        msgspec.ValidationError for any other shape.
        """
        if isinstance(shape, Mapping):
            messages = shape.get("messages")
            answers = [
                message
                for message in (messages if isinstance(messages, list) else ())
                if isinstance(message, Mapping) and message.get("type") == "assistant"
            ]
            shape = {"stopReason": "", "response": answers[-1] if answers else None, **shape}
        return msgspec.convert(shape, cls)
