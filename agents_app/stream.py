"""From what a model streams to what a response shows: upp stream events to UAMP events.

The law: a server tool's call and result are shown as deltas of the response; a client's tool is
asked for by the broker with `tool.call` and shows no delta, because clients fire their tool for
either (UAMP §6.6, §6.10). A call is shown whole, when it is executed.
"""

from collections.abc import Mapping

import msgspec

from agents_app.tools import ToolOutcome, storable
from uamp.content import ToolCallData, ToolResultData
from uamp.events import Delta, Event, ResponseDelta, Thinking, ToolCallDone, UsageDelta, text_delta
from uamp.session import UsageStats
from upp import EventDelta, StreamEvent, TokenUsage


class Translator:
    """Translates the events of one response.

    `client_tools` are the names that the broker answers for, `known_calls` the ids of calls that an
    earlier part of this response showed already, and `outcomes` fills up while tools run.
    """

    def __init__(
        self,
        response_id: str,
        *,
        client_tools: frozenset[str] = frozenset(),
        known_calls: frozenset[str] = frozenset(),
        outcomes: Mapping[str, ToolOutcome],
    ) -> None:
        self._response_id = response_id
        self._client_tools = client_tools
        self._known_calls = known_calls
        self._outcomes = outcomes

    def translate(self, event: StreamEvent) -> tuple[Event, ...]:
        """Return the UAMP events for an event; most kinds have none."""
        delta = event.delta
        match event.type:
            case "text_delta" if delta.text:
                return (text_delta(self._response_id, storable(delta.text)),)
            case "reasoning_delta" if delta.text:
                thought = Thinking(
                    content=storable(delta.text), is_delta=True, response_id=self._response_id
                )
                return (thought,)
            case "message_stop" if delta.usage is not None:
                return (UsageDelta(response_id=self._response_id, delta=usage_stats(delta.usage)),)
            case "tool_execution_start" if delta.tool_name not in self._client_tools:
                return self._call(delta)
            case "tool_execution_end" if delta.tool_name not in self._client_tools:
                return self._result(delta)
        return ()

    def _call(self, delta: EventDelta) -> tuple[Event, ...]:
        call_id = delta.tool_call_id or ""
        if call_id in self._known_calls:
            return ()
        arguments = delta.arguments_json or "{}"
        call = ToolCallData(id=call_id, name=delta.tool_name or "", arguments=arguments)
        return (self._delta(Delta(type="tool_call", tool_call=call)),)

    def _result(self, delta: EventDelta) -> tuple[Event, ...]:
        call_id = delta.tool_call_id or ""
        outcome = self._outcomes.get(call_id)
        data = ToolResultData(
            call_id=call_id,
            result=msgspec.json.encode(delta.result).decode(),
            is_error=bool(delta.is_error),
            status="error" if delta.is_error else "success",
            content_items=(outcome.content_items or None) if outcome else None,
        )
        return (
            self._delta(Delta(type="tool_result", tool_result=data)),
            ToolCallDone(call_id=call_id, response_id=self._response_id),
        )

    def _delta(self, delta: Delta) -> ResponseDelta:
        return ResponseDelta(response_id=self._response_id, delta=delta)


def usage_stats(usage: TokenUsage) -> UsageStats:
    """Return tokens as UAMP tells them; cached ones are reads and writes together (UAMP §8.7)."""
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return UsageStats(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        cached_tokens=cached or None,
    )
