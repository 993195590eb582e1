"""The answer of a remote agent as it arrives, shared by all protocols."""

from collections.abc import Collection
from typing import Any

from agents_app.remote.protocols.server import FLUSH, RemoteCaller
from uamp.events import Event, Progress
from upp import ErrorCode, LLMRequest, LLMResponse, StreamEvent
from upp.conversation.messages import AssistantContent, AssistantMessage, ReasoningBlock, TextBlock
from upp.conversation.turn import TokenUsage
from upp.model import structured_data
from upp.providers.http.failures import Failures
from upp.stream import reasoning_delta, text_delta, tool_call_delta
from upp.tools import ToolCall, parse_call

MESSAGE_CHARS = 500
"""The most characters shown of a remote agent's progress message."""
CALLS = 128
"""The most tool calls in one answer."""


class RemoteAnswer:
    """Collects the text, thoughts, calls and end of one answer; each protocol subclasses it.

    Subclasses implement `add`. Nothing is accepted after the end.
    """

    def __init__(self, server: RemoteCaller, request: LLMRequest, failures: Failures) -> None:
        self.done = False
        self.usage = TokenUsage()
        self.server = server
        self.failures = failures
        self.request = request
        self._stop: str | None = None
        self._texts: list[str] = []
        self._length = 0
        self._thoughts: list[str] = []
        self._calls: dict[str, ToolCall] = {}

    @property
    def complete(self) -> bool:
        """Whether the agent has reported the end of the answer."""
        return self._stop is not None

    @property
    def text(self) -> str:
        """The text so far; its pieces are joined lazily."""
        if len(self._texts) > 1:
            self._texts = ["".join(self._texts)]
        return self._texts[0] if self._texts else ""

    @property
    def length(self) -> int:
        """The length of the text so far, in characters."""
        return self._length

    def say(self, text: str) -> list[StreamEvent]:
        """Append a piece of text and return its events."""
        if not text:
            return []
        self._texts.append(text)
        self._length += len(text)
        return [text_delta(text)]

    def say_at(self, text: str, offset: int | None) -> list[StreamEvent]:
        """Append text that starts at an offset of the answer, skipping what is known already.

        Raises UPPError INVALID_RESPONSE if it leaves a gap or contradicts the earlier text.
        """
        if offset is None or offset == self._length:
            return self.say(text)
        overlap = self._length - offset
        if 0 < overlap <= len(text) and self.text.endswith(text[:overlap]):
            return self.say(text[overlap:])
        if 0 < len(text) <= overlap and self.text.startswith(text, offset):
            return []
        raise self.invalid("a piece of text that does not follow what was sent before")

    def think(self, text: str) -> list[StreamEvent]:
        """Append a piece of a thought and return its events."""
        if not text:
            return []
        self._thoughts.append(text)
        return [reasoning_delta(text)]

    def call(self, call_id: str, name: str, arguments: str) -> list[StreamEvent]:
        """Add a complete call of one of this side's tools and return its events; ids count once."""
        if call_id in self._calls:
            return []
        if len(self._calls) >= CALLS:
            raise self.invalid(f"more than {CALLS} tool calls")
        self._calls[call_id] = parse_call(call_id, name, arguments)
        return [
            tool_call_delta(
                call_id=call_id,
                name=name,
                arguments_json=arguments,
                index=len(self._calls) - 1,
            )
        ]

    def progress(self, message: str, **facts: Any) -> list[StreamEvent]:
        """Show a progress message of the agent."""
        response_id = self.server.called.response_id
        return self.show(
            Progress(
                target="response",
                target_id=response_id,
                message=message[:MESSAGE_CHARS] or None,
                response_id=response_id,
                **facts,
            )
        )

    def show(self, event: Event) -> list[StreamEvent]:
        """Queue a UAMP event that has no counterpart in a model's stream."""
        self.server.side_events.add(event)
        return [FLUSH]

    def link(self, url: object, label: str, *, is_image: bool = False) -> list[StreamEvent]:
        """Add a link to a media item; only http addresses are passed on."""
        if not isinstance(url, str) or not url.startswith(("https://", "http://")):
            return self.progress(f"{label or 'A media item'} was sent as data, which is not kept.")
        if any(char in url for char in " \t\r\n<>()"):
            return self.progress(f"{label or 'A media item'} has an invalid address.")
        name = "".join(char for char in label if char not in "[]\n\r") or "file"
        text = f"{'!' if is_image else ''}[{name[:200]}]({url})"
        return self.say(f"\n\n{text}\n\n" if self._texts else f"{text}\n\n")

    def end(self, stop: str = "end_turn") -> list[StreamEvent]:
        """Mark the end; pending calls of this side's tools turn it into `tool_use`."""
        self._stop = "tool_use" if self._calls and stop == "end_turn" else stop
        self.done = True
        return []

    def count(self, usage: object, read: str, written: str) -> None:
        """Read the token counts from two members of an object; invalid numbers count as 0."""
        if not isinstance(usage, dict):
            return
        input_tokens, output_tokens = number_of(usage.get(read)), number_of(usage.get(written))
        self.usage = TokenUsage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            total_tokens=input_tokens + output_tokens,
        )

    def invalid(self, what: str) -> Exception:
        """Return the error for an answer that violates its protocol."""
        return self.failures.error(f"The agent sent {what}.", ErrorCode.INVALID_RESPONSE)

    def failed(self, message: object, code: ErrorCode = ErrorCode.PROVIDER_ERROR) -> Exception:
        """Return the error that the agent itself reported."""
        return self.failures.error(f"The agent failed: {message}", code)

    def response(self) -> LLMResponse:
        """Return the complete answer."""
        content: list[AssistantContent] = []
        if self._thoughts:
            content.append(ReasoningBlock(text="".join(self._thoughts)))
        if self._texts:
            content.append(TextBlock(text=self.text))
        message = AssistantMessage(content=tuple(content), tool_calls=tuple(self._calls.values()))
        return LLMResponse(
            message=message,
            usage=self.usage,
            stop_reason=self._stop or "end_turn",
            data=structured_data(message, self.request.structure),
        )


def number_of(value: object) -> int:
    """Return a count reported by another server, or 0 if it is invalid."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return int(value) if is_count else 0  # type: ignore[call-overload]


def text_in(value: object, *names: str) -> str:
    """Return the string at a path of members, or ""."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def object_in(value: object, name: str) -> dict[str, Any]:
    """Return the object in a member, or an empty one."""
    inner = value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def list_in(value: object, name: str) -> Collection[Any]:
    """Return the list in a member, or an empty one."""
    inner = value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, list) else []
