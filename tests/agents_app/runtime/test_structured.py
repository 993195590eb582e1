"""Answers in the form of a schema: asked for again once, and refused when they misfit."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from agents_app.providers import scripts
from agents_app.providers.clients import close_providers
from agents_app.runtime.agent_run import AgentError, RunFinished, RunRequest, run_agent
from agents_app.selectors import AgentSpec
from agents_app.tools.registry import ToolOutcome
from tests.agents_app.run_context import Broker, Media, as_event
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from uamp.events import Event, Thinking, UsageDelta
from uamp.output import OutputBuilder
from uamp.types.content import Message, TextContent
from uamp.types.session import FunctionDefinition, JsonSchemaFormat, ResponseFormat, ToolDefinition
from uap import AgentState
from upp import LLMRequest
from upp.providers.scripted import Call, Step, Stop, Text

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
GOOD, OTHER, PROSE = '{"city": "Oslo"}', '{"town": 1}', "It is Oslo."
STRICT = ResponseFormat(
    type="json_schema", json_schema=JsonSchemaFormat(name="n", schema=SCHEMA, strict=True)
)
ANY = ResponseFormat(type="json_object")
LOOK = ToolDefinition(function=FunctionDefinition(name="look", description="d"))

Answer = str | dict[str, Any]


class Vendor:
    """A server of OpenAI's kind that gives one answer after the other; the last repeats."""

    def __init__(self, *answers: Answer, stop: str = "stop") -> None:
        self.answers = answers
        self.stop = stop
        self.bodies: list[dict[str, Any]] = []

    async def __call__(self, exchange: Exchange) -> None:
        """Give the next answer, in two pieces."""
        answer = self.answers[min(len(self.bodies), len(self.answers) - 1)]
        self.bodies.append(exchange.body)
        await exchange.send(STREAM_HEAD)
        pieces = [answer[:5], answer[5:]] if isinstance(answer, str) else [answer]
        for piece in pieces:
            delta = {"content": piece} if isinstance(piece, str) else piece
            await exchange.chunk(choices=[{"delta": delta}])
        usage = {"prompt_tokens": 3, "completion_tokens": 2}
        await exchange.chunk(usage=usage)
        await exchange.finish(self.stop)


def calling(name: str, text: str) -> dict[str, Any]:
    function = {"name": name, "arguments": "{}"}
    call = {"index": 0, "id": "c1", "type": "function", "function": function}
    return {"content": text, "tool_calls": [call]}


class CheckpointSaver:
    """Keeps the steps that were saved."""

    def __init__(self) -> None:
        self.steps: list[int] = []

    async def save(self, _state: AgentState, *, step: int) -> None:
        """Note the step."""
        self.steps.append(step)


class Run:
    """The outcome of one run, even of one that failed."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.end: RunFinished | None = None
        self.error: AgentError | None = None
        self.saver = CheckpointSaver()

    @property
    def text(self) -> str:
        """The text that a client has in the end."""
        builder = OutputBuilder()
        for event in self.events:
            builder.add(event)
        return "".join(item.text for item in builder.output if isinstance(item, TextContent))


async def played(
    spec: AgentSpec, form: ResponseFormat, *, broker: Broker | None = None, **values: Any
) -> Run:
    run = Run()
    values.setdefault("history", [Message(role="user", content="Where?")])
    request = RunRequest(response_id="r1", response_format=form, **values)

    def receive(piece: Event | str) -> None:
        run.events.append(as_event(piece))

    try:
        run.end = await run_agent(
            spec, request, receive, broker=broker or Broker(), media=Media(), checkpoints=run.saver
        )
    except AgentError as error:
        run.error = error
    return run


async def run_of(
    vendor: Vendor, form: ResponseFormat = STRICT, *, strategy: str = "loop", **values: Any
) -> Run:
    async with serve(vendor) as wire:
        spec = AgentSpec(
            id="a",
            name="bot",
            provider="openai_compat",
            model="m1",
            strategy=strategy,
            options={"base_url": wire.url},
        )
        try:
            return await played(spec, form, **values)
        finally:
            await close_providers()


async def test_an_answer_that_fits_is_shown_once_it_is_whole() -> None:
    vendor = Vendor(GOOD)
    run = await run_of(vendor)

    assert vendor.bodies[0]["response_format"]["json_schema"] == {
        "name": "answer",
        "schema": SCHEMA,
        "strict": True,
    }
    assert (run.error, run.text, len(vendor.bodies)) == (None, GOOD, 1)
    assert [type(event) for event in run.events][-1] is UsageDelta
    assert run.end is not None
    assert run.end.finish_reason == "stop"


@pytest.mark.parametrize("misfit", [PROSE, OTHER, f"```json\n{GOOD}\n```", "[1]", ""])
async def test_a_misfit_is_asked_for_again_once_and_never_shown(misfit: str) -> None:
    vendor = Vendor(misfit, GOOD)
    broker = Broker()
    run = await run_of(vendor, broker=broker)

    assert (run.error, run.text, len(vendor.bodies)) == (None, GOOD, 2)
    prompt = vendor.bodies[1]["messages"][-1]
    assert prompt["role"] == "user"
    assert "does not fit" in prompt["content"]
    assert '"city"' in prompt["content"]
    # The second question is a step: admitted, counted, paid, and kept.
    assert run.end is not None
    assert (run.end.steps, run.end.usage.output_tokens) == (2, 4)
    assert sum(isinstance(event, UsageDelta) for event in run.events) == 2
    assert run.saver.steps == [1]


@pytest.mark.parametrize(("form", "misfit"), [(STRICT, PROSE), (STRICT, OTHER), (ANY, PROSE)])
async def test_what_does_not_fit_twice_is_an_error_and_its_text_is_kept(
    form: ResponseFormat, misfit: str
) -> None:
    vendor = Vendor("first", misfit)
    run = await run_of(vendor, form)

    assert run.error is not None
    assert run.error.code == "invalid_output"
    assert "bot does not match" in run.error.message
    assert (run.end, run.text, len(vendor.bodies)) == (None, misfit, 2)


async def test_any_object_is_a_form_too() -> None:
    vendor = Vendor(OTHER)
    run = await run_of(vendor, ANY)

    assert vendor.bodies[0]["response_format"] == {"type": "json_object"}
    assert (run.error, run.text) == (None, OTHER)


async def test_words_beside_a_call_are_thinking() -> None:
    vendor = Vendor(calling("look", "I look."), GOOD)
    broker = Broker(answer=lambda _: ToolOutcome(result='"Oslo"'))
    run = await run_of(vendor, broker=broker, tools=[LOOK])

    assert (run.error, run.text) == (None, GOOD)
    thoughts = [event.content for event in run.events if isinstance(event, Thinking)]
    assert thoughts == ["I look."]


async def test_a_model_that_calls_tools_instead_of_answering_again_has_not_answered() -> None:
    vendor = Vendor(PROSE, calling("look", ""))
    run = await run_of(vendor, tools=[LOOK])

    assert run.error is not None
    assert (run.error.code, len(vendor.bodies)) == ("invalid_output", 2)


@pytest.mark.parametrize(("strategy", "inferences"), [("react", 2), ("plan", 3)])
async def test_every_strategy_ends_in_the_form(strategy: str, inferences: int) -> None:
    plan = json.dumps({"steps": [{"id": "a", "description": "x", "tool": None, "dependsOn": []}]})
    answers = {"react": ["hm", GOOD], "plan": [plan, "did it", GOOD]}[strategy]
    vendor = Vendor(*answers)
    run = await run_of(vendor, strategy=strategy)

    assert (run.error, run.text, len(vendor.bodies)) == (None, GOOD, inferences)
    formats = [body.get("response_format") for body in vendor.bodies]
    assert formats[-1] is not None
    assert formats[-2] is None
    if strategy == "plan":
        # The planning is held to the plan's own schema, and not to the client's.
        assert "steps" in json.dumps(formats[0])


async def test_a_filtered_answer_is_reported_as_that() -> None:
    vendor = Vendor(PROSE, stop="content_filter")
    run = await run_of(vendor)

    assert run.error is not None
    assert (run.error.code, run.text, len(vendor.bodies)) == ("content_filtered", PROSE, 1)


@pytest.mark.parametrize(
    "schema", [{"type": "wizard"}, {"$ref": "https://example.com/s.json"}, {"type": "x", "$ref": 5}]
)
async def test_an_invalid_schema_is_refused_before_a_model_is_asked(schema: dict[str, Any]) -> None:
    form = ResponseFormat(type="json_schema", json_schema=JsonSchemaFormat(name="n", schema=schema))
    vendor = Vendor(GOOD)
    run = await run_of(vendor, form)

    assert run.error is not None
    assert run.error.code == "invalid_output"
    assert "not a JSON Schema" in run.error.message
    assert vendor.bodies == []


async def test_a_schema_that_takes_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents_app.workers.schema_checks.CHECK_SECONDS", 1.0)
    bomb = {"type": "object", "properties": {"city": {"pattern": "^(a+)+$"}}}
    form = ResponseFormat(type="json_schema", json_schema=JsonSchemaFormat(name="n", schema=bomb))
    run = await run_of(Vendor(json.dumps({"city": "a" * 40 + "!"})), form)

    assert run.error is not None
    assert run.error.code == "invalid_output"
    assert "takes too long" in run.error.message


def packed(value: Any) -> str:
    """Return JSON of one word, which is echoed in one piece."""
    return json.dumps(value, separators=(",", ":"))


BOMBS = [
    ({"uniqueItems": True}, packed([{"a": n} for n in range(14_000)])),
    ({"properties": {"city": {"pattern": "^(a+)+$"}}}, packed({"city": "a" * 40 + "!"})),
    ({"items": {"enum": [f"x{n}" for n in range(2_000)]}}, packed(["y"] * 30_000)),
]


@pytest.mark.long
@pytest.mark.parametrize(("schema", "answer"), BOMBS)
async def test_endless_schema_checks_are_stopped_and_do_not_delay_others(
    schema: dict[str, Any], answer: str
) -> None:
    bomb_schema = JsonSchemaFormat(name="n", schema=schema)
    bomb = ResponseFormat(type="json_schema", json_schema=bomb_schema)
    spec = AgentSpec(id="a", name="echo", options={"script": "echo"})
    history = [Message(role="user", content=answer)]
    bombs = [asyncio.create_task(played(spec, bomb, history=history)) for _ in range(3)]
    answered = 0
    async with asyncio.timeout(60):
        while not any(task.done() for task in bombs):
            run = await run_of(Vendor(GOOD))
            assert (run.error, run.text) == (None, GOOD)
            answered += 1
        # The first may come before the bombs.
        assert answered > 2
        for stopped in await asyncio.gather(*bombs):
            assert stopped.error is not None
            assert stopped.error.code == "invalid_output"
            assert "takes too long" in stopped.error.message
        # Nothing goes on, and those who have such a schema are answered again.
        pattern = {"type": "object", "properties": {"city": {"pattern": "^O"}}}
        simple_schema = JsonSchemaFormat(name="n", schema=pattern)
        run = await run_of(
            Vendor(GOOD), ResponseFormat(type="json_schema", json_schema=simple_schema)
        )
        assert (run.error, run.text) == (None, GOOD)


async def test_a_form_holds_back_only_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents_app.runtime.structured.FORM_CHARS", 10)
    run = await run_of(Vendor("x" * 11))

    assert run.error is not None
    assert (run.error.code, run.text) == ("invalid_output", "")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AgentSpec]:
    """Return a function that makes an agent of what its script says."""

    def make_agent(*steps: Step, **values: Any) -> AgentSpec:
        async def play(_spec: AgentSpec, _request: LLMRequest) -> AsyncIterator[Step]:
            for step in steps:
                yield step

        monkeypatch.setitem(scripts.SCRIPTS, "played", play)
        return AgentSpec(id="a", name="bot", options={"script": "played"}, **values)

    return make_agent


async def test_a_script_is_held_to_a_schema_and_not_asked_again(
    script: Callable[..., AgentSpec],
) -> None:
    fits = await played(script(Text(GOOD)), STRICT)
    misfit = await played(script(Text("It "), Text("is.")), STRICT)

    assert (fits.error, fits.text) == (None, GOOD)
    assert misfit.error is not None
    assert (misfit.error.code, misfit.text) == ("invalid_output", "It is.")
    prose = await played(script(Text(PROSE)), ANY)
    assert prose.error is not None
    assert (prose.error.code, prose.text) == ("invalid_output", PROSE)


async def test_a_run_that_stops_for_calls_is_not_checked_as_an_answer(
    script: Callable[..., AgentSpec],
) -> None:
    run = await played(script(Call(name="nothing", arguments={}), Stop("tool_use")), STRICT)

    assert run.error is None
    assert run.end is not None
    assert run.end.finish_reason == "tool_calls"
