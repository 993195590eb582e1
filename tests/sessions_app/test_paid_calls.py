"""What an agent with a price writes into a call, and what it reads, is paid before it is used."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from agents_app import scripts
from tests.client import TERMINAL
from tests.sessions_app.test_payments import clean, earned, pay, priced, rich, usd
from upp import ToolResultMessage
from upp.providers.scripted import Call, Step, Text, Usage
from upp.turn import TokenUsage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_app.selectors import AgentSpec
    from tests.house import Dial, Person
    from upp import LLMRequest

LONG = 36_000
LOOK: dict[str, Any] = {
    "type": "function",
    "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}},
}


@pytest.mark.parametrize("ends", ["end", "wait"])
@pytest.mark.parametrize("is_written", [True, False], ids=["as it is written", "as it is counted"])
def test_a_call_is_sent_once_its_tokens_are_paid(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch, *, is_written: bool, ends: str
) -> None:
    billed = LONG // 4

    async def caller(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
        if isinstance(request.messages[-1], ToolResultMessage):
            yield Text("Seen.")
            yield Usage(TokenUsage(input_tokens=1, output_tokens=1, total_tokens=2))
            return
        yield Call(name="look", arguments={"at": "x" * (LONG if is_written else 1)})
        yield Usage(TokenUsage(input_tokens=1, output_tokens=billed, total_tokens=billed + 1))

    monkeypatch.setitem(scripts.SCRIPTS, "caller", caller)
    agent = priced("paid", "caller", output_per_1k="1")
    client = dial(rich(alice, "30"))
    client.create_session(agent="paid", session={"tools": [LOOK]})
    client.send("input.text", text="Look")
    client.send("response.create", response={"client_tools": ends})
    pay(client, client.until("payment.required")[-1])
    frames = client.until("payment.required", "tool.call", *TERMINAL)
    assert frames[-1]["type"] == "payment.required"
    assert frames[-1]["extra"] == {"action": "topup"}
    while frames[-1]["type"] == "payment.required":
        assert not [frame for frame in client.during(0.3) if frame["type"] == "tool.call"]
        pay(client, frames[-1])
        frames = client.until("payment.required", "tool.call", *TERMINAL)
    assert frames[-1]["type"] == "tool.call"
    if ends == "wait":
        client.send("tool.result", call_id=frames[-1]["call_id"], result='"a tree"')
    frames = client.until("payment.required", *TERMINAL)
    while frames[-1]["type"] == "payment.required":
        pay(client, frames[-1])
        frames = client.until("payment.required", *TERMINAL)
    assert frames[-1]["type"] == "response.done"
    client.until("payment.balance")
    assert usd(earned(agent)) == usd("9.001" if ends == "wait" else "9")
    assert clean()


READS = 40_000
TEXT = "word " * (READS // 5)


@pytest.mark.parametrize(
    "place", ["document", "description", "items", "arguments", "schema", "message", "before"]
)
def test_what_a_model_reads_is_reserved(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    async def reader(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        yield Text("Read.")
        billed = READS // 4
        yield Usage(TokenUsage(input_tokens=billed, output_tokens=1, total_tokens=billed + 1))

    monkeypatch.setitem(scripts.SCRIPTS, "reader", reader)
    priced("paid", "reader", input_per_1k="1", output_per_1k="1")
    client = dial(rich(alice, "50"))
    tools = [{**LOOK, "function": {**LOOK["function"], "description": TEXT}}]
    client.create_session(agent="paid", session={"tools": tools} if place == "description" else {})
    create: dict[str, Any] = {}
    said = TEXT if place == "message" else "Read this"
    if place in {"items", "arguments"}:
        client.send("input.text", text=said, messages=[_earlier(place)])
    elif place == "before":
        client.send("input.text", text=TEXT, role="system")
        client.send("input.text", text=said)
    elif place == "document":
        data = base64.b64encode(TEXT.encode()).decode()
        client.send("input.text", text=said)
        client.send("input.file", file=data, filename="a.txt", mime_type="text/plain")
    else:
        client.send("input.text", text=said)
    if place == "schema":
        schema = {"type": "object", "description": TEXT}
        form = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
        create = {"response_format": form}
    client.send("response.create", **create)
    asked = client.until("payment.required", "session.error", *TERMINAL)[-1]
    assert asked["type"] == "payment.required", asked
    assert usd(asked["requirements"]["amount"]) >= usd("10.001")


def _earlier(place: str) -> dict[str, Any]:
    if place == "items":
        items = [{"type": "text", "text": TEXT}]
        return {"role": "user", "content": "short", "content_items": items}
    arguments = json.dumps({"at": TEXT})
    calls = [{"id": "call_1", "name": "look", "arguments": arguments}]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def test_what_a_tool_found_is_paid_before_it_is_read(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def finder(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
        if isinstance(request.messages[-1], ToolResultMessage):
            yield Text("Found.")
            billed = READS // 4
            yield Usage(TokenUsage(input_tokens=billed, output_tokens=1, total_tokens=billed + 1))
            return
        yield Call(name="look", arguments={})
        yield Usage(TokenUsage(input_tokens=1, output_tokens=1, total_tokens=2))

    monkeypatch.setitem(scripts.SCRIPTS, "finder", finder)
    agent = priced("paid", "finder", input_per_1k="1", output_per_1k="1")
    client = dial(rich(alice, "50"))
    client.create_session(agent="paid", session={"tools": [LOOK]})
    client.ask("Look")
    pay(client, client.until("payment.required")[-1])
    call = client.until("tool.call")[-1]
    client.send("tool.result", call_id=call["call_id"], result=json.dumps(TEXT))
    frames = client.until("payment.required", *TERMINAL)
    assert frames[-1]["type"] == "payment.required"
    assert "response.delta" not in [frame["type"] for frame in frames]
    pay(client, frames[-1])
    assert client.until("payment.required", *TERMINAL)[-1]["type"] == "response.done"
    client.until("payment.balance")
    assert usd(earned(agent)) == usd("10.003")
    assert clean()
