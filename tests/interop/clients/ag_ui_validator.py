"""The official types of AG-UI and a validator of its streams: `ag_ui_validator.py ORIGIN KEY`."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
from ag_ui.core import Event, EventType  # type: ignore[import-not-found]  # not in .venv
from ag_ui_validate import create_validator  # type: ignore[import-not-found]  # not in .venv
from pydantic import TypeAdapter  # type: ignore[import-not-found,unused-ignore]  # not in .venv

ORIGIN, KEY = sys.argv[1:3]
HEADERS = {"Authorization": f"Bearer {KEY}"}
EVENTS = TypeAdapter(Event)
SEARCH = {"name": "search", "description": "Find", "parameters": {"type": "object"}}
RUNS: list[tuple[str, str, dict[str, Any]]] = [
    ("thinker", "", {}),
    ("echo", "", {}),
    ("tool-user", "", {"tools": [SEARCH]}),
    ("checklist", "", {"state": {"items": ["milk"]}}),
    ("checklist", "", {}),
    ("paid-echo", "", {}),
    ("fail", "", {}),
    ("report", "", {}),
    ("thinker", "/connect", {}),
    ("checklist", "/connect", {}),
    ("paid-echo", "/connect", {}),
    ("slow", "/connect", {}),
]


def events_of(http: httpx.Client, agent: str, path: str, more: dict[str, Any]) -> Iterator[Any]:
    """Yield the events of a run."""
    message = {"id": "m1", "role": "user", "content": "Hello there"}
    body = {"threadId": "t1", "runId": f"r-{agent}-{len(more)}", "messages": [message], **more}
    answer = http.post(f"/agents/{agent}/agui{path}", json=body).raise_for_status()
    for line in answer.text.splitlines():
        if line.startswith("data: "):
            yield json.loads(line[6:])


def checked(events: list[Any]) -> list[str]:
    """Return the errors and warnings for a stream; raises for what is no event of AG-UI."""
    validator = create_validator()
    for event in events:
        parsed_event = EVENTS.validate_python(event)
        if parsed_event.model_extra:
            raise ValueError(f"{event['type']} has {sorted(parsed_event.model_extra)} besides")
        validator.feed(event)
    validator.finalize()
    problems = [
        diagnostic for diagnostic in validator.report().diagnostics if diagnostic.severity != "info"
    ]
    return [
        f"{diagnostic.severity} {diagnostic.rule}: {diagnostic.message}" for diagnostic in problems
    ]


def command(agent: str) -> dict[str, Any]:
    """Return the summary of the validator's own command on a live address."""
    url = f"{ORIGIN}/agents/{agent}/agui"
    head = ["--header", f"Authorization: Bearer {KEY}"]
    done = subprocess.run(  # noqa: S603 the command of the package
        [sys.executable, "-m", "ag_ui_validate.cli", url, "--json", "--max-warnings", "0", *head],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    summary: dict[str, Any] = json.loads(done.stdout)["summary"]
    return {"code": done.returncode, "errors": summary["errors"], "warnings": summary["warnings"]}


with httpx.Client(base_url=ORIGIN, headers=HEADERS, timeout=60, trust_env=False) as client:
    streams = [list(events_of(client, *run)) for run in RUNS]
print(  # noqa: T201 it is read by the test
    json.dumps(
        {
            "found": [finding for stream in streams for finding in checked(stream)],
            "ends": [stream[-1]["type"] for stream in streams],
            "sent": sorted({event["type"] for stream in streams for event in stream}),
            "types": sorted(one.value for one in EventType),
            "commands": [command(agent) for agent in ("echo", "checklist", "thinker")],
        }
    )
)
