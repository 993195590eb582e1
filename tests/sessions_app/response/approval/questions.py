"""An agent that asks for approval, and answers to its questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_app.models import Agent
from tests.client import TERMINAL, Frame, UampClient, output_text
from tests.sessions_app.turn.team_tools import order

if TYPE_CHECKING:
    from pathlib import Path

TOOLS = [
    "tests.sessions_app.turn.team_tools.STEPS",
    "tests.sessions_app.turn.team_tools.GATED",
    "tests.sessions_app.response.step_tools.note",
]


def asker(name: str = "asker", **fields: Any) -> Agent:
    """Make an agent whose tool `steps` has to be allowed."""
    defaults: dict[str, Any] = {
        "is_public": True,
        "options": {"script": "doer"},
        "tools": ["steps"],
        "approvals": ["steps"],
    }
    return Agent.objects.create(name=name, **{**defaults, **fields})


def task(journal: Path) -> str:
    """Return the agent's order: one step."""
    steps = {"steps": 1, "pause": 0, "journal": str(journal)}
    return order(call="steps", arguments=steps)


def asked_of(client: UampClient) -> Frame:
    """Wait for the question and return it."""
    return client.until("tool.approval_required")[-1]


def approve(client: UampClient, question: Frame, **fields: Any) -> str:
    """Answer a question; allow it by default."""
    answer = {"call_id": question["call_id"], "response_id": question["response_id"]}
    return client.send("tool.approve", **{**answer, **fields})


def answer_text(client: UampClient) -> str:
    """Wait for the end of the answer and return its text."""
    end = client.until(*TERMINAL)[-1]
    assert end["type"] == "response.done", end
    return output_text(end)


def errors(frames: list[Frame]) -> list[tuple[str, str]]:
    """Return the codes of refusals, and the events that they answer."""
    return [
        (f["error"]["code"], f["error"]["details"]["event_id"])
        for f in frames
        if f["type"] == "session.error"
    ]
