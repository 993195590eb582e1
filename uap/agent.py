"""`agent()`: a model and its tools, working on a task (UAP §4).

(input, state) -> (turn, new state). An agent keeps nothing between calls; everything it knows comes
in with the state and goes out with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Required, TypedDict
from uuid import uuid4

from msgspec import UnsetType

from uap.checkpoints import Checkpointer, CheckpointStore, check_session_id
from uap.execution.context import ExecutionContext, ExecutionStrategy
from uap.execution.loop import loop
from uap.middleware import Middleware, MiddlewareContext, run_through
from uap.result import GenerateResult
from uap.state import AgentState
from uap.strategy import AgentStrategy
from uap.stream import AgentStreamResult, Emit, follow
from uap.subagents import current_round, run_as_subagent
from uap.tool_order import check_dependencies
from upp import (
    InferenceInput,
    LLMInstance,
    Model,
    ProviderConfig,
    Tool,
    ToolResultMessage,
    ToolUseStrategy,
    Turn,
    llm,
)
from upp import Middleware as LLMMiddleware
from upp.conversation.ids import new_id
from upp.conversation.messages import to_message


class AgentOptions(TypedDict, total=False):
    """The options of `agent()` (UAP §4.2), for callers that collect them beforehand."""

    model: Required[Model]
    execution: ExecutionStrategy | None
    middleware: Sequence[Middleware]
    strategy: AgentStrategy | None
    checkpoints: CheckpointStore | None
    session_id: str | None
    system: str | None
    tools: Sequence[Tool]
    structure: Mapping[str, Any] | None
    params: Mapping[str, Any] | None
    config: ProviderConfig | None
    tool_strategy: ToolUseStrategy | None
    llm_middleware: Sequence[LLMMiddleware]


def agent(
    *,
    model: Model,
    execution: ExecutionStrategy | None = None,
    middleware: Sequence[Middleware] = (),
    strategy: AgentStrategy | None = None,
    checkpoints: CheckpointStore | None = None,
    session_id: str | None = None,
    system: str | None = None,
    tools: Sequence[Tool] = (),
    structure: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    config: ProviderConfig | None = None,
    tool_strategy: ToolUseStrategy | None = None,
    llm_middleware: Sequence[LLMMiddleware] = (),
) -> "Agent":
    """Return an agent (UAP §4.1).

    `execution` defaults to `loop()`. `session_id` names the agent's checkpoints and is generated if
    there is a store but no id. The options from `system` on are those of `upp.llm()`;
    `llm_middleware` is its `middleware`. Nothing is limited by default, including
    `tool_strategy.max_iterations` (UAP §2.4). Raises UPPError INVALID_REQUEST if the API lacks a
    requested feature, two tools share a name, or tools depend on each other in a cycle or on a
    missing tool; ValueError if `session_id` is not a non-empty string.
    """
    check_dependencies(tools)
    if session_id is not None:
        check_session_id(session_id)
    tool_strategy = tool_strategy or ToolUseStrategy()
    rounds = tool_strategy.max_iterations
    if checkpoints is not None and session_id is None:
        session_id = str(uuid4())
    return Agent(
        id=new_id(),
        llm=llm(
            model=model,
            system=system,
            tools=tools,
            structure=structure,
            params=params,
            config=config,
            tool_strategy=tool_strategy,
            max_iterations=None if isinstance(rounds, UnsetType) else rounds,
            middleware=llm_middleware,
        ),
        execution=execution or loop(),
        middleware=tuple(middleware),
        strategy=strategy or AgentStrategy(),
        checkpoints=checkpoints,
        session_id=session_id,
    )


@dataclass(frozen=True, kw_only=True)
class Agent:
    """A configured agent, made by `agent()` (UAP §4.3).

    Inputs are text, content blocks or messages. Without an input (None), a run continues where the
    state ends: calls without results are run again under their ids before the model is called. If
    the state ends in a complete answer of the model, that answer is returned without calling a
    model. If a state has open calls and there is a new input, the calls first get error results,
    which vendors require.
    """

    id: str
    llm: LLMInstance
    execution: ExecutionStrategy
    middleware: tuple[Middleware, ...]
    strategy: AgentStrategy
    checkpoints: CheckpointStore | None
    session_id: str | None

    @property
    def model(self) -> Model:
        """The model."""
        return self.llm.model

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools."""
        return self.llm.tools

    @property
    def system(self) -> str | None:
        """The system prompt."""
        return self.llm.system

    async def generate(self, message: InferenceInput | None, state: AgentState) -> GenerateResult:
        """Work on a message; return the turn and the new state (UAP §4.4).

        The turn covers all steps: messages, tool executions and usage. Raises errors that no hook
        or middleware recovers from: UPPError of the model, TooManyRoundsError, errors of hooks.
        """
        return await self._run(message, state, None)

    def stream(self, message: InferenceInput | None, state: AgentState) -> AgentStreamResult:
        """Like `generate`, but live (UAP §4.5); the result is the same (UAP §11.3)."""
        return AgentStreamResult(lambda emit: self._run(message, state, emit))

    async def ask(self, message: InferenceInput, state: AgentState) -> GenerateResult:
        """Answer in a conversation (UAP §4.6).

        The returned state contains the message and the answer once each: pass it to the next `ask`.
        """
        return await self.generate(message, state)

    async def query(self, message: InferenceInput) -> Turn:
        """Answer without a conversation (UAP §4.7) and discard the state.

        With a store, the steps are saved under a separate session id (UAP §12.3), which is deleted
        when the query ends; checkpoints of the agent's conversation are not affected.
        """
        session_id = None if self.checkpoints is None else str(uuid4())
        alone = replace(self, session_id=session_id)
        try:
            return (await alone.generate(message, AgentState.initial())).turn
        finally:
            await Checkpointer(self.checkpoints, session_id).forget()

    async def _run(
        self, message: InferenceInput | None, state: AgentState, emit: Emit | None
    ) -> GenerateResult:
        input_message = None if message is None else to_message(message)
        context = MiddlewareContext(agent=self, input=input_message, state=state)

        async def run(emit: Emit | None) -> GenerateResult:
            return await run_through(
                self.middleware, context, lambda latest: self._execute(latest, emit)
            )

        parent = current_round.get()
        if parent is None:
            return await run(emit)
        prompt = (
            ""
            if input_message is None or isinstance(input_message, ToolResultMessage)
            else input_message.text
        )
        return await run_as_subagent(parent, prompt=prompt, state=state, emit=emit, run=run)

    async def _execute(
        self, middleware_context: MiddlewareContext, emit: Emit | None
    ) -> GenerateResult:
        checkpointer = Checkpointer(self.checkpoints, self.session_id)
        state = middleware_context.state.with_metadata("agentId", self.id)
        if self.session_id is not None:
            state = state.with_metadata("sessionId", self.session_id)
        context = ExecutionContext(
            agent=self,
            llm=self.llm,
            input=middleware_context.input,
            state=state,
            tools=self.tools,
            strategy=self.strategy,
            save=checkpointer.save,
        )
        if emit is None:
            result = await self.execution.execute(context)
        else:
            result = await follow(self.execution.stream(context), emit)
        # A strategy that saves nothing itself still gets its final state saved.
        await checkpointer.save(result.state)
        return result
