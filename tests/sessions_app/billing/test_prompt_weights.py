"""The reservation of a step covers everything that the model's vendor receives."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.conversation.text_weights import max_weight, weight
from agents_app.providers import scripts
from agents_app.providers.clients import close_providers
from agents_app.runtime.agent_run import AgentError, RunRequest, run_agent
from agents_app.selectors import AgentSpec
from agents_app.tools.registry import ToolOutcome
from sessions_app.billing.meter import Meter
from sessions_app.billing.weights import later_prompts, step_usage, tokens_of
from tests.agents_app.run_context import Broker, Media, as_event
from tests.client import TERMINAL
from tests.sessions_app.billing.paid_agents import clean, pay, priced, rich, usd
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from uamp import events as ev
from uamp.shared_state import VersionedState
from uamp.types.content import (
    FileContent,
    Message,
    TextContent,
    ToolCallContent,
    ToolCallData,
    ToolResultContent,
    ToolResultData,
)
from uamp.types.session import (
    FunctionDefinition,
    JsonSchemaFormat,
    ResponseFormat,
    ToolDefinition,
)
from upp.conversation.turn import TokenUsage
from upp.providers.scripted import Step, Text, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from tests.client import Frame, UampClient
    from tests.live_server import Dial, Person
    from upp import LLMRequest

WORDS = "漢字" * 500
DOCUMENT = base64.b64encode(WORDS.encode()).decode()
USER = Message(role="user", content="Where?")
CALL = ToolCallData(id="c1", name="l" * 60, arguments='{"at": [1e15, 2e15, 3e15, 4e15]}')
LOOK = ToolDefinition(function=FunctionDefinition(name="look", description=WORDS))
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "description": WORDS}}}
FORM = ResponseFormat(
    type="json_schema", json_schema=JsonSchemaFormat(name="n", schema=SCHEMA, strict=True)
)


def _file(name: str) -> FileContent:
    return FileContent(file=DOCUMENT, filename=name, mime_type="text/plain")


ADDITIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {}),
    "instructions": ({"instructions": WORDS}, {"instructions": WORDS}),
    "shared state": (
        {"tools": ("set_state",)},
        {"shared_state": VersionedState(value={"s": WORDS}, version=7)},
    ),
    "an empty state": ({"tools": ("set_state",)}, {}),
    "present": ({"tools": ("present",)}, {}),
    "delegates": ({"delegates": (("helper", WORDS), ("other", WORDS))}, {}),
    "tools of the client": ({}, {"tools": [LOOK]}),
    "a tool without parameters": (
        {},
        {"tools": [ToolDefinition(function=FunctionDefinition(name="t"))]},
    ),
    "a schema": ({}, {"response_format": FORM}),
    "any object": ({}, {"response_format": ResponseFormat(type="json_object")}),
    "a strategy that reasons": ({"strategy": "react"}, {}),
    "its own prompt": (
        {"strategy": "react", "strategy_options": {"reasoning_prompt": WORDS}},
        {},
    ),
    "a strategy that plans": ({"strategy": "plan"}, {"tools": [LOOK]}),
    "a plan with a schema": ({"strategy": "plan"}, {"tools": [LOOK], "response_format": FORM}),
    "parameters of the row": (
        {"params": {"tools": [{"type": "function", "function": {"name": WORDS}}]}},
        {},
    ),
    "names of speakers": (
        {},
        {"history": [Message(role="user", content=f"{n}", name=f"{n}" * 9) for n in range(1, 200)]},
    ),
    "names of files": (
        {},
        {
            "history": [
                Message(role="user", content_items=(TextContent(text="See"), _file("漢" * 99)))
            ]
        },
    ),
    "types of files": (
        {},
        {
            "history": [
                Message(
                    role="user",
                    content_items=(
                        FileContent(file=DOCUMENT, filename="a", mime_type="text/" + "x" * 900),
                    ),
                )
            ]
        },
    ),
    "its own last words": ({}, {"history": [USER, Message(role="assistant", content="There.")]}),
    "an interrupted call": (
        {},
        {"history": [USER, *[Message(role="assistant", content="", tool_calls=(CALL,))] * 20]},
    ),
    "results": (
        {},
        {
            "history": [
                USER,
                Message(role="assistant", content="", tool_calls=(CALL,)),
                Message(role="tool", content=WORDS, tool_call_id="c1"),
            ]
        },
    ),
    "an answer that resumes": (
        {},
        {
            "resume": (
                TextContent(text=WORDS),
                ToolCallContent(tool_call=CALL),
                ToolResultContent(tool_result=ToolResultData(call_id="c1", result="1")),
                TextContent(text="And"),
            )
        },
    ),
}
"""Texts that reach the model: fields of the agent, and of the request."""


@pytest.mark.sampled
@pytest.mark.parametrize("provider", ["openai_compat", "anthropic", "google"])
@pytest.mark.parametrize("name", ADDITIONS)
async def test_what_a_vendor_receives_first_is_reserved(name: str, provider: str) -> None:
    of_agent, of_request = ADDITIONS[name]
    bodies: list[dict[str, Any]] = []

    async def refuse(exchange: Exchange) -> None:
        bodies.append(exchange.body)
        await exchange.refuse("400 Bad Request", b'{"error": {"message": "no"}}')

    async with serve(refuse) as wire:
        spec = _agent(provider, wire.url, **of_agent)
        request = RunRequest(response_id="r1", **{"history": [USER], **of_request})
        try:
            with pytest.raises(AgentError):
                await run_agent(spec, request, _drop, broker=_broker(request), media=Media())
        finally:
            await close_providers()
    assert len(bodies) == 1
    assert 0 < tokens_of(_received(bodies[0])) <= (step_usage(spec, request).input_tokens or 0)


PLAN = json.dumps(
    {
        "steps": [
            {"id": f"{n}", "description": f"Look {n} {WORDS}", "tool": "look", "dependsOn": []}
            for n in range(2)
        ]
    },
    ensure_ascii=False,
)
LOOKING: dict[str, Any] = {
    "tool_calls": [
        {
            "index": 0,
            "id": "c1",
            "type": "function",
            "function": {"name": "look", "arguments": "{}"},
        }
    ]
}
GOOD = '{"city": "Oslo"}'


@pytest.mark.parametrize(
    ("strategy", "answers", "of_request"),
    [
        ("loop", [LOOKING, "Done."], {}),
        ("loop", ["It is Oslo.", GOOD], {"response_format": FORM}),
        ("react", [WORDS, LOOKING, "I see.", "Done."], {}),
        ("plan", [PLAN, LOOKING, "I saw it.", PLAN, "Done.", "Done."], {}),
        (
            "plan",
            ["No plan", PLAN, LOOKING, "So it is.", PLAN, "Done.", "Done.", "No JSON", GOOD],
            {"response_format": FORM},
        ),
    ],
)
async def test_what_a_vendor_receives_later_is_reserved(
    strategy: str, answers: list[str | dict[str, Any]], of_request: dict[str, Any]
) -> None:
    """A vendor that counts by the rule of the server never reads more than was reserved."""
    bodies: list[dict[str, Any]] = []
    reserved: list[int] = []

    async def answer(exchange: Exchange) -> None:
        answer = answers[min(len(bodies), len(answers) - 1)]
        bodies.append(exchange.body)
        await exchange.send(STREAM_HEAD)
        delta = {"content": answer} if isinstance(answer, str) else answer
        await exchange.chunk(choices=[{"delta": delta}])
        wrote = tokens_of(max_weight(answer if isinstance(answer, str) else "look{}"))
        input_tokens = tokens_of(_received(exchange.body))
        await exchange.chunk(usage={"prompt_tokens": input_tokens, "completion_tokens": wrote})
        await exchange.finish("stop" if isinstance(answer, str) else "tool_calls")

    async with serve(answer) as wire:
        spec = _agent("openai_compat", wire.url, strategy=strategy)
        request = RunRequest(response_id="r1", history=[USER], tools=[LOOK], **of_request)
        step = step_usage(spec, request)
        meter = Meter(spec, prompts=later_prompts(spec, request))
        meter.expect_input(step, reserved=step)
        # Before a first usage, there is nothing but the first step.
        reserved.append(step.input_tokens or 0)

        def receive(event_or_text: ev.Event | str) -> None:
            event = as_event(event_or_text)
            if isinstance(event, ev.ResponseDelta) and event.delta.text:
                meter.wrote(event.delta.text)
            meter.add(event)
            if isinstance(event, ev.UsageDelta):
                reserved.append(0)
            reserved[-1] = meter.next_step(step).input_tokens or 0

        def look(call: ToolCallData) -> ToolOutcome:
            is_error = strategy == "plan"
            receive(ev.ToolResult(call_id=call.id, result=WORDS, is_error=is_error))
            return ToolOutcome(result=WORDS, is_error=is_error)

        broker = _broker(request)
        broker.answer = look
        try:
            await run_agent(spec, request, receive, broker=broker, media=Media())
        finally:
            await close_providers()
    assert len(bodies) == len(answers)
    for body, amount in zip(bodies, reserved[:-1], strict=True):
        assert tokens_of(_received(body)) <= amount


def _agent(provider: str, url: str, **fields: Any) -> AgentSpec:
    params = fields.pop("params", {})
    options = {"base_url": url, "params": params} if params else {"base_url": url}
    return AgentSpec(id="a", name="bot", provider=provider, model="m", options=options, **fields)


def _broker(request: RunRequest) -> Broker:
    return Broker(state=request.shared_state or VersionedState())


def _drop(_shown: ev.Event | str) -> None:
    """Receive text or an event and drop it."""


_FRAME = {"role", "type", "data", "file_data", "media_type"}
"""Members of messages that are no text to a model, and the data of media."""


def _received(body: dict[str, Any]) -> int:
    """Return the weight of all texts in a request to any of the vendors."""
    spoken = [body.get(name) for name in ("messages", "system", "contents", "systemInstruction")]
    tools = body.get("tools") or []
    generation = body.get("generationConfig") or {}
    form = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
    schemas = [form, generation.get("responseJsonSchema")]
    return sum(
        max_weight(text)
        for text in (
            *(text for part in spoken for text in _texts(part)),
            *(text for tool in tools for text in _tool_texts(tool)),
            *(_json(schema) for schema in schemas if schema),
        )
    )


def _texts(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, list):
        for member in part:
            yield from _texts(member)
    elif isinstance(part, dict):
        for name, member in part.items():
            if name in {"input", "args"}:
                yield _json(member)
            elif name not in _FRAME or part.get("media_type") == "text/plain" == name:
                yield from _texts(member)
            elif name == "data" and part.get("type") == "text":
                yield member


def _tool_texts(tool: dict[str, Any]) -> Iterator[str]:
    for declared in tool.get("functionDeclarations") or [tool.get("function") or tool]:
        for name, value in declared.items():
            yield value if isinstance(value, str) else _json(value)
            assert name in {
                "type", "name", "description", "parameters", "input_schema", "parametersJsonSchema",
            }  # fmt: skip


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# --- The state of a chat, over a socket ---


@pytest.fixture
def stateful(demo: object, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the agent `paid`, which reads the chat's state; return the system texts it was sent."""
    systems: list[str] = []

    async def reader(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
        systems.append(request.system or "")
        billed = tokens_of(weight(systems[-1]) + weight("Read it"))
        yield Text("Read.")
        yield Usage(TokenUsage(input_tokens=billed, output_tokens=1, total_tokens=billed + 1))

    monkeypatch.setitem(scripts.SCRIPTS, "reader", reader)
    agent = priced("paid", "reader", input_per_1k="1", output_per_1k="0")
    agent.tools = ["set_state"]
    agent.save()
    return systems


def test_the_state_of_a_chat_is_reserved_before_it_is_read(
    dial: Dial, alice: Person, stateful: list[str]
) -> None:
    client = _in_a_chat_with(dial(rich(alice, "50")), "漢" * 20_000)
    client.ask("Read it")
    demand = client.until("payment.required", *TERMINAL)[-1]
    assert usd(demand["requirements"]["amount"]) >= usd("20")
    pay(client, demand)
    assert client.until("payment.required", *TERMINAL)[-1]["type"] == "response.done"
    assert "漢" * 20_000 in stateful[0]
    client.until("payment.balance")
    assert clean()


@pytest.mark.parametrize(("later", "is_shown"), [("漢" * 20_000, False), ("later", True)])
def test_a_state_that_grows_before_the_run_is_not_read_unpaid(
    dial: Dial, alice: Person, stateful: list[str], later: str, *, is_shown: bool
) -> None:
    client = _in_a_chat_with(dial(rich(alice, "50")), "a state of some words")
    client.ask("Read it")
    demand = client.until("payment.required", *TERMINAL)[-1]
    client.send("state.update", state={"s": later})
    client.until("state.updated")
    pay(client, demand)
    assert client.until("payment.required", *TERMINAL)[-1]["type"] == "response.done"
    assert (later in stateful[0], "a state of some words" in stateful[0]) == (
        is_shown,
        not is_shown,
    )
    client.until("payment.balance")
    assert clean()


def _in_a_chat_with(client: UampClient, state: str) -> UampClient:
    client.create_session(agent="paid")
    client.send("state.update", state={"s": state})
    frames: list[Frame] = client.until("state.updated")
    assert frames[-1]["type"] == "state.updated"
    return client
