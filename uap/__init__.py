"""Unified Agent Protocol 1.1: agents over the Unified Provider Protocol (UAP §1).

The law: UAP says when a model is asked and what is kept; what is said, called and streamed are the
types of `upp`, used as they are and imported from there.
"""

from uap.agent import Agent, agent
from uap.checkpoints import (
    CheckpointMetadata,
    CheckpointStore,
    Cipher,
    file_checkpoints,
    memory_checkpoints,
)
from uap.middleware import Middleware, MiddlewareContext
from uap.result import ExecutionResult, GenerateResult
from uap.state import (
    VERSION,
    AgentState,
    InvalidState,
    PlanStep,
    SubagentExecutionTrace,
    ToolExecutionTrace,
)
from uap.strategy import AgentStrategy
from uap.stream import AgentStreamEvent, AgentStreamResult, UAPEvent, UAPEventType
from uap.thread_tree import ThreadNode, ThreadTree

__all__ = [
    "VERSION",
    "Agent",
    "AgentState",
    "AgentStrategy",
    "AgentStreamEvent",
    "AgentStreamResult",
    "CheckpointMetadata",
    "CheckpointStore",
    "Cipher",
    "ExecutionResult",
    "GenerateResult",
    "InvalidState",
    "Middleware",
    "MiddlewareContext",
    "PlanStep",
    "SubagentExecutionTrace",
    "ThreadNode",
    "ThreadTree",
    "ToolExecutionTrace",
    "UAPEvent",
    "UAPEventType",
    "agent",
    "file_checkpoints",
    "memory_checkpoints",
]
