"""The result of one call of `generate` or `stream` (UPP-1.3 §7)."""

from collections.abc import Mapping
from typing import Any

import msgspec

from upp.conversation.messages import AssistantMessage, Message
from upp.tools import ToolExecution


class TokenUsage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Tokens as the provider counts them; whether input holds cached tokens differs by provider.

    `output_tokens` is all that the model wrote and is paid for, its reasoning too. How much of that
    was reasoning is in `reasoning_tokens` (an addition), 0 where the provider does not say. Of the
    input that was not cached and of the output so many were sound: `audio_input_tokens` and
    `audio_output_tokens` (additions).
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


class Turn(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The new inputs and everything produced from them, without the given history.

    `response` is the last assistant message, `cycles` the number of inferences, `stop_reason` (an
    addition of ours) why the last one ended: end_turn, max_tokens, tool_use, content_filter or the
    provider's own word. `data` is the structured output when a structure was asked for.
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
        """Return the turn of a JSON shape.

        Others write no `stopReason`, which then is empty, and the original implementation no
        `response`, which then is the last message of the assistant. Raises msgspec.ValidationError
        for another shape.
        """
        if isinstance(shape, Mapping):
            messages = shape.get("messages")
            said = [
                message
                for message in (messages if isinstance(messages, list) else ())
                if isinstance(message, Mapping) and message.get("type") == "assistant"
            ]
            shape = {"stopReason": "", "response": said[-1] if said else None, **shape}
        return msgspec.convert(shape, cls)
