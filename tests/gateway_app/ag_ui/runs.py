"""Inputs of runs, and runs of AG-UI whose order of events is checked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person


def run_input(text: str, *, thread: str = "t1", run: str = "r1", **members: Any) -> dict[str, Any]:
    """Return the input of a run of one message."""
    messages = [{"id": "m1", "role": "user", "content": text}]
    return {"threadId": thread, "runId": run, "messages": messages, **members}


def run(
    web: httpx.Client,
    agent: str,
    body: dict[str, Any],
    who: Person | None = None,
    *,
    path: str = "",
    more: dict[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Run an agent and return the events, whose order is checked."""
    headers = {**({} if who is None else who.headers), **(more or {})}
    answer = web.post(f"/agents/{agent}/agui{path}", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line[:6] == "data: "]
    check_order(events)
    return events


def kinds_of(events: list[dict[str, Any]]) -> list[str]:
    """Return the types of events, without what a message consists of."""
    return [event["type"] for event in events if not event["type"].endswith(("_CONTENT", "_ARGS"))]


def the(events: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """Return the one event of a type."""
    (event_of_kind,) = [event for event in events if event["type"] == kind]
    return event_of_kind


def check_order(events: list[dict[str, Any]]) -> None:
    """Check the rules of a run: what begins ends once, nothing is outside, nothing overlaps."""
    assert events[0]["type"] == "RUN_STARTED"
    assert events[-1]["type"] in {"RUN_FINISHED", "RUN_ERROR"}
    opened: dict[str, str] = {}
    for event in events[1:-1]:
        kind: str = event["type"]
        ids = ("messageId", "toolCallId", "stepName", "subagentRunId")
        name = next((event[member] for member in ids if event.get(member)), "")
        stem = kind.rpartition("_")[0]
        if kind.endswith(("_START", "_STARTED")):
            assert (stem, name) not in opened.items()
            opened[stem] = name
        elif kind.endswith(("_CONTENT", "_ARGS")):
            assert opened[stem] == name
            assert event["delta"]
        elif kind.endswith(("_END", "_FINISHED", "SUBAGENT_ERROR")):
            assert opened.pop(stem) == name
    assert opened == {}


def text_of(events: list[dict[str, Any]]) -> str:
    """Return the text of the messages of a run."""
    return "".join(e["delta"] for e in events if e["type"] == "TEXT_MESSAGE_CONTENT")
