"""Runs the calls of one answer (UPP-1.3 §11).

Calls run in parallel and results keep their order. Errors of a call are returned to the model; only
UPPError CANCELLED and errors of an approval end the generation. Results are copied as JSON, so that
an object the tool keeps cannot change the conversation.
"""

import asyncio
import copy
import inspect
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from upp.conversation.messages import ToolResultMessage
from upp.errors import ErrorCode, UPPError
from upp.json_values import plain
from upp.middleware.chain import Chain, maybe_await
from upp.stream import Emit, EventDelta, StreamEvent
from upp.tools import (
    BeforeCallResult,
    Tool,
    ToolCall,
    ToolExecution,
    ToolResult,
    ToolUseStrategy,
    current_tool_call,
)


@dataclass(frozen=True, kw_only=True)
class ToolRunner:
    """Runs tool calls with the given tools, strategy, middleware and event receiver."""

    tools: Sequence[Tool]
    strategy: ToolUseStrategy
    chain: Chain
    emit: Emit

    async def run(
        self, calls: Sequence[ToolCall], after: Mapping[int, Collection[int]]
    ) -> tuple[ToolResultMessage, tuple[ToolExecution, ...]]:
        """Run calls; see `LLMInstance.run_tools`."""
        executions: list[ToolExecution] = []
        tasks: list[asyncio.Task[ToolResult]] = []

        async def execute(call: ToolCall, index: int) -> ToolResult:
            if index in after:
                await asyncio.wait([tasks[position] for position in after[index]])
                await self._announce(call, index)
            return await self._execute(call, index, executions)

        # When the first call runs, a reader already knows which calls run alongside it.
        for index, call in enumerate(calls):
            if index not in after:
                await self._announce(call, index)
        try:
            async with asyncio.TaskGroup() as group:
                tasks += [
                    group.create_task(execute(call, index)) for index, call in enumerate(calls)
                ]
        except BaseExceptionGroup as failures:
            # Only errors that end the generation get here; the first one wins.
            first = failures.exceptions[0]
            raise first from first.__cause__
        results = tuple(task.result() for task in tasks)
        return ToolResultMessage(results=results), tuple(executions)

    async def _announce(self, call: ToolCall, index: int) -> None:
        token = current_tool_call.set(call)
        try:
            await self.emit(_event("tool_execution_start", call, index))
        finally:
            current_tool_call.reset(token)

    async def _execute(
        self, call: ToolCall, index: int, executions: list[ToolExecution]
    ) -> ToolResult:
        started_at = time.monotonic()
        # Hooks and approvals are part of the call too.
        current_tool_call.set(call)
        attempt = _Attempt(call, call.arguments)
        result, is_error = await self._outcome(attempt)
        execution = ToolExecution(
            tool_name=call.tool_name,
            tool_call_id=call.tool_call_id,
            arguments=attempt.arguments,
            result=result,
            is_error=is_error,
            duration=(time.monotonic() - started_at) * 1000,
            approved=attempt.approved,
        )
        await self.chain.tool_result(execution)
        executions.append(execution)
        await self.emit(_event("tool_execution_end", call, index, result, is_error=is_error))
        return ToolResult(tool_call_id=call.tool_call_id, result=result, is_error=is_error)

    async def _outcome(self, attempt: "_Attempt") -> tuple[Any, bool]:
        """Return the result and whether it is an error."""
        call = attempt.call
        tool = next((tool for tool in self.tools if tool.name == call.tool_name), None)
        if tool is None:
            return f"Tool '{call.tool_name}' not found", True
        if call.malformed is not None:
            return "The arguments are not a JSON object.", True
        proceeds, is_error = await self._reported(tool, attempt, self._proceeds(tool, attempt))
        if is_error:
            return proceeds, True
        if not proceeds:
            return "Tool execution skipped", True
        if tool.approval is not None:
            # An error of an approval is not a result: it ends the generation.
            attempt.approved = bool(await maybe_await(tool.approval(attempt.arguments)))
            if not attempt.approved:
                return "The call was not approved.", True
        return await self._reported(tool, attempt, self._run(tool, attempt))

    async def _proceeds(self, tool: Tool, attempt: "_Attempt") -> bool:
        strategy = self.strategy
        if strategy.on_tool_call is not None:
            await maybe_await(strategy.on_tool_call(tool, attempt.arguments))
        await self.chain.tool_call(attempt.call)
        if strategy.on_before_call is None:
            return True
        decided = await maybe_await(strategy.on_before_call(tool, attempt.arguments))
        if not isinstance(decided, BeforeCallResult):
            return bool(decided)
        if decided.params is not None:
            attempt.arguments = decided.params
        return decided.proceed

    async def _run(self, tool: Tool, attempt: "_Attempt") -> Any:
        arguments = attempt.arguments
        current_tool_call.set(msgspec.structs.replace(attempt.call, arguments=arguments))
        # A tool may modify its arguments, but the call is part of the conversation.
        own_arguments = copy.deepcopy(arguments)
        if inspect.iscoroutinefunction(tool.run):
            result = await tool.run(own_arguments)
        else:
            result = await maybe_await(
                await asyncio.to_thread(_run_in_thread, tool.run, own_arguments)
            )
        if self.strategy.on_after_call is not None:
            replacement = await maybe_await(self.strategy.on_after_call(tool, arguments, result))
            if replacement is not None:
                result = replacement.result
        return _as_json(result)

    async def _reported(
        self, tool: Tool, attempt: "_Attempt", work: Awaitable[Any]
    ) -> tuple[Any, bool]:
        """Return the result of the work, or its error as a message for the model (UPP-1.3 §5.6)."""
        try:
            return await work, False
        except asyncio.CancelledError as cancelled:
            # Something that the tool awaited was cancelled, unless the tool itself is.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            error: Exception = RuntimeError("The work that the tool waited for was cancelled.")
            error.__cause__ = cancelled
        except SystemExit as exit_request:
            error = _exit(exit_request)
        except UPPError as failed:
            if failed.code == ErrorCode.CANCELLED:
                raise
            error = failed
        except Exception as failed:  # noqa: BLE001 returned to the model
            error = failed
        if self.strategy.on_error is not None:
            await maybe_await(self.strategy.on_error(tool, attempt.arguments, error))
        if isinstance(error, UPPError):
            # A model inside the tool failed; its provider's message is not for the conversation.
            return f"The tool's own model failed: {error.code}", True
        # File names may contain characters that are invalid in text.
        return str(error).encode(errors="replace").decode() or type(error).__name__, True


def _run_in_thread(run: Callable[[dict[str, Any]], Any], arguments: dict[str, Any]) -> Any:
    try:
        return run(arguments)
    except StopIteration as error:
        # A future cannot hold StopIteration: awaiting the thread would hang forever.
        raise RuntimeError("StopIteration") from error
    except SystemExit as error:
        raise _exit(error) from error


def _exit(error: SystemExit) -> RuntimeError:
    """Return an error that does not end the program; tools are often built from commands."""
    return RuntimeError(f"The tool exited: {error.code}")


def _as_json(result: Any) -> Any:
    """Return a copy of a result as JSON values; raises TypeError if JSON cannot represent it."""
    try:
        return msgspec.json.decode(plain.encode(result))
    except TypeError as error:
        kind = type(result).__name__
        raise TypeError(f"The tool ran, but its result ({kind}) is not JSON: {error}") from error


@dataclass
class _Attempt:
    """A call in progress; hooks may change its arguments."""

    call: ToolCall
    arguments: dict[str, Any]
    approved: bool | None = None


def _event(
    kind: Literal["tool_execution_start", "tool_execution_end"],
    call: ToolCall,
    index: int,
    result: Any = None,
    *,
    is_error: bool | None = None,
) -> StreamEvent:
    delta = EventDelta(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        arguments_json=call.malformed or msgspec.json.encode(call.arguments).decode(),
        result=result,
        is_error=is_error,
        timestamp=time.time_ns() // 1_000_000,
    )
    return StreamEvent(type=kind, index=index, delta=delta)
