"""Execution strategies of agents, and building blocks for others (UAP §5)."""

from uap.execution.context import ExecutionContext, ExecutionStrategy
from uap.execution.loop import LoopOptions, loop
from uap.execution.plan import PlanOptions, plan
from uap.execution.planning import PLAN_SCHEMA, PlanStepError
from uap.execution.react import ReactOptions, react
from uap.execution.steps import Steps, run_steps, stream_steps
from uap.result import ExecutionResult

__all__ = [
    "PLAN_SCHEMA",
    "ExecutionContext",
    "ExecutionResult",
    "ExecutionStrategy",
    "LoopOptions",
    "PlanOptions",
    "PlanStepError",
    "ReactOptions",
    "Steps",
    "loop",
    "plan",
    "react",
    "run_steps",
    "stream_steps",
]
