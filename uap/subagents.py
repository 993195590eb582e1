"""Sub-agents: agents that run inside a tool of another agent (UAP §8).

A sub-agent is a plain tool whose `run` calls an agent; there is no conversion from agent to tool.
An agent that runs inside a tool call finds its parent in the context, sends its events to the
parent's stream and leaves a trace in the parent's state.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

import msgspec

from uap.result import GenerateResult
from uap.state import AgentState, SubagentExecutionTrace, ToolExecutionTrace, frozen_json
from uap.stream import AgentStreamEvent, Emit, UAPEvent
from upp import ToolExecution, current_tool_call


@dataclass(frozen=True, kw_only=True)
class ToolRound:
    """A round of an agent's tool calls, as seen from inside its tools.

    `traces` collects the runs of sub-agents, descendants before their parents, and `metadata` the
    values set by tools.
    """

    agent_id: str
    step: int
    emit: Emit | None
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    traces: list[SubagentExecutionTrace] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)


current_round: ContextVar[ToolRound | None] = ContextVar("current_round", default=None)
"""The round of the running tool; None outside of tools."""


def set_metadata(key: str, value: Any) -> None:
    """Set one value in the metadata of the current run, for its next state.

    The stop condition sees it after the step (UAP §10.2), and it is part of the result and the
    checkpoint. Inside a sub-agent, it applies to the sub-agent. Raises RuntimeError outside of a
    tool, and TypeError if JSON cannot represent the value.
    """
    round_ = current_round.get()
    if round_ is None:
        raise RuntimeError("set_metadata() only works in tools that an agent runs.")
    round_.metadata[key] = frozen_json(value)


async def run_as_subagent(
    parent: ToolRound,
    *,
    prompt: str,
    state: AgentState,
    emit: Emit | None,
    run: Callable[[Emit | None], Awaitable[GenerateResult]],
) -> GenerateResult:
    """Run an agent inside a parent's tool; its events also go to the parent (UAP §8.4).

    `subagent_start` precedes the run and `subagent_end` follows it, even after a failure. Raises
    errors of `run`.
    """
    call = current_tool_call.get()
    subagent_id, start = str(uuid4()), _now()
    # A sync tool may run an agent on another loop, and streams must not be used from other threads.
    emit_to_parent = parent.emit if parent.loop is asyncio.get_running_loop() else None

    async def report(
        kind: Literal["subagent_start", "subagent_event", "subagent_end"], **data: Any
    ) -> None:
        if emit_to_parent is None:
            return
        names = {
            "subagentId": subagent_id,
            "subagentType": call.tool_name,
            "parentToolCallId": call.tool_call_id,
        }
        event = UAPEvent(
            type=kind, step=parent.step, agent_id=parent.agent_id, data={**names, **data}
        )
        await emit_to_parent(AgentStreamEvent(source="uap", uap=event))

    async def forward(event: AgentStreamEvent) -> None:
        if emit is not None:
            await emit(event)
        await report("subagent_event", innerEvent=event)

    async def finish(*, success: bool, **outcome: Any) -> None:
        trace = SubagentExecutionTrace(
            subagent_id=subagent_id,
            subagent_type=call.tool_name,
            parent_tool_call_id=call.tool_call_id,
            prompt=prompt,
            start_time=start,
            end_time=_now(),
            success=success,
            **outcome,
        )
        parent.traces.append(trace)
        reported = {_CAMEL.get(name, name): value for name, value in outcome.items()}
        await report("subagent_end", timestamp=trace.end_time, success=success, **reported)

    await report("subagent_start", prompt=prompt, timestamp=start)
    # Only tools start sub-agents, so an agent run by a hook of the inner agent has no parent.
    token = current_round.set(None)
    try:
        result = await run(None if emit is None and emit_to_parent is None else forward)
    except asyncio.CancelledError:
        # A tool may set a time limit for its sub-agent and continue without it.
        await finish(success=False, error="The run was cancelled.")
        raise
    except Exception as error:
        await finish(success=False, error=str(error) or type(error).__name__)
        raise
    finally:
        current_round.reset(token)
    earlier_ids = {trace.subagent_id for trace in state.subagent_traces}
    parent.traces.extend(
        trace for trace in result.state.subagent_traces if trace.subagent_id not in earlier_ids
    )
    await finish(
        success=True,
        result=result.turn.response.text,
        tool_executions=tuple(_traced(execution) for execution in result.turn.tool_executions),
        usage=result.turn.usage,
    )
    return result


_CAMEL = {"tool_executions": "toolExecutions"}


def _traced(execution: ToolExecution) -> ToolExecutionTrace:
    result = execution.result
    return ToolExecutionTrace(
        tool_name=execution.tool_name,
        tool_call_id=execution.tool_call_id,
        arguments=execution.arguments,
        result=result
        if isinstance(result, str)
        else msgspec.json.encode(result, enc_hook=str).decode(),
        is_error=execution.is_error,
        duration=execution.duration,
    )


def _now() -> int:
    return time.time_ns() // 1_000_000
