"""Plan first, then carry out one step after another (UAP §5.4)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

import msgspec

from uap.execution.context import ExecutionContext, ExecutionStrategy
from uap.execution.planning import (
    ANSWER_PROMPT,
    PLAN_SCHEMA,
    PlanStepError,
    in_order,
    planning_prompt,
    read_plan,
    replanning_prompt,
    step_prompt,
    unreadable_prompt,
)
from uap.execution.steps import Steps, run_steps, stream_steps
from uap.result import ExecutionResult
from uap.state import PlanStatus, PlanStep
from uap.stream import AgentStreamResult
from upp import ErrorCode, Model, ToolExecution, UPPError
from upp.conversation.messages import unanswered_calls

_HOPELESS = {
    ErrorCode.AUTHENTICATION_FAILED,
    ErrorCode.CANCELLED,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.MODEL_NOT_FOUND,
    ErrorCode.QUOTA_EXCEEDED,
}
"""Errors that a new plan cannot fix."""

PLANS_IN_A_ROW = 3
"""After this many unreadable plans in a row, the model is not asked for another."""


class PlanOptions(TypedDict, total=False):
    """The options of `plan()`, for callers that collect them beforehand."""

    max_plan_steps: float
    allow_replan: bool
    plan_schema: Mapping[str, Any]


def plan(
    *,
    max_plan_steps: float = math.inf,
    allow_replan: bool = True,
    plan_schema: Mapping[str, Any] = PLAN_SCHEMA,
) -> ExecutionStrategy:
    """Return the strategy in which the model writes a plan and carries it out.

    The first step makes the plan. Each plan step then takes one step per inference, with its tools,
    until the model makes no more calls. If a plan leaves nothing to do, the model is asked for the
    answer. A plan step fails if the inference fails, or if the tool it names was called and always
    failed. With `allow_replan`, the model then makes a new plan for the remaining work; otherwise
    the run fails, as it does if a tool failed and no new plan can be read. Both errors have a
    PlanStepError as their cause. A plan that is unreadable or impossible is requested again in the
    same way; the third one in a row fails the run. Only the first `max_plan_steps` of a plan are
    kept. `plan_schema` describes an object with `steps` like those of the default, and possibly
    more. A run without an input continues an unfinished plan.
    """
    return _Plan(max_plan_steps=max_plan_steps, allow_replan=allow_replan, plan_schema=plan_schema)


@dataclass(frozen=True, kw_only=True)
class _Plan:
    max_plan_steps: float
    allow_replan: bool
    plan_schema: Mapping[str, Any]
    name: str = "plan"

    async def execute(self, context: ExecutionContext) -> ExecutionResult:
        return await run_steps(context, self._body(context.llm.model), None)

    def stream(self, context: ExecutionContext) -> AgentStreamResult:
        return stream_steps(context, self._body(context.llm.model))

    def _body(self, model: Model) -> Any:
        return lambda steps: _Run(self, steps, model).go()


@dataclass
class _Run:
    """One run of a plan; its progress is in the state."""

    options: _Plan
    steps: Steps
    model: Model
    reason: str = "it was not finished."
    has_answered: bool = True
    executed: list[ToolExecution] = field(default_factory=list)
    # The failed calls of the step that requires a new plan.
    failed_calls: tuple[str, ...] = ()

    @property
    def plan(self) -> tuple[PlanStep, ...]:
        return self.steps.state.plan or ()

    async def go(self) -> None:
        if self.steps.resumes and any(step.status != "completed" for step in self.plan):
            in_order(self.plan, after=(), provider=self.model.provider)
            stop = False
        elif self.steps.finished:
            return
        else:
            stop = await self._make_plan(None)
        while not stop:
            failed = self._first("failed")
            current = self._first("in_progress") or self._first("pending")
            if failed is not None:
                stop = await self._make_plan(failed)
            elif current is not None:
                stop = await self._do(current)
            elif not self.has_answered:
                stop = await self._answer()
            else:
                return

    async def _make_plan(self, failed: PlanStep | None) -> bool:
        phase = "replanning" if failed else "planning"
        is_enforced = self.model.capabilities.structured_output
        schema, limit = self.options.plan_schema, self.options.max_plan_steps
        prompt = planning_prompt(
            self.steps.tools, limit=limit, schema=None if is_enforced else schema
        )
        completed: tuple[PlanStep, ...] = ()
        if failed is not None:
            prompt = f"{replanning_prompt(self.plan, failed, self.reason)}\n{prompt}"
            completed = tuple(step for step in self.plan if step.status == "completed")
        question = prompt
        attempts = 0
        while True:
            attempts += 1
            await self.steps.begin(phase=phase)
            turn = await self.steps.consult(
                question, phase="plan", structure=schema if is_enforced else None
            )
            try:
                new_plan = read_plan(
                    turn, completed=completed, limit=limit, provider=self.model.provider
                )
            except UPPError as error:
                if not self.options.allow_replan or attempts == PLANS_IN_A_ROW:
                    if self.failed_calls:
                        raise error from PlanStepError(error.message, calls=self.failed_calls)
                    raise
                question = f"{unreadable_prompt(error.message)}\n{prompt}"
                if await self.steps.end(phase=phase, plan=self.plan):
                    return True
            else:
                break
        self.steps.state = self.steps.state.with_plan(new_plan)
        self.has_answered = False
        return await self.steps.end(phase=phase, plan=new_plan)

    async def _do(self, step: PlanStep) -> bool:
        """Take one step for a plan step; return whether to stop."""
        is_first = step.status == "pending"
        step = self._mark(step, "in_progress")
        await self.steps.begin(phase="execute", planStep=step)
        if is_first:
            self.executed.clear()
            self.steps.say(step_prompt(step, last=step.id == self.plan[-1].id), phase="plan_step")
        try:
            executed = await self.steps.act()
        except UPPError as error:
            if unanswered_calls(self.steps.state.messages):
                # The model has answered: an approval, a limit or an abort ended the run.
                raise
            self._mark(step, "failed")
            if error.code in _HOPELESS or not self.options.allow_replan:
                raise
            self.reason = f"the model could not be asked ({error.code})."
            self.failed_calls = ()
            return False
        self.has_answered = True
        self.executed += executed
        if unanswered_calls(self.steps.state.messages):
            # The developer wants to run the calls, so the step is not over.
            await self.steps.end(phase="execute", plan=self.plan)
            return True
        if not executed:
            failure = self._failure(step)
            self._mark(step, "failed" if failure else "completed")
            executions = self._executions_of(step) if failure else ()
            self.failed_calls = tuple(execution.tool_call_id for execution in executions)
            if failure and not self.options.allow_replan:
                message = f"Step {step.id} of the plan failed: {failure}"
                raise UPPError(
                    message, code=ErrorCode.INVALID_RESPONSE, provider=self.model.provider
                ) from PlanStepError(message, calls=self.failed_calls)
            self.reason = failure or ""
        return await self.steps.end(phase="execute", plan=self.plan)

    async def _answer(self) -> bool:
        """Have the model answer if its plan leaves nothing to do; return whether to stop."""
        self.steps.say(ANSWER_PROMPT, phase="plan_step")
        self.has_answered = True
        while True:
            await self.steps.begin(phase="execute")
            executed = await self.steps.act()
            if await self.steps.end(phase="execute", plan=self.plan) or not executed:
                return True

    def _failure(self, step: PlanStep) -> str | None:
        """Return why a step failed, if its tool was called and never succeeded."""
        executions = self._executions_of(step)
        if executions and all(execution.is_error for execution in executions):
            return f"{step.tool}: {executions[-1].result}"
        return None

    def _executions_of(self, step: PlanStep) -> list[ToolExecution]:
        return [execution for execution in self.executed if execution.tool_name == step.tool]

    def _first(self, status: PlanStatus) -> PlanStep | None:
        return next((step for step in self.plan if step.status == status), None)

    def _mark(self, step: PlanStep, status: PlanStatus) -> PlanStep:
        marked = msgspec.structs.replace(step, status=status)
        self.steps.state = self.steps.state.with_plan(
            [marked if planned.id == step.id else planned for planned in self.plan]
        )
        return marked
