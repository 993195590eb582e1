"""`agent()`: a model with its tools, made to work on a task (UAP §4).

(input, state) -> (turn, new state). An agent keeps nothing between two calls; all that it
knows comes in with the state and goes out with it.
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
    """The options of `agent()` (UAP §4.2), for callers that keep them before there is an agent."""

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

    `execution` is `loop()` when not given. `session_id` names the agent's checkpoints and is made
    up when there is a store and no id. The options from `system` on are those of `upp.llm()`;
    `llm_middleware` is its `middleware`. Nothing is limited unless it is asked for: also
    `tool_strategy.max_iterations` has no limit when it is not given (UAP §2.4). Raises UPPError
    INVALID_REQUEST when the API lacks what is asked for, two tools share a name, or tools depend on
    each other in a circle or on a tool that is not there; ValueError for a `session_id` that is no
    text or an empty one.
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
    """A configured agent; `agent()` makes one (UAP §4.3).

    Inputs are texts, content blocks or messages. Without an input (None) a run goes on where the
    state ends: calls without results are run again under their ids, and then the model is asked. A
    state that ends in the model's whole answer is finished: its answer comes back and no model is
    asked. A state with open calls and a new input gets error results for them first, since vendors
    refuse it otherwise.
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
        """Work on a message and return the turn and the new state (UAP §4.4).

        The turn is about all steps: what was said, executed and used. Raises what no hook and no
        middleware recovers from: UPPError of the model, TooManyRoundsError, errors of hooks.
        """
        return await self._run(message, state, None)

    def stream(self, message: InferenceInput | None, state: AgentState) -> AgentStreamResult:
        """Like `generate`, but live (UAP §4.5); the result is the same (UAP §11.3)."""
        return AgentStreamResult(lambda emit: self._run(message, state, emit))

    async def ask(self, message: InferenceInput, state: AgentState) -> GenerateResult:
        """Answer in a conversation (UAP §4.6).

        The returned state holds the message and the answer, each once: hand it to the next `ask`.
        """
        return await self.generate(message, state)

    async def query(self, message: InferenceInput) -> Turn:
        """Answer without a conversation (UAP §4.7); the state is thrown away.

        With a store the steps are kept under a session id of their own (UAP §12.3), which is
        forgotten when the query ends: the checkpoints of the agent's conversation stay as they are.
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
        given = None if message is None else to_message(message)
        context = MiddlewareContext(agent=self, input=given, state=state)

        async def run(emit: Emit | None) -> GenerateResult:
            return await run_through(
                self.middleware, context, lambda latest: self._execute(latest, emit)
            )

        parent = current_round.get()
        if parent is None:
            return await run(emit)
        prompt = "" if given is None or isinstance(given, ToolResultMessage) else given.text
        return await run_as_subagent(parent, prompt=prompt, state=state, emit=emit, run=run)

    async def _execute(self, given: MiddlewareContext, emit: Emit | None) -> GenerateResult:
        checkpointer = Checkpointer(self.checkpoints, self.session_id)
        state = given.state.with_metadata("agentId", self.id)
        if self.session_id is not None:
            state = state.with_metadata("sessionId", self.session_id)
        context = ExecutionContext(
            agent=self,
            llm=self.llm,
            input=given.input,
            state=state,
            tools=self.tools,
            strategy=self.strategy,
            save=checkpointer.save,
        )
        if emit is None:
            result = await self.execution.execute(context)
        else:
            result = await follow(self.execution.stream(context), emit)
        # A strategy that saves nothing itself still leaves its last state behind.
        await checkpointer.save(result.state)
        return result
