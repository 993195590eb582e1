"""The execution strategy named in an agent's row: loop, react or plan (UAP §5).

The same types check a strategy's options when they are saved and when they are used; unknown
options are rejected.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from uap.execution import ExecutionStrategy, loop, plan, react
from uap.execution.react import REASONING_PROMPT

MAX_STEPS = 32
"""The most tool rounds, and the most plan steps, in one answer."""


class _LoopOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    def strategy(self, _max_steps: int) -> ExecutionStrategy:
        return loop()


class _ReactOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reasoning_prompt: Annotated[str, msgspec.Meta(min_length=1)] = REASONING_PROMPT

    def strategy(self, _max_steps: int) -> ExecutionStrategy:
        return react(reasoning_prompt=self.reasoning_prompt)


class _PlanOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    max_plan_steps: Annotated[int, msgspec.Meta(ge=1, le=MAX_STEPS)] | None = None
    allow_replan: bool = True

    def strategy(self, max_steps: int) -> ExecutionStrategy:
        return plan(max_plan_steps=self.max_plan_steps or max_steps, allow_replan=self.allow_replan)


_KINDS: Mapping[str, type[_LoopOptions | _ReactOptions | _PlanOptions]] = {
    "loop": _LoopOptions,
    "react": _ReactOptions,
    "plan": _PlanOptions,
}


def make_strategy(name: str, options: Mapping[str, Any], *, max_steps: int) -> ExecutionStrategy:
    """Return the strategy with a name.

    Options of react: `reasoning_prompt`. Of plan: `max_plan_steps` (1-32, `max_steps` by default)
    and `allow_replan`. loop has none. Raises ValueError with a message for operators if the name is
    unknown or the options are invalid.
    """
    kind = _KINDS.get(name)
    if kind is None:
        raise ValueError(f"There is no strategy named {name!r}.")
    try:
        return msgspec.convert(options, kind).strategy(max_steps)
    except msgspec.ValidationError as error:
        raise ValueError(f"The strategy {name} does not accept this: {error}.") from error
