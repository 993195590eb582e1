"""Agents that delegate work, and the work that they delegate."""

from __future__ import annotations

from typing import Any

from agents_app.models import Agent
from tests.client import Frame, UampClient, output_text
from tests.sessions_app.turn.team_tools import order


def doer(name: str, *delegates: str, tools: tuple[str, ...] = (), **fields: Any) -> Agent:
    """Make an agent that follows orders in JSON."""
    defaults: dict[str, Any] = {"is_public": True, "options": {"script": "doer"}}
    return Agent.objects.create(
        name=name, delegates=list(delegates), tools=list(tools), **{**defaults, **fields}
    )


def task_for(agent: str, task: str, *attachments: str) -> str:
    """Return the order to give a task to another agent."""
    arguments = {"agent": agent, "task": task, "attachments": list(attachments)}
    return order(call="delegate", arguments=arguments)


def answer_frames(client: UampClient, agent: str, text: str) -> list[Frame]:
    """Ask an agent in a session of its own and return the frames to the end."""
    created = client.create_session(agent=agent)
    return client.answer(text, session_id=created["session_id"])


def answer_text(frames: list[Frame]) -> str:
    """Return the text of the answer that ended."""
    assert frames[-1]["type"] == "response.done", frames[-1]
    return output_text(frames[-1])
