"""The building blocks of strategies (UAP §5, §10, §11).

A step is one inference and the tool round that it requests (react reasons once before that). All
messages are in the state and all usage is in the turn. Hooks, events and checkpoints happen here,
so that they are the same for every strategy, with and without a stream.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from uap.execution.context import ExecutionContext
from uap.result import GenerateResult
from uap.state import AgentState
from uap.strategy import call_hook
from uap.stream import AgentStreamEvent, AgentStreamResult, Emit, UAPEvent, UAPEventType
from uap.subagents import ToolRound, current_round
from uap.tool_order import order_of_calls
from upp import (
    AssistantMessage,
    ErrorCode,
    LLMInstance,
    Message,
    StreamEvent,
    TextBlock,
    TokenUsage,
    Tool,
    ToolCall,
    ToolExecution,
    ToolResult,
    ToolResultMessage,
    TooManyRoundsError,
    Turn,
    UserMessage,
)
from upp.conversation.messages import unanswered_calls
from upp.model import structured_data

Body = Callable[["Steps"], Awaitable[None]]


class Steps:
    """One run, step by step.

    For each step, a strategy calls `begin`, then `act` (after `consult`, to reason first), then
    `end`. `state` is the state so far, `number` that of the current step, from 1.
    """

    def __init__(self, context: ExecutionContext, emit: Emit | None) -> None:
        self._context = context
        self._emit = emit
        self._emit_model = None if emit is None else _from_model(emit)
        self._hooks = context.strategy
        # The model's middleware sees each inference and tool round, and shares one state across
        # them.
        self._llm = replace(context.llm.with_options(max_iterations=0), middleware_state={})
        self._run = _RunPart(context.state.messages)
        self._step = _RunPart(context.state.messages)
        self._rounds = 0
        self.number = 0
        self.state = context.state
        if not self.finished:
            self.state = context.state.with_messages(_opening(context)).with_step(0)

    @property
    def resumes(self) -> bool:
        """Whether the run continues where an earlier one ended."""
        return self._context.input is None

    @property
    def finished(self) -> bool:
        """Whether there is no input and the state ends in a complete answer.

        There is then nothing to ask a model: a strategy that returns at once gives the existing
        answer. An answer that was cut off has `{"uap": {"unfinished": true}}` in its metadata and
        is not complete.
        """
        tail = self._context.state.messages[-1:]
        if not self.resumes or not tail or not isinstance(tail[0], AssistantMessage):
            return False
        marks = tail[0].metadata.get("uap") or {}
        is_partial = marks.get("synthetic") or marks.get("unfinished")
        return not is_partial and not tail[0].has_tool_calls

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The agent's tools."""
        return self._context.tools

    async def begin(self, **data: Any) -> None:
        """Begin a step, with `data` for its event. Runs any calls left open before the run."""
        self.number += 1
        self.state = self.state.with_step(self.number)
        self._adopt(await call_hook(self._hooks.on_step_start, self.number, self.state))
        await self._send("step_start", data)
        if self.number == 1:
            await self._use_tools(unanswered_calls(self.state.messages))

    async def consult(
        self, prompt: str, *, phase: str, structure: Mapping[str, Any] | None = None
    ) -> Turn:
        """Ask the model something for the strategy's own purposes, without letting it act.

        Prompt and reply stay in the state, marked with `{"uap": {"synthetic": true, "phase": ...}}`
        in their metadata. Calls in the reply are dropped; a reply without text is not kept at all.
        With a structure, the model gets no tools: if a call stands for the structure (as with
        Anthropic), it could call another tool instead.
        """
        tools = self._llm.tools if structure is None else ()
        llm = self._llm.with_options(structure=structure, tools=tools)
        mark = {"uap": {"synthetic": True, "phase": phase}}
        question = UserMessage(content=(TextBlock(text=prompt),), metadata=mark)
        turn = await self._infer(llm, (*self.state.messages, question))
        reply = msgspec.structs.replace(
            turn.response, tool_calls=(), metadata={**turn.response.metadata, **mark}
        )
        if reply.text:
            self.state = self.state.with_messages((question, *turn.messages[:-1], reply))
        return msgspec.structs.replace(turn, response=reply)

    def say(self, prompt: str, *, phase: str) -> None:
        """Append a prompt of the strategy, marked like those of `consult`."""
        mark = {"uap": {"synthetic": True, "phase": phase}}
        message = UserMessage(content=(TextBlock(text=prompt),), metadata=mark)
        self.state = self.state.with_message(message)

    async def reason(self, reasoning: str) -> None:
        """Record and emit the model's reasoning."""
        self.state = self.state.with_reasoning(reasoning)
        await call_hook(self._hooks.on_reason, self.number, reasoning)
        await self._send("reasoning", {"reasoning": reasoning})

    async def act(self, *, tools: bool = True) -> tuple[ToolExecution, ...]:
        """Call the model, run the tools that it calls and return the executions.

        Without `tools`, calls stay unanswered. Raises TooManyRoundsError after the last round
        allowed by the tool strategy.
        """
        turn = await self._infer(self._llm, self.state.messages)
        # The model's middleware may have inserted messages before the answer.
        self.state = self.state.with_messages((*turn.messages[:-1], turn.response))
        calls = turn.response.tool_calls
        if not tools or not self._llm.tools or turn.data is not None:
            return ()
        return await self._use_tools(calls)

    async def end(self, **data: Any) -> bool:
        """End the step and return whether the run should stop.

        Runs the hook, the event, the checkpoint and then the stop condition, in this order.
        """
        step, self._step = self._step, _RunPart(self.state.messages)
        turn = step.turn(self.state.messages)
        result = GenerateResult(turn=turn, state=self.state)
        self._adopt(await call_hook(self._hooks.on_step_end, self.number, result))
        await self._send("step_end", {"usage": turn.usage, **data})
        await self._context.save(self.state)
        return bool(await call_hook(self._hooks.stop_condition, self.state))

    def result(self) -> GenerateResult:
        """Return the result of the run, with a turn that covers all of its steps.

        If the run was `finished` from the start, the turn has the existing answer and no usage.
        """
        if self.finished and not self.number:
            return GenerateResult(turn=self._existing_turn(), state=self.state)
        return GenerateResult(turn=self._run.turn(self.state.messages), state=self.state)

    def _existing_turn(self) -> Turn:
        (answer,) = (
            message for message in self.state.messages[-1:] if isinstance(message, AssistantMessage)
        )
        return Turn(
            messages=(),
            response=answer,
            tool_executions=(),
            usage=TokenUsage(),
            cycles=0,
            stop_reason="end_turn",
            data=structured_data(answer, self._llm.structure),
        )

    def _adopt(self, returned: Any) -> None:
        """Adopt the metadata of a state returned by a hook; ignore anything but a state."""
        if not isinstance(returned, AgentState):
            return
        unchanged = replace(returned, id=self.state.id, metadata=self.state.metadata)
        if unchanged != self.state:
            raise ValueError("A hook may change only the metadata of a state.")
        self.state = returned

    async def _infer(self, llm: LLMInstance, messages: Sequence[Message]) -> Turn:
        if self._emit_model is None:
            turn = await llm.generate(messages)
        else:
            turn = await llm.stream(messages).relay(self._emit_model)
        self._run.add(turn)
        self._step.add(turn)
        return turn

    async def _use_tools(self, calls: Sequence[ToolCall]) -> tuple[ToolExecution, ...]:
        limit = self._context.llm.max_iterations
        if not calls or limit == 0:
            return ()
        if self._rounds == limit:
            await call_hook(self._llm.tool_strategy.on_max_iterations, limit)
            raise TooManyRoundsError(
                f"The model requested more than {limit} tool rounds.",
                code=ErrorCode.INVALID_REQUEST,
                provider=self._llm.model.provider,
            )
        self._rounds += 1
        await call_hook(self._hooks.on_act, self.number, calls)
        await self._send("action", {"toolCalls": calls})
        round_ = ToolRound(agent_id=self._context.agent.id, step=self.number, emit=self._emit)
        token = current_round.set(round_)
        try:
            answer, executions = await self._llm.run_tools(
                calls,
                after=order_of_calls(self._llm.tools, calls),
                emit=self._emit_model,
            )
        finally:
            current_round.reset(token)
        self.state = self.state.with_message(answer)
        if round_.traces:
            self.state = self.state.with_subagent_traces(round_.traces)
        for key, value in round_.metadata.items():
            self.state = self.state.with_metadata(key, value)
        self._run.executions += executions
        self._step.executions += executions
        await call_hook(self._hooks.on_observe, self.number, executions)
        await self._send("observation", {"observations": executions})
        return executions

    async def _send(self, kind: UAPEventType, data: dict[str, Any]) -> None:
        if self._emit is not None:
            event = UAPEvent(
                type=kind, step=self.number, agent_id=self._context.agent.id, data=data
            )
            await self._emit(AgentStreamEvent(source="uap", uap=event))


async def run_steps(context: ExecutionContext, body: Body, emit: Emit | None) -> GenerateResult:
    """Run a strategy's body with its hooks (UAP §10.1) and return the result.

    An error is raised unless `on_error` returns a result.
    """
    steps = Steps(context, emit)
    hooks = context.strategy
    try:
        await body(steps)
        result = steps.result()
        await call_hook(hooks.on_complete, result)
    except Exception as error:
        recovered = await call_hook(hooks.on_error, error, steps.state)
        if not isinstance(recovered, GenerateResult):
            raise
        return recovered
    return result


def stream_steps(context: ExecutionContext, body: Body) -> AgentStreamResult:
    """Return the run of a strategy's body as a stream."""
    return AgentStreamResult(lambda emit: run_steps(context, body, emit))


def _from_model(emit: Emit) -> Callable[[StreamEvent], Awaitable[None]]:
    """Return an emit function for events of the model."""

    def emit_model_event(event: StreamEvent) -> Awaitable[None]:
        return emit(AgentStreamEvent(source="upp", upp=event))

    return emit_model_event


class _RunPart:
    """The usage and executions since some point of a run."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._before = len(messages)
        self._last: Turn | None = None
        self._usage = TokenUsage()
        self._cycles = 0
        self.executions: tuple[ToolExecution, ...] = ()

    def add(self, turn: Turn) -> None:
        """Count an inference."""
        self._last = turn
        self._usage += turn.usage
        self._cycles += turn.cycles

    def turn(self, messages: Sequence[Message]) -> Turn:
        """Return the turn of this part, whose messages are the last of a conversation."""
        if self._last is None:
            raise RuntimeError("A strategy requested a turn before it called the model.")
        return msgspec.structs.replace(
            self._last,
            messages=tuple(messages[self._before :]),
            tool_executions=self.executions,
            usage=self._usage,
            cycles=self._cycles,
        )


def _opening(context: ExecutionContext) -> tuple[Message, ...]:
    """Return the messages that the run adds before the model is called.

    Vendors reject calls without results, so interrupted calls are answered before a new input.
    """
    new_input = context.input
    if new_input is None:
        return ()
    if isinstance(new_input, ToolResultMessage):
        return (new_input,)
    open_calls = unanswered_calls(context.state.messages)
    if not open_calls:
        return (new_input,)
    results = tuple(
        ToolResult(
            tool_call_id=call.tool_call_id, result="The call was interrupted.", is_error=True
        )
        for call in open_calls
    )
    return (ToolResultMessage(results=results), new_input)
