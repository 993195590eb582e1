"""Plans and steps, and readers of their events."""

import json
from collections.abc import Mapping
from typing import Any

from tests.uap.agents import requests
from uap import Agent, AgentState, AgentStreamEvent
from upp import ErrorCode, UPPError, UserMessage

START = AgentState.initial()
DOWN = UPPError("secret words", code=ErrorCode.PROVIDER_ERROR)


def a_plan(*steps: Mapping[str, Any]) -> str:
    return json.dumps({"steps": steps})


def step(name: str, *after: str, tool: str | None = None) -> dict[str, Any]:
    return {"id": name, "description": f"do {name}", "dependsOn": after, "tool": tool}


def statuses(of: AgentState) -> dict[str, str]:
    return {plan_step.id: plan_step.status for plan_step in of.plan or ()}


def details(events: list[AgentStreamEvent]) -> list[str]:
    """Return the borders of steps, as `start 2 execute a` and `end 2 a=completed`."""
    lines = []
    for event in (event.uap for event in events if event.uap is not None):
        if event.type == "step_start":
            step_ids = [event.data["planStep"].id] if "planStep" in event.data else []
            lines.append(" ".join(["start", str(event.step), event.data["phase"], *step_ids]))
        if event.type == "step_end":
            states = [f"{plan_step.id}={plan_step.status}" for plan_step in event.data["plan"]]
            lines.append(" ".join(["end", str(event.step), *states]))
    return lines


def prompts(of: Agent) -> list[str]:
    """Return the last message of each request."""
    return [
        last.text if isinstance(last := request.messages[-1], UserMessage) else "results"
        for request in requests(of)
    ]
