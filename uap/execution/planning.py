"""The prompts that ask a model for a plan, and the parser of plans (UAP §5.4).

A plan that cannot be carried out is rejected as a whole; steps are never dropped silently.
"""

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

import msgspec

from uap.state import PlanStep
from upp import ErrorCode, Tool, Turn, UPPError

logger = logging.getLogger(__name__)

PLAN_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string", "description": "A short name, unique in the plan"},
                    "description": {"type": "string", "description": "What is done in this step"},
                    "tool": {"type": ["string", "null"], "description": "The tool it needs"},
                    "dependsOn": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "The ids of the steps that have to be done before",
                    },
                },
                "required": ["id", "description", "tool", "dependsOn"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["steps"],
    "additionalProperties": False,
}


_OBJECT = re.compile(r'\{(?=\s*")')
"""The beginning of an object with members."""

ANSWER_PROMPT = "There is nothing left to do: give the whole answer to what was asked."


class PlanStepError(Exception):
    """The cause of the UPPError of a plan whose step failed.

    `calls` are the ids of the step's tool calls.
    """

    def __init__(self, message: str, *, calls: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.calls = frozenset(calls)


class _PlannedStep(msgspec.Struct, rename="camel"):
    description: str
    id: str | int | None = None
    tool: str | None = None
    depends_on: tuple[str | int, ...] | None = None


class _Planned(msgspec.Struct):
    steps: tuple[_PlannedStep, ...]


def planning_prompt(
    tools: Sequence[Tool], *, limit: float, schema: Mapping[str, Any] | None
) -> str:
    """Return the prompt for a plan, with `schema` if the API cannot enforce it."""
    instructions = (
        "Make a plan for what was asked, and do nothing else yet: call no tool and give no answer. "
        "Reply with a JSON object whose `steps` are the steps, each with an `id`, a `description`, "
        "the name of the `tool` that it needs, if any, and `dependsOn`, the ids of the steps that "
        "have to be done before."
    )
    lines = [instructions]
    if tools:
        lines.append("Tools: " + "; ".join(f"{tool.name}: {tool.description}" for tool in tools))
    if limit != float("inf"):
        lines.append(f"Use at most {limit} steps.")
    if schema is not None:
        lines.append(f"The JSON Schema of the reply: {json.dumps(schema)}")
    return "\n".join(lines)


def replanning_prompt(plan: Sequence[PlanStep], failed: PlanStep, reason: str) -> str:
    """Return the text before the prompt for a plan after a failed step."""
    completed = [f"{step.id} ({step.description})" for step in plan if step.status == "completed"]
    remaining = [f"{step.id} ({step.description})" for step in plan if step.status == "pending"]
    return (
        f"Step {failed.id} of the plan has failed: {reason}\n"
        f"Done so far: {', '.join(completed) or 'nothing'}. "
        f"Not begun: {', '.join(remaining) or 'nothing'}.\n"
        "Make a new plan with the steps that are left to do; they may depend on those done so far."
    )


def unreadable_prompt(problem: str) -> str:
    """Return the text before the prompt for a plan after an unreadable one."""
    return f"That plan cannot be carried out. {problem}"


def step_prompt(step: PlanStep, *, last: bool) -> str:
    """Return the prompt for one step of the plan."""
    tool = f" Use the tool {step.tool}." if step.tool else ""
    ending = (
        "It is the last step: end with the whole answer to what was asked."
        if last
        else "Do this step only, and say in a few words what came of it."
    )
    return f"Now do step {step.id} of the plan: {step.description}.{tool} {ending}"


def read_plan(
    turn: Turn, *, completed: Sequence[PlanStep] = (), limit: float, provider: str
) -> tuple[PlanStep, ...]:
    """Parse the plan in a reply: completed steps, then the new steps in a valid order.

    A new step with the id of a completed one is the same step if its description is equal;
    otherwise it replaces it. Only the first `limit` new steps are kept. Raises UPPError
    INVALID_RESPONSE if the reply contains no plan or an impossible one.
    """
    steps = [_to_step(planned) for planned in _planned(turn, provider)]
    completed_steps = {(step.id, step.description) for step in completed}
    steps = [step for step in steps if (step.id, step.description) not in completed_steps]
    ids = {step.id for step in steps}
    if len(ids) < len(steps):
        raise _invalid("Two steps have the same id.", provider)
    unchanged = [step for step in completed if step.id not in ids]
    ordered = in_order(steps, after=(step.id for step in unchanged), provider=provider)
    if len(ordered) > limit:
        logger.warning("A plan of %d steps was cut to %s", len(ordered), limit)
        ordered = ordered[: int(limit)]
    return (*unchanged, *ordered)


def in_order(
    steps: Iterable[PlanStep], *, after: Iterable[str], provider: str
) -> tuple[PlanStep, ...]:
    """Sort steps so that each follows its dependencies; `after` are the ids of completed ones.

    Raises UPPError INVALID_RESPONSE if they depend on each other in a cycle or on a missing step.
    """
    waiting, available, ordered = list(steps), set(after), list[PlanStep]()
    while waiting:
        ready = next((step for step in waiting if available.issuperset(step.depends_on)), None)
        if ready is None:
            names = ", ".join(step.id for step in waiting)
            raise _invalid(f"These steps depend on steps that never run: {names}.", provider)
        waiting.remove(ready)
        ordered.append(ready)
        available.add(ready.id)
    return tuple(ordered)


def _planned(turn: Turn, provider: str) -> tuple[_PlannedStep, ...]:
    """Return the steps in a reply, from the first plan among the objects in its text."""
    objects = _json_objects(turn.response.text) if turn.data is None else [turn.data]
    problem = "there is no object in it."
    for candidate in objects:
        try:
            return msgspec.convert(candidate, type=_Planned).steps
        except msgspec.ValidationError as error:
            problem = str(error)
    raise _invalid(f"The reply holds no plan: {problem}", provider)


def _json_objects(text: str) -> Iterator[Any]:
    """Yield the JSON objects in a text, which may have other text around them."""
    decoder = json.JSONDecoder()
    end = 0
    while start := _OBJECT.search(text, end):
        try:
            value, end = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            end = start.end()
        else:
            yield value


def _to_step(planned: _PlannedStep) -> PlanStep:
    return PlanStep(
        id=str(uuid4()) if planned.id is None else str(planned.id),
        description=planned.description,
        depends_on=tuple(str(name) for name in planned.depends_on or ()),
        status="pending",
        tool=planned.tool,
    )


def _invalid(message: str, provider: str) -> UPPError:
    return UPPError(
        f"Failed to parse execution plan. {message}",
        code=ErrorCode.INVALID_RESPONSE,
        provider=provider,
    )
