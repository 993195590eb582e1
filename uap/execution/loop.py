"""The simplest strategy: call the model, run the tools, repeat (UAP §5.2)."""

import math
from dataclasses import dataclass
from typing import TypedDict

from uap.execution.context import ExecutionContext, ExecutionStrategy
from uap.execution.steps import Steps, run_steps, stream_steps
from uap.result import ExecutionResult
from uap.stream import AgentStreamResult


class LoopOptions(TypedDict, total=False):
    """The options of `loop()`, for callers that collect them beforehand."""

    max_iterations: float


def loop(*, max_iterations: float = math.inf) -> ExecutionStrategy:
    """Return the strategy that ends with the first answer without calls.

    `max_iterations` is the maximum number of tool rounds. After the last one, the run ends without
    an error; with 0, calls are returned unexecuted.
    """
    return _Loop(max_iterations=max_iterations)


@dataclass(frozen=True, kw_only=True)
class _Loop:
    max_iterations: float
    name: str = "loop"

    async def execute(self, context: ExecutionContext) -> ExecutionResult:
        return await run_steps(context, self._body, None)

    def stream(self, context: ExecutionContext) -> AgentStreamResult:
        return stream_steps(context, self._body)

    async def _body(self, steps: Steps) -> None:
        while not steps.finished:
            await steps.begin()
            acted = await steps.act(tools=self.max_iterations > 0)
            if await steps.end() or not acted or steps.number >= self.max_iterations:
                return
