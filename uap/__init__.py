"""Unified Agent Protocol 1.1: agents over the Unified Provider Protocol (UAP §1).

UAP defines when a model is called and what is kept. Messages, calls and streams are the types of
`upp`, used unchanged and imported from there.

    bot = agent(model=provider("a-model"), tools=[search], execution=react(max_steps=20))
    result = await bot.ask("Where is the key?", AgentState.initial())
    result = await bot.ask("And the spare one?", result.state)

    async with bot.stream("Where else?", result.state) as stream:
        async for event in stream:
            ...
        result = await stream.result()

Strategies are in `uap.execution`, `logging()` is in `uap.middleware`. A sub-agent is a tool of the
developer whose `run` calls another agent.
"""

from uap.agent import Agent, AgentOptions, agent
from uap.checkpoints import (
    CheckpointMetadata,
    CheckpointStore,
    Cipher,
    file_checkpoints,
    memory_checkpoints,
)
from uap.execution import (
    ExecutionContext,
    ExecutionStrategy,
    LoopOptions,
    PlanOptions,
    PlanStepError,
    ReactOptions,
)
from uap.middleware import Middleware, MiddlewareContext
from uap.result import ExecutionResult, GenerateResult
from uap.state import (
    VERSION,
    AgentState,
    AgentStateJSON,
    InvalidState,
    PlanStep,
    SubagentExecutionTrace,
    ToolExecutionTrace,
)
from uap.strategy import AgentStrategy
from uap.stream import AgentStreamEvent, AgentStreamResult, UAPEvent, UAPEventType
from uap.subagents import set_metadata
from uap.thread_tree import ThreadNode, ThreadTree

__all__ = [
    "VERSION",
    "Agent",
    "AgentOptions",
    "AgentState",
    "AgentStateJSON",
    "AgentStrategy",
    "AgentStreamEvent",
    "AgentStreamResult",
    "CheckpointMetadata",
    "CheckpointStore",
    "Cipher",
    "ExecutionContext",
    "ExecutionResult",
    "ExecutionStrategy",
    "GenerateResult",
    "InvalidState",
    "LoopOptions",
    "Middleware",
    "MiddlewareContext",
    "PlanOptions",
    "PlanStep",
    "PlanStepError",
    "ReactOptions",
    "SubagentExecutionTrace",
    "ThreadNode",
    "ThreadTree",
    "ToolExecutionTrace",
    "UAPEvent",
    "UAPEventType",
    "agent",
    "file_checkpoints",
    "memory_checkpoints",
    "set_metadata",
]
