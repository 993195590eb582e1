"""ReAct: reason, act, observe, repeat (UAP §5.3)."""

import math
from dataclasses import dataclass
from typing import TypedDict

from uap.execution.context import ExecutionContext, ExecutionStrategy
from uap.execution.steps import Steps, run_steps, stream_steps
from uap.result import ExecutionResult
from uap.stream import AgentStreamResult
from upp import AssistantMessage

REASONING_PROMPT = (
    "Before you do anything, think. In a few sentences: what is known so far, what is still "
    "missing, and what should be done next, with which of your tools? Only write down your "
    "thoughts now; call no tool and give no answer yet."
)

ACTING_PROMPT = (
    "Now do what you have concluded: call the tools that are needed, or give the answer if "
    "nothing is missing."
)


class ReactOptions(TypedDict, total=False):
    """The options of `react()`, for callers that collect them beforehand."""

    max_steps: float
    reasoning_prompt: str


def react(
    *, max_steps: float = math.inf, reasoning_prompt: str = REASONING_PROMPT
) -> ExecutionStrategy:
    """Return the strategy in which the model writes down its reasoning before each action.

    A step is one reasoning and one action with its tools. A run ends without an error after
    `max_steps`.
    """
    return _React(max_steps=max_steps, reasoning_prompt=reasoning_prompt)


@dataclass(frozen=True, kw_only=True)
class _React:
    max_steps: float
    reasoning_prompt: str
    name: str = "react"

    async def execute(self, context: ExecutionContext) -> ExecutionResult:
        return await run_steps(context, self._body, None)

    def stream(self, context: ExecutionContext) -> AgentStreamResult:
        return stream_steps(context, self._body)

    async def _body(self, steps: Steps) -> None:
        while not steps.finished:
            await steps.begin(phase="reasoning")
            thought = await steps.consult(self.reasoning_prompt, phase="reason")
            await steps.reason(_reasoning(thought.response))
            steps.say(ACTING_PROMPT, phase="act")
            acted = await steps.act()
            if await steps.end() or not acted or steps.number >= self.max_steps:
                return


def _reasoning(reply: AssistantMessage) -> str:
    """Return the model's text, or its thinking if there is no text."""
    if reply.text.strip():
        return reply.text
    return "\n\n".join(block.text for block in reply.reasoning)
