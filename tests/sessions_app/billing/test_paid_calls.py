"""Calls written and results read by an agent with a price are paid before they are used."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

import uamp
from agents_app.conversation.text_weights import max_weight, weight
from agents_app.providers import scripts
from agents_app.runtime.agent_run import RunRequest
from agents_app.selectors import AgentSpec
from sessions_app.billing.weights import step_usage, usual_input
from tests.client import TERMINAL
from tests.sessions_app.billing.paid_agents import clean, earned, pay, priced, rich, usd
from uap.uamp_adapter.media import DOCUMENT_CHARS
from upp import ToolResultMessage
from upp.conversation.turn import TokenUsage
from upp.providers.scripted import Call, Pause, Reasoning, Step, Text, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.live_server import Dial, Person
    from upp import LLMRequest

LONG = 36_000
LOOK: dict[str, Any] = {
    "type": "function",
    "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}},
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ends", ["end", "wait"])
@pytest.mark.parametrize(
    "argument", ["x" * LONG, "漢" * (LONG // 4), ""], ids=["ascii", "chinese", "as it is counted"]
)
def test_a_call_is_sent_once_its_tokens_are_paid(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch, argument: str, ends: str
) -> None:
    billed = LONG // 4

    async def caller(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
        if isinstance(request.messages[-1], ToolResultMessage):
            yield Text("Seen.")
            yield Usage(TokenUsage(input_tokens=1, output_tokens=1, total_tokens=2))
            return
        yield Call(name="look", arguments={"at": argument})
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
TEXTS = {"ascii": "word " * (READS // 5), "chinese": "漢字" * (READS // 8)}
"""As many tokens in both, by estimate: an ASCII character is a quarter of one."""


@pytest.mark.sampled
@pytest.mark.parametrize("script", TEXTS)
@pytest.mark.parametrize(
    "place", ["document", "description", "items", "arguments", "schema", "message", "before"]
)
def test_what_a_model_reads_is_reserved(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch, place: str, script: str
) -> None:
    words = TEXTS[script]

    async def reader(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        yield Text("Read.")
        billed = READS // 4
        yield Usage(TokenUsage(input_tokens=billed, output_tokens=1, total_tokens=billed + 1))

    monkeypatch.setitem(scripts.SCRIPTS, "reader", reader)
    priced("paid", "reader", input_per_1k="1", output_per_1k="1")
    client = dial(rich(alice, "50"))
    tools = [{**LOOK, "function": {**LOOK["function"], "description": words}}]
    client.create_session(agent="paid", session={"tools": tools} if place == "description" else {})
    create: dict[str, Any] = {}
    text = words if place == "message" else "Read this"
    if place in {"items", "arguments"}:
        client.send("input.text", text=text, messages=[_earlier(place, words)])
    elif place == "before":
        client.send("input.text", text=words, role="system")
        client.send("input.text", text=text)
    elif place == "document":
        data = base64.b64encode(words.encode()).decode()
        client.send("input.text", text=text)
        client.send("input.file", file=data, filename="a.txt", mime_type="text/plain")
    else:
        client.send("input.text", text=text)
    if place == "schema":
        schema = {"type": "object", "description": words}
        form = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
        create = {"response_format": form}
    client.send("response.create", **create)
    demand = client.until("payment.required", "session.error", *TERMINAL)[-1]
    assert demand["type"] == "payment.required", demand
    assert usd(demand["requirements"]["amount"]) >= usd("10.001")


def _earlier(place: str, words: str) -> dict[str, Any]:
    if place == "items":
        items = [{"type": "text", "text": words}]
        return {"role": "user", "content": "short", "content_items": items}
    arguments = json.dumps({"at": words}, ensure_ascii=False)
    calls = [{"id": "call_1", "name": "look", "arguments": arguments}]
    return {"role": "assistant", "content": "", "tool_calls": calls}


@pytest.mark.parametrize("script", TEXTS)
def test_what_a_tool_found_is_paid_before_it_is_read(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch, script: str
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
    client.send(
        "tool.result", call_id=call["call_id"], result=json.dumps(TEXTS[script], ensure_ascii=False)
    )
    frames = client.until("payment.required", *TERMINAL)
    assert frames[-1]["type"] == "payment.required"
    assert "response.delta" not in [frame["type"] for frame in frames]
    pay(client, frames[-1])
    assert client.until("payment.required", *TERMINAL)[-1]["type"] == "response.done"
    client.until("payment.balance")
    assert usd(earned(agent)) == usd("10.003")
    assert clean()


@pytest.mark.parametrize(
    ("text", "quarters"),
    [("", 0), ("word", 4), ("漢字", 8), ("a漢", 5), ("👍", 4), ("é", 4), ("\ud83d", 4)],
)
def test_a_character_that_is_not_ascii_weighs_a_token(text: str, quarters: int) -> None:
    assert weight(text) == quarters


@pytest.mark.parametrize(
    ("text", "quarters"),
    [
        ("", 0),
        ("Two words.\n", 14),
        ("2026", 16),
        ('{"a": [1]}', 34),
        ("\x00", 4),
        ("é漢字한“—", 24),
        ("a漢1", 9),
        ("က", 12),
        ("㐀", 12),
        ("👍", 16),
        ("\ud83d", 12),
        ("\u0604\u05ff\u0700", 16),
    ],
)
def test_digits_marks_and_rare_characters_are_reserved_as_tokens(text: str, quarters: int) -> None:
    assert max_weight(text) == quarters
    assert max_weight(text) >= weight(text)


@pytest.mark.parametrize("size", [3, 3_000, 10**9])
def test_each_byte_of_a_stored_document_may_be_a_token(size: int) -> None:
    item = uamp.FileContent(
        file=uamp.MediaUrl(url="/api/content/x"),
        filename="a.txt",
        mime_type="text/plain",
        size_bytes=size,
    )
    request = RunRequest(
        response_id="r", history=[uamp.Message(role="user", content_items=(item,))]
    )
    spec = AgentSpec(id="a", name="a", kind="hosted", provider="scripted", model="")
    # A rare character has up to four bytes, and each of them may be a token.
    assert (step_usage(spec, request).input_tokens or 0) >= min(size, 4 * DOCUMENT_CHARS)
    characters = min(size // 3, DOCUMENT_CHARS)
    assert characters <= (usual_input(spec, request).input_tokens or 0) <= characters + 100


@pytest.mark.parametrize(("piece", "chars"), [("70+1", 100), ("\N{GRINNING FACE}", 25)])
@pytest.mark.parametrize("read", ["Write", "7" * 4_000])
def test_nothing_is_sent_that_a_vendor_may_count_beyond_what_is_held(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch, piece: str, chars: int, read: str
) -> None:
    """A reservation for input pays for no output before the vendor has counted the input."""

    async def writer(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        for _ in range(200):
            yield Text(piece)
        yield Pause(60)

    monkeypatch.setitem(scripts.SCRIPTS, "writer", writer)
    priced("paid", "writer", input_per_1k="1", output_per_1k="1")
    client = dial(rich(alice))
    client.create_session(agent="paid")
    client.send("input.text", text=read)
    client.send("response.create", response={"max_tokens": 100})
    pay(client, client.until("payment.required")[-1])
    frames = client.until("payment.required", *TERMINAL)
    assert frames[-1]["type"] == "payment.required"
    texts = [f["delta"].get("text") or "" for f in frames if f["type"] == "response.delta"]
    assert len("".join(texts)) == chars
    client.send("response.cancel")
    client.until("payment.balance")
    assert clean()


@pytest.mark.parametrize("text", ["7" * 20_000, "{[(" * 5_000, "\N{GRINNING FACE}" * 2_000])
def test_a_vendor_that_counts_each_digit_mark_and_byte_is_paid(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    read = len(text.encode())

    async def writer(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        yield Text("Read.")
        yield Usage(TokenUsage(input_tokens=read, output_tokens=1, total_tokens=read + 1))

    monkeypatch.setitem(scripts.SCRIPTS, "writer", writer)
    agent = priced("paid", "writer", input_per_1k="1", output_per_1k="0")
    client = dial(rich(alice, "100"))
    client.create_session(agent="paid")
    client.send("input.text", text=text)
    client.send("response.create")
    pay(client, client.until("payment.required")[-1])
    assert client.until("payment.required", *TERMINAL)[-1]["type"] == "response.done"
    client.until("payment.balance")
    assert usd(earned(agent)) == usd(str(read / 1_000))
    assert clean()


@pytest.mark.parametrize("thinks", [False, True])
def test_no_chinese_is_sent_that_is_not_held(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch, *, thinks: bool
) -> None:
    async def writer(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        for _ in range(20):
            yield (Reasoning if thinks else Text)("漢字" * 5)
        yield Pause(60)

    monkeypatch.setitem(scripts.SCRIPTS, "writer", writer)
    agent = priced("paid", "writer", output_per_1k="1")
    client = dial(rich(alice))
    client.create_session(agent="paid")
    client.send("input.text", text="Write")
    client.send("response.create", response={"max_tokens": 100})
    pay(client, client.until("payment.required")[-1])
    frames = client.until("payment.required")
    texts = [f["delta"].get("text") or "" for f in frames if f["type"] == "response.delta"]
    texts += [f["content"] for f in frames if f["type"] == "thinking"]
    # A hundred tokens are held: as many characters are sent, and the next one is asked for.
    assert len("".join(texts)) == 100
    client.send("response.cancel")
    client.until("payment.balance")
    assert usd(earned(agent)) == usd("0.1")
    assert clean()
