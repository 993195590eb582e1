"""The parts that strategies are made of (UAP §5, §10, §11).

One step is one inference and the round of tools that it asks for (react thinks once
before). All that was said is in the state, all that was used is in the turn, and hooks, events and
checkpoints happen here, so that they are the same for every strategy and with and without a stream.
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

    A strategy calls, for each step: `begin`, then `act` (after `consult`, to think first), then
    `end`. `state` is the state so far, `number` that of the step, from 1.
    """

    def __init__(self, context: ExecutionContext, emit: Emit | None) -> None:
        self._context = context
        self._emit = emit
        self._emit_model = None if emit is None else _from_model(emit)
        self._hooks = context.strategy
        # The model's middleware sees inferences and tools one by one, and has one state for them.
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
        """Whether the run goes on where an earlier one ended."""
        return self._context.input is None

    @property
    def finished(self) -> bool:
        """Whether there was no input and the state ends in a whole answer.

        There is nothing to ask a model then: a strategy that returns at once gives the answer that
        is there. An answer that was cut off says `{"uap": {"unfinished": true}}` in its metadata,
        and is no whole one.
        """
        last = self._context.state.messages[-1:]
        if not self.resumes or not last or not isinstance(last[0], AssistantMessage):
            return False
        marks = last[0].metadata.get("uap") or {}
        own = marks.get("synthetic") or marks.get("unfinished")
        return not own and not last[0].has_tool_calls

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The agent's tools."""
        return self._context.tools

    async def begin(self, **data: Any) -> None:
        """Begin a step; `data` is for its event. Calls left open before the run are run first."""
        self.number += 1
        self.state = self.state.with_step(self.number)
        self._adopt(await call_hook(self._hooks.on_step_start, self.number, self.state))
        await self._send("step_start", data)
        if self.number == 1:
            await self._use_tools(unanswered_calls(self.state.messages))

    async def consult(
        self, prompt: str, *, phase: str, structure: Mapping[str, Any] | None = None
    ) -> Turn:
        """Ask the model something for the strategy's own sake, and let it not act.

        Prompt and reply stay in the state, marked `{"uap": {"synthetic": true, "phase": ...}}` in
        their metadata. Calls in the reply are dropped; a reply without text is not kept at all.
        With a structure the model is given no tools: where a call stands for the structure (as with
        Anthropic) it could call another one instead.
        """
        tools = self._llm.tools if structure is None else ()
        llm = self._llm.with_options(structure=structure, tools=tools)
        mark = {"uap": {"synthetic": True, "phase": phase}}
        asked = UserMessage(content=(TextBlock(text=prompt),), metadata=mark)
        turn = await self._infer(llm, (*self.state.messages, asked))
        reply = msgspec.structs.replace(
            turn.response, tool_calls=(), metadata={**turn.response.metadata, **mark}
        )
        if reply.text:
            self.state = self.state.with_messages((asked, *turn.messages[:-1], reply))
        return msgspec.structs.replace(turn, response=reply)

    def say(self, prompt: str, *, phase: str) -> None:
        """Append a prompt of the strategy's own, marked as those of `consult`."""
        mark = {"uap": {"synthetic": True, "phase": phase}}
        asked = UserMessage(content=(TextBlock(text=prompt),), metadata=mark)
        self.state = self.state.with_message(asked)

    async def reason(self, reasoning: str) -> None:
        """Keep and emit what the model reasoned."""
        self.state = self.state.with_reasoning(reasoning)
        await call_hook(self._hooks.on_reason, self.number, reasoning)
        await self._send("reasoning", {"reasoning": reasoning})

    async def act(self, *, tools: bool = True) -> tuple[ToolExecution, ...]:
        """Ask the model, run the tools that it asks for and return what was executed.

        Without `tools` the calls stay unanswered. Raises TooManyRoundsError for a round more than
        the tool strategy allows.
        """
        turn = await self._infer(self._llm, self.state.messages)
        # Middleware of the model may have put messages before the answer.
        self.state = self.state.with_messages((*turn.messages[:-1], turn.response))
        calls = turn.response.tool_calls
        if not tools or not self._llm.tools or turn.data is not None:
            return ()
        return await self._use_tools(calls)

    async def end(self, **data: Any) -> bool:
        """End the step, and return whether the run should stop.

        The hook, the event, the checkpoint and then the stop condition, in this order.
        """
        step, self._step = self._step, _RunPart(self.state.messages)
        turn = step.turn(self.state.messages)
        result = GenerateResult(turn=turn, state=self.state)
        self._adopt(await call_hook(self._hooks.on_step_end, self.number, result))
        await self._send("step_end", {"usage": turn.usage, **data})
        await self._context.save(self.state)
        return bool(await call_hook(self._hooks.stop_condition, self.state))

    def result(self) -> GenerateResult:
        """Return what the run came to, with the turn over all of its steps.

        The turn of a run that was `finished` before has the answer that is there, and nothing used.
        """
        if self.finished and not self.number:
            return GenerateResult(turn=self._kept(), state=self.state)
        return GenerateResult(turn=self._run.turn(self.state.messages), state=self.state)

    def _kept(self) -> Turn:
        (answer,) = (one for one in self.state.messages[-1:] if isinstance(one, AssistantMessage))
        return Turn(
            messages=(),
            response=answer,
            tool_executions=(),
            usage=TokenUsage(),
            cycles=0,
            stop_reason="end_turn",
            data=structured_data(answer, self._llm.structure),
        )

    def _adopt(self, given: Any) -> None:
        """Take the metadata of the state that a hook returned; anything else is no state."""
        if not isinstance(given, AgentState):
            return
        same = replace(given, id=self.state.id, metadata=self.state.metadata)
        if same != self.state:
            raise ValueError("A hook may change the metadata of a state, and nothing else in it.")
        self.state = given

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
                f"The model asked for more than {limit} tool rounds.",
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
    """Run a strategy's body and return its result, with the hooks around it (UAP §10.1).

    An error is raised unless `on_error` gives a result for it.
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
    """Return an emit for events of the model."""

    def wrapped(event: StreamEvent) -> Awaitable[None]:
        return emit(AgentStreamEvent(source="upp", upp=event))

    return wrapped


class _RunPart:
    """The usage and the executions since some point of a run."""

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
            raise RuntimeError("A strategy asked for a turn before it asked the model.")
        return msgspec.structs.replace(
            self._last,
            messages=tuple(messages[self._before :]),
            tool_executions=self.executions,
            usage=self._usage,
            cycles=self._cycles,
        )


def _opening(context: ExecutionContext) -> tuple[Message, ...]:
    """Return what the run adds to the conversation before the model is asked.

    Vendors refuse calls without results, so what was interrupted is answered before a new input.
    """
    given = context.input
    if given is None:
        return ()
    if isinstance(given, ToolResultMessage):
        return (given,)
    open_calls = unanswered_calls(context.state.messages)
    if not open_calls:
        return (given,)
    results = tuple(
        ToolResult(
            tool_call_id=call.tool_call_id, result="The call was interrupted.", is_error=True
        )
        for call in open_calls
    )
    return (ToolResultMessage(results=results), given)
