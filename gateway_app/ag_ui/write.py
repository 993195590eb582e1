"""The events of one AG-UI run, built from the events of one response.

Messages, thoughts, steps and the work of other agents are open between their first and last events;
all are closed before the run ends. Optional members without a value are omitted. The id of a
message or thought combines its response and its position there, in every run and snapshot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

import uamp
from gateway_app.ag_ui.interrupts import event_content, interrupt_of
from gateway_app.types.appended_text import AppendedText
from gateway_app.types.charged_errors import with_charges
from uamp import events as ev
from uamp.digital_source import AI_MADE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gateway_app.ag_ui.read import RunInput
    from uamp import RemoteProtocolError
    from uamp.events import Event
    from uamp.shared_state import VersionedState

RunEvent: TypeAlias = "dict[str, Any]"
"""An AG-UI event in its wire format."""

PROTOCOL_VERSION: Final = "1.0"
_DELEGATE: Final = "delegate"
# Events that may be about delegated work, whose response is a different one.
_OF_ANY_WORK: Final = (
    ev.ToolApprovalRequired,
    ev.ToolApprovalDone,
    ev.PaymentRequired,
    ev.PaymentAccepted,
    ev.PaymentError,
)


class RunWriter:
    """Converts the events of one response to the events of one run."""

    def __init__(self, run: RunInput) -> None:
        self.has_ended = False
        self._run = run
        self._response_id = ""
        self._state_version = 0
        self._text = AppendedText()
        self._thoughts = ""
        self._message_id = ""
        self._thought_id = ""
        self._steps: list[str] = []
        # The calls sent, those of them without a result, and those that delegate to other agents.
        self._shown: set[str] = set()
        self._calls: list[str] = []
        self._subagents: list[str] = []
        # Whether the end of the response may add calls that were not sent before it.
        self._completes = True

    def begin(self, state: VersionedState) -> Iterator[RunEvent]:
        """Yield the first event of the run, and its thread's state, if any."""
        run, self._state_version = self._run, state.version
        yield _event(
            "RUN_STARTED",
            threadId=run.thread_id,
            runId=run.run_id,
            parentRunId=run.parent_run_id,
            protocolVersion=PROTOCOL_VERSION,
        )
        if state.version:
            about = {"version": state.version}
            yield _event("STATE_SNAPSHOT", snapshot=state.value, metadata=about)

    def resume(self, state: Iterable[Event]) -> Iterator[RunEvent]:
        """Take over the state of a response that an earlier run began.

        Yields its end, if it has ended. Events that the earlier run sent are not repeated.
        """
        self._completes = False
        for event in state:
            made = list(self.feed(event))
            if self.has_ended:
                yield from made
        self._message_id = self._thought_id = ""

    def feed(self, event: Event) -> Iterator[RunEvent]:
        """Yield the AG-UI events for an event; raises TextReplacedError (`AppendedText.append`)."""
        of_run = None if isinstance(event, _OF_ANY_WORK) else getattr(event, "response_id", None)
        self._response_id = of_run or self._response_id
        match event:
            case ev.StateUpdated():
                yield from self._change_state(event)
            case ev.ResponseDelta():
                yield from self._delta(event)
            case ev.Thinking(redacted=False):
                yield from self._think(event)
            case ev.Progress():
                yield from self._progress(event)
            case ev.ToolCall(call_id=call_id, name=name, arguments=arguments):
                yield from self._call(uamp.ToolCallData(id=call_id, name=name, arguments=arguments))
            case ev.PaymentAccepted() | ev.PaymentBalance() | ev.PaymentError():
                yield _event("CUSTOM", name=uamp.to_dict(event)["type"], value=event_content(event))
            case ev.ResponseDone(response=ev.ResponseOutput() as output):
                yield from self._done(output, event.signature)
            case ev.ResponseCancelled():
                yield from self.finish({"type": "cancelled"}, event.usage)
            case ev.ResponseError():
                yield from self.fail(event.error, event.usage)

    def interrupt(self, questions: Iterable[Event], waiting: str) -> Iterator[RunEvent]:
        """Yield the end of a run whose response `waiting` resumes once they are answered."""
        interrupts = [
            interrupt for event in questions if (interrupt := interrupt_of(event, waiting))
        ]
        suspended = {"type": "suspended", "interruptIds": [entry["id"] for entry in interrupts]}
        for subagent in self._subagents:
            yield _event("SUBAGENT_FINISHED", subagentRunId=subagent, outcome=suspended)
        self._subagents.clear()
        yield from self.finish({"type": "interrupt", "interrupts": interrupts})

    def fail(
        self, error: RemoteProtocolError | uamp.ErrorDetail, usage: uamp.UsageStats | None = None
    ) -> Iterator[RunEvent]:
        """Yield the end of a failed run."""
        yield from self._close()
        self.has_ended = True
        ended = {"message": error.message, "code": error.code, "usage": _usage(usage)}
        yield _event("RUN_ERROR", **with_charges(ended, error))

    # --- Parts ---

    def _delta(self, event: ev.ResponseDelta) -> Iterator[RunEvent]:
        delta = event.delta
        match delta:
            case ev.Delta(type="text"):
                if text := self._text.append(delta.text or "", event.offset):
                    yield from self._say(text)
            case ev.Delta(tool_call=uamp.ToolCallData() as call):
                yield from self._call(call)
            case ev.Delta(tool_result=uamp.ToolResultData() as result):
                yield from self._result(result)
            case ev.Delta(tool_progress=ev.ToolProgress() as progress) if progress.text:
                yield _event("CUSTOM", name="tool_progress", value=event_content(progress))
            case ev.Delta(type="image" | "audio" | "video" | "file"):
                yield _event("CUSTOM", name="content_item", value=msgspec.to_builtins(delta))

    def _change_state(self, event: ev.StateUpdated) -> Iterator[RunEvent]:
        if event.version > self._state_version:
            self._state_version = event.version
            about = {"version": event.version}
            yield _event("STATE_DELTA", delta=list(event.patch), metadata=about)

    def _say(self, text: str) -> Iterator[RunEvent]:
        if not self._message_id:
            yield from self._close_parts()
            # The position in the answer, so that later runs and snapshots use the same id.
            self._message_id = f"{self._response_id}-{self._text.length - len(text)}"
            yield _event("TEXT_MESSAGE_START", messageId=self._message_id, role="assistant")
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": self._message_id, "delta": text}

    def _think(self, event: ev.Thinking) -> Iterator[RunEvent]:
        text = event.content
        if not event.is_delta and self._thoughts and text.startswith(self._thoughts):
            # A joined response repeats all its thoughts so far.
            text = text.removeprefix(self._thoughts).lstrip("\n")
        elif not event.is_delta:
            yield from self._close_parts()
        if not text:
            return
        if not self._thought_id:
            yield from self._close_parts()
            self._thoughts += "\n\n" if self._thoughts else ""
            self._thought_id = f"{self._response_id}-thought-{len(self._thoughts)}"
            yield _event("REASONING_START", messageId=self._thought_id)
            yield _event("REASONING_MESSAGE_START", messageId=self._thought_id, role="reasoning")
        self._thoughts += text
        yield {"type": "REASONING_MESSAGE_CONTENT", "messageId": self._thought_id, "delta": text}

    def _call(self, call: uamp.ToolCallData) -> Iterator[RunEvent]:
        if call.id in self._shown:
            return
        self._shown.add(call.id)
        parent = self._message_id or None
        yield from self._close_parts()
        self._calls.append(call.id)
        yield _event(
            "TOOL_CALL_START", toolCallId=call.id, toolCallName=call.name, parentMessageId=parent
        )
        yield _event("TOOL_CALL_ARGS", toolCallId=call.id, delta=call.arguments)
        yield _event("TOOL_CALL_END", toolCallId=call.id)
        if call.name == _DELEGATE:
            self._subagents.append(call.id)
            yield _event(
                "SUBAGENT_STARTED",
                subagentRunId=call.id,
                name=_agent_of(call),
                parentToolCallId=call.id,
            )

    def _result(self, result: uamp.ToolResultData) -> Iterator[RunEvent]:
        if result.call_id in self._calls:
            self._calls.remove(result.call_id)
        elif result.call_id in self._shown:
            return
        if result.call_id in self._subagents:
            self._subagents.remove(result.call_id)
            ended = {"message": result.result} if result.is_error else {}
            kind = "SUBAGENT_ERROR" if ended else "SUBAGENT_FINISHED"
            yield _event(kind, subagentRunId=result.call_id, **ended)
        yield _event(
            "TOOL_CALL_RESULT",
            messageId=f"result-{result.call_id}",
            toolCallId=result.call_id,
            content=result.result,
            role="tool",
            metadata={"isError": True} if result.is_error else None,
        )

    def _progress(self, event: ev.Progress) -> Iterator[RunEvent]:
        """Yield a step of a plan, or the progress of a long call."""
        step = event.message
        if event.target == "tool" and event.target_id is not None:
            yield _event(
                "ACTIVITY_SNAPSHOT",
                messageId=f"progress-{event.target_id}",
                activityType="PROGRESS",
                content=event_content(event),
                replace=True,
            )
        elif event.target == "response" and step is not None:
            is_open, begins = step in self._steps, event.stage == "in_progress"
            if begins and not is_open:
                self._steps.append(step)
                yield _event("STEP_STARTED", stepName=step)
            elif is_open and not begins:
                self._steps.remove(step)
                yield _event("STEP_FINISHED", stepName=step)

    # --- The end ---

    def _close_parts(self) -> Iterator[RunEvent]:
        if self._message_id:
            yield _event("TEXT_MESSAGE_END", messageId=self._message_id)
        if self._thought_id:
            yield _event("REASONING_MESSAGE_END", messageId=self._thought_id)
            yield _event("REASONING_END", messageId=self._thought_id)
        self._message_id = self._thought_id = ""

    def _close(self) -> Iterator[RunEvent]:
        yield from self._close_parts()
        while self._subagents:
            ended = "The run ended before this agent did."
            yield _event("SUBAGENT_ERROR", subagentRunId=self._subagents.pop(), message=ended)
        while self._steps:
            yield _event("STEP_FINISHED", stepName=self._steps.pop())

    def _done(self, output: ev.ResponseOutput, signature: str | None) -> Iterator[RunEvent]:
        """Yield the calls not yet sent, including those left to the client, and the end."""
        leaves_calls = output.finish_reason == "tool_calls"
        if self._completes:
            for item in output.output:
                if isinstance(item, uamp.ToolCallContent):
                    yield from self._call(item.tool_call)
                elif isinstance(item, uamp.ToolResultContent):
                    yield from self._result(item.tool_result)
        elif leaves_calls:
            for call in _without_result(output.output):
                yield from self._call(call)
        pending = self._calls if leaves_calls else []
        outcome = {"type": "success"} | ({"pendingToolCallIds": pending} if pending else {})
        yield from self.finish(outcome, output.usage, signature=signature)

    def finish(
        self,
        outcome: dict[str, Any],
        usage: uamp.UsageStats | None = None,
        *,
        signature: str | None = None,
    ) -> Iterator[RunEvent]:
        """Yield the end of a run with its outcome; the metadata name the response and its cost."""
        yield from self._close()
        self.has_ended = True
        cost = None if usage is None or usage.cost is None else msgspec.to_builtins(usage.cost)
        about = {
            "responseId": self._response_id or None,
            "digitalSourceType": AI_MADE,
            "signature": signature,
            "cost": cost,
        }
        yield _event(
            "RUN_FINISHED",
            threadId=self._run.thread_id,
            runId=self._run.run_id,
            outcome=outcome,
            usage=_usage(usage),
            metadata={name: value for name, value in about.items() if value is not None} or None,
        )


def _event(type_: str, **members: Any) -> RunEvent:
    return {"type": type_} | {name: value for name, value in members.items() if value is not None}


def _agent_of(call: uamp.ToolCallData) -> str:
    """Return the agent that a call delegates to; its arguments come from a model."""
    try:
        order = msgspec.json.decode(call.arguments)
    except msgspec.DecodeError:
        order = None
    agent = order.get("agent") if isinstance(order, dict) else None
    return agent if isinstance(agent, str) and agent else call.name


def _without_result(output: Sequence[uamp.ContentItem]) -> list[uamp.ToolCallData]:
    results = [item.tool_result for item in output if isinstance(item, uamp.ToolResultContent)]
    answered_ids = {result.call_id for result in results}
    calls = [item.tool_call for item in output if isinstance(item, uamp.ToolCallContent)]
    return [call for call in calls if call.id not in answered_ids]


def _usage(used: uamp.UsageStats | None) -> list[dict[str, int]] | None:
    """Return the token usage of a run; None if unknown."""
    if used is None:
        return None
    tokens = {
        "inputTokens": used.input_tokens,
        "outputTokens": used.output_tokens,
        "totalTokens": used.total_tokens,
        "cachedInputTokens": used.cached_tokens,
        "cacheWriteInputTokens": used.cache_write_tokens,
    }
    return [{name: count for name, count in tokens.items() if count is not None}]
