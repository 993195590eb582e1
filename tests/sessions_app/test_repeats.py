"""What is sent twice, or side by side, takes nothing from what was sent between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_app import scripts
from chat_app.models import Message
from sessions_app.models import Response
from tests.client import Frame, new_event, output_text, wait_until
from tests.house import quick_agent
from upp import LLMRequest, ToolResultMessage
from upp.providers.scripted import Call, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx
    import pytest

    from agents_app.selectors import AgentSpec
    from tests.house import Dial, Person

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("left", "right")]


async def both(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Call two tools at once, then say what they answered."""
    last = request.messages[-1]
    if isinstance(last, ToolResultMessage):
        yield Text(" and ".join(str(result.result) for result in last.results))
    else:
        for tool in request.tools:
            yield Call(name=tool.name, arguments={})


def test_a_late_repeat_of_a_turn_takes_no_input_of_the_next_one(dial: Dial, alice: Person) -> None:
    client = dial(alice)
    client.create_session(agent="echo")
    client.send("input.text", text="first")
    create = '{"type":"response.create","event_id":"evt_1"}'
    client.send_raw(create)
    client.until("response.done")
    client.send("input.text", text="second")
    client.send_raw(create)
    repeated = client.until("response.done")
    assert output_text(repeated[-1]) == "first"
    client.send("response.create")
    assert output_text(client.until("response.done")[-1]) == "second"
    texts = Message.objects.filter(role="user").order_by("seq").values_list("content", flat=True)
    assert list(texts) == ["first", "second"]


def calls_in(frames: list[Frame]) -> dict[str, str]:
    """Return the tool calls in frames: names and call ids."""
    return {f["name"]: f["call_id"] for f in frames if f["type"] == "tool.call"}


def test_a_batch_has_all_calls_that_were_made_at_once(
    web: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(scripts.SCRIPTS, "both", both)
    quick_agent("both", "both")
    config: dict[str, Any] = {"tools": TOOLS}
    for _ in range(5):
        events = [
            new_event("session.create", session=config, agent="both"),
            new_event("input.text", text="Go"),
            new_event("response.create"),
        ]
        frames = web.post("/uamp", json=events).json()
        assert set(calls_in(frames)) == {"left", "right"}
        session_id = frames[0]["session_id"]
        results = [
            new_event("tool.result", session_id=session_id, call_id=call_id, result=name)
            for name, call_id in calls_in(frames).items()
        ]
        done = web.post("/uamp", json=results).json()[-1]
        assert output_text(done) == "left and right"
    wait_until(lambda: not Response.objects.exclude(status="completed").exists())


def test_a_batch_names_the_sessions_that_it_creates(web: httpx.Client, alice: Person) -> None:
    events = [
        new_event("session.create", session={"id": "mine"}, agent="echo"),
        new_event("input.text", session_id="mine", text="Hello"),
        new_event("response.create", session_id="mine"),
    ]
    answer = web.post("/uamp", json=events, headers=alice.headers)
    assert answer.status_code == 200
    assert output_text(answer.json()[-1]) == "Hello"
