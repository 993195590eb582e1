"""The result of an agent's run (UAP §4.4)."""

from dataclasses import dataclass

from uap.state import AgentState
from upp import Turn


@dataclass(frozen=True, kw_only=True)
class GenerateResult:
    """The turn that was produced, and the state after it."""

    turn: Turn
    state: AgentState


ExecutionResult = GenerateResult
"""The result of an execution strategy (UAP §5.1)."""
