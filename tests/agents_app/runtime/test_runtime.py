"""Runs of agents: events out of requests, tools through the broker, failures in safe words."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from pytest_django import Settings

import uamp
from agents_app.providers import scripts
from agents_app.providers.clients import close_providers
from agents_app.runtime import short_tools
from agents_app.runtime.agent_run import AgentError, Receive, RunFinished, RunRequest, run_agent
from agents_app.selectors import AgentSpec
from agents_app.tools.registry import ServerTool, ToolContext, ToolError, ToolOutcome, tool
from tests.agents_app.run_context import CSV_ID, Broker, Context, Media, as_event
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from uamp.events import Event, ResponseDelta, Thinking, ToolCallDone, UsageDelta
from uamp.output import OutputBuilder
from uamp.types.content import (
    ContentItem,
    FileContent,
    ImageContent,
    MediaUrl,
    Message,
    TextContent,
    ToolCallContent,
    ToolCallData,
    ToolResultContent,
)
from uamp.types.session import (
    FunctionDefinition,
    JsonSchemaFormat,
    ResponseFormat,
    ToolDefinition,
    UsageStats,
)
from upp import ErrorCode, LLMRequest, Tool, ToolResultMessage, UPPError
from upp.providers.scripted import Call, Fail, Step, Stop, Text

Play = Callable[[LLMRequest], AsyncIterator[Step]]
WEATHER = ToolDefinition(function=FunctionDefinition(name="weather", description="d"))


def echo_tool(_context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
    if arguments.get("fail"):
        raise ToolError("Say something else.")
    return ToolOutcome(result=str(arguments))


SHORT = ServerTool(
    name="short", description="", parameters={"type": "object"}, run=echo_tool, long_running=False
)


def use_context(context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
    context.progress(percent=50)
    if arguments["what"] == "read":
        context.read_content("id-1")
    if arguments["what"] == "search":
        context.search_messages(["a"], limit=1)
    context.write_content(b"", mime_type="text/plain", filename="a.txt")
    raise AssertionError


NOSY = ServerTool(
    name="nosy", description="", parameters={"type": "object"}, run=use_context, long_running=False
)
HANG = threading.Event()


@tool(long_running=False)
def odd(how: str) -> object:
    """Misbehave."""
    match how:
        case "hang":
            HANG.wait(10)
        case "time out":
            raise TimeoutError("secret host")
        case "no json":
            return object()
        case "nul":
            return "a\0b\ud800"
    return "x" * int(how)


NO_TOOL = "not a tool"


@pytest.fixture(autouse=True)
def _server_tools(settings: Settings) -> None:
    here = "tests.agents_app.runtime.test_runtime"
    settings.UAMP_SERVER_TOOLS = [
        "agents_app.tools.csv_report.csv_report",
        f"{here}.SHORT",
        f"{here}.NOSY",
        f"{here}.odd",
    ]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[[Play], AgentSpec]:
    """Return a function that makes an agent of a script."""

    def agent(script: Play) -> AgentSpec:
        monkeypatch.setitem(scripts.SCRIPTS, "played", lambda _spec, request: script(request))
        return AgentSpec(id="a", name="bot", options={"script": "played"})

    return agent


def with_tools(spec: AgentSpec, *tools: str, **values: Any) -> AgentSpec:
    fields = {name: getattr(spec, name) for name in spec.__struct_fields__}
    return AgentSpec(**{**fields, "tools": tools, **values})


def asked(text: str = "hello", *items: ContentItem, **values: Any) -> RunRequest:
    history = [Message(role="user", content=text, content_items=items or None)]
    return RunRequest(response_id="r1", history=history, **values)


async def run(
    spec: AgentSpec,
    request: RunRequest,
    *,
    broker: Broker | None = None,
    media: Media | None = None,
) -> tuple[list[Event], RunFinished]:
    """Return a run's events and its end."""
    door, loader = broker or Broker(), media or Media()
    events: list[Event] = []
    end = await run_agent(spec, request, keep_in(events), broker=door, media=loader)
    return events, end


def keep_in(events: list[Event]) -> Receive:
    """Return a receiver that appends each event."""

    def receive(shown: Event | str) -> None:
        events.append(as_event(shown))

    return receive


async def failure(spec: AgentSpec, request: RunRequest, broker: Broker | None = None) -> AgentError:
    with pytest.raises(AgentError) as caught:
        await run(spec, request, broker=broker)
    return caught.value


def output(events: list[Event], *before: ContentItem) -> list[ContentItem]:
    """Return what a client makes of a run's events."""
    builder = OutputBuilder()
    for event in events:
        builder.add(event)
    return [*before, *builder.output]


def calling(name: str, **arguments: Any) -> Play:
    """Return a script that calls a tool once and says what it gave back."""

    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        last = request.messages[-1]
        if isinstance(last, ToolResultMessage):
            result = last.results[-1]
            yield Text(f"{'failed: ' if result.is_error else ''}{result.result}")
        else:
            yield Call(name=name, arguments=arguments, call_id="c1")

    return script


async def test_an_answer_is_deltas_usage_and_an_end() -> None:
    spec = AgentSpec(id="a", name="echo")
    events, end = await run(spec, asked("@echo two words"))
    *deltas, usage = events
    assert [(type(e), e.delta.text, e.offset) for e in deltas if isinstance(e, ResponseDelta)] == [
        (ResponseDelta, "two ", None),
        (ResponseDelta, "words", None),
    ]
    tokens = UsageStats(input_tokens=3, output_tokens=2, total_tokens=5)
    assert usage == UsageDelta(response_id="r1", delta=tokens)
    assert end == RunFinished(usage=tokens, finish_reason="stop", steps=1, model="echo")


async def test_thinking_comes_before_the_answer() -> None:
    events, _ = await run(AgentSpec(id="a", name="thinker"), asked())
    kinds = [type(event) for event in events]
    assert kinds.index(ResponseDelta) == kinds.count(Thinking)
    assert all(e.is_delta for e in events if isinstance(e, Thinking))


async def test_a_client_tool_goes_through_the_broker_and_shows_no_delta() -> None:
    broker = Broker(answer=lambda _: ToolOutcome(result='{"temp":22}'))
    spec = AgentSpec(id="a", name="tool-user")
    events, end = await run(spec, asked("warm?", tools=[WEATHER]), broker=broker)
    assert [(c.name, c.arguments) for c in broker.calls] == [("weather", '{"query":"warm?"}')]
    assert output(events) == [TextContent(text='The tool answered: {"temp":22}')]
    assert end.steps == 2


@pytest.mark.parametrize("status", ["failed", "answered"])
async def test_the_words_and_the_media_of_a_client_tool_are_reported_to_the_model(
    status: str,
) -> None:
    is_error = status == "failed"
    picture = ImageContent(image=MediaUrl(url=f"/api/content/{CSV_ID}"), description="a map")
    outcome = ToolOutcome(result='"two\\nlines"', is_error=is_error, content_items=(picture,))
    spec = AgentSpec(id="a", name="tool-user")
    broker = Broker(answer=lambda _: outcome)
    events, _ = await run(spec, asked("warm?", tools=[WEATHER]), broker=broker)
    said = "failed: two\nlines"
    if not is_error:
        said = f"answered: two\nlines\n\n[image: content_id={CSV_ID}, a map]"
    assert output(events) == [TextContent(text=f"The tool {said}")]


@pytest.mark.parametrize("result", ["[" * 100_000, '"half', "1e999"])
async def test_a_client_tool_that_answers_no_json_is_quoted(result: str) -> None:
    broker = Broker(answer=lambda _: ToolOutcome(result=result))
    spec = AgentSpec(id="a", name="tool-user")
    events, _ = await run(spec, asked("warm?", tools=[WEATHER]), broker=broker)
    assert output(events) == [TextContent(text=f"The tool answered: {result}")]


async def test_a_failed_client_tool_is_reported_to_the_model() -> None:
    broker = Broker(answer=lambda _: ToolOutcome(result="no network", is_error=True))
    spec = AgentSpec(id="a", name="tool-user")
    events, _ = await run(spec, asked(tools=[WEATHER]), broker=broker)
    assert output(events) == [TextContent(text="The tool failed: no network")]


async def test_the_report_of_a_csv_file_is_a_long_tool_with_a_chart() -> None:
    attached = FileContent(
        file=MediaUrl(url=f"/api/content/{CSV_ID}"), filename="sales.csv", mime_type="text/csv"
    )
    broker = Broker(context=Context(data=b"city,people\nRome,3\nParis,2\n"))
    spec = AgentSpec(id="a", name="report", tools=("csv_report",))
    events, _ = await run(spec, asked("", attached), broker=broker)
    call, result, text = output(events)
    assert isinstance(call, ToolCallContent)
    assert call.tool_call.arguments == f'{{"content_id":"{CSV_ID}"}}'
    assert isinstance(result, ToolResultContent)
    assert result.tool_result.content_items is not None
    assert isinstance(result.tool_result.content_items[0], ImageContent)
    assert isinstance(text, TextContent)
    assert text.text.startswith("**sales.csv** has 2 rows and 2 columns.")
    done = [event for event in events if isinstance(event, ToolCallDone)]
    assert [event.call_id for event in done] == [call.tool_call.id]


async def test_a_short_tool_runs_here(play: Callable[[Play], AgentSpec]) -> None:
    spec = with_tools(play(calling("short", a=1)), "short")
    events, _ = await run(spec, asked())
    assert output(events)[-1] == TextContent(text="{'a': 1}")
    spec = with_tools(play(calling("short", fail=True)), "short")
    events, _ = await run(spec, asked())
    assert output(events)[-1] == TextContent(text="failed: Say something else.")


@pytest.mark.parametrize(
    ("what", "said"),
    [("read", "read content"), ("write", "write content"), ("search", "search the chat")],
)
async def test_a_short_tool_has_no_chat_and_no_content(
    play: Callable[[Play], AgentSpec], what: str, said: str
) -> None:
    events, _ = await run(with_tools(play(calling("nosy", what=what)), "nosy"), asked())
    text = output(events)[-1]
    assert isinstance(text, TextContent)
    assert text.text.startswith(f"failed: A short tool cannot {said}")


LIMIT = uamp.DEFAULT_LIMITS.tool_result_bytes


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (1, "failed: odd was not run. Expected `str`, got `int` - at `$.how`."),
        ("time out", "failed: The tool failed inside the server."),
        ("no json", "failed: The tool failed inside the server."),
        ("nul", "a\N{REPLACEMENT CHARACTER}b?"),
        (str(LIMIT), "x" * LIMIT),
        (
            str(50 * 1024 * 1024),
            "The result has 52428800 bytes, too many to show. It begins:\n\n" + "x" * 2000,
        ),
    ],
)
async def test_a_short_tool_that_misbehaves_is_answered(
    play: Callable[[Play], AgentSpec], how: object, said: str
) -> None:
    events, _ = await run(with_tools(play(calling("odd", how=how)), "odd"), asked())
    assert output(events)[-1] == TextContent(text=said)


async def test_a_short_tool_that_hangs_is_left_behind(
    play: Callable[[Play], AgentSpec],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(short_tools, "SHORT_TOOL_SECONDS", 0.1)
    try:
        events, _ = await run(with_tools(play(calling("odd", how="hang")), "odd"), asked())
    finally:
        HANG.set()
    assert output(events)[-1] == TextContent(text="failed: The tool took too long.")
    assert "the tool odd is left behind" in caplog.text


async def test_a_tool_that_breaks_is_logged_and_reveals_nothing_of_its_inside(
    play: Callable[[Play], AgentSpec], caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_call: ToolCallData) -> ToolOutcome:
        raise RuntimeError("password=secret")

    broker = Broker(answer=broken)
    events, _ = await run(play(calling("weather")), asked(tools=[WEATHER]), broker=broker)
    assert output(events) == [TextContent(text="failed: The tool failed inside the server.")]
    assert "password=secret" in caplog.text


async def test_a_broker_may_end_the_run(play: Callable[[Play], AgentSpec]) -> None:
    ended = AgentError("No client answered.", code=uamp.ErrorCode.TIMEOUT)

    def late(_call: ToolCallData) -> ToolOutcome:
        raise ended

    spec = play(calling("weather"))
    assert await failure(spec, asked(tools=[WEATHER]), Broker(answer=late)) is ended


def offered(play: Callable[[Play], AgentSpec], seen: list[Tool]) -> AgentSpec:
    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        seen.extend(request.tools)
        yield Text("ok")

    return play(script)


async def test_client_tools_come_first_and_cannot_shadow_the_servers(
    play: Callable[[Play], AgentSpec], caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Tool] = []
    spec = with_tools(offered(play, seen), "short", "absent")
    shadow = ToolDefinition(function=FunctionDefinition(name="short", parameters={"a": 1}))
    again = ToolDefinition(function=FunctionDefinition(name="weather", description="another"))
    native = ToolDefinition(type="web_search")
    await run(spec, asked(tools=[shadow, WEATHER, again, native]))
    assert [(tool.name, tool.description) for tool in seen] == [("weather", "d"), ("short", "")]
    assert seen[0].parameters == {"type": "object", "properties": {}}
    assert seen[1].parameters == SHORT.parameters
    assert "no tool named absent" in caplog.text


async def test_instructions_are_the_agents_then_the_sessions_then_the_contexts(
    play: Callable[[Play], AgentSpec],
) -> None:
    seen: list[LLMRequest] = []

    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        seen.append(request)
        yield Text("ok")

    spec = with_tools(play(script), instructions="agent")
    history = [Message(role="system", content="context"), Message(role="user", content="hi")]
    await run(spec, RunRequest(response_id="r1", history=history, instructions="session"))
    await run(play(script), asked(params={"temperature": 0.5, "model": "x"}))
    assert [request.system for request in seen] == ["agent\n\nsession\n\ncontext", None]
    assert seen[1].params == {"temperature": 0.5}


async def test_all_calls_of_a_step_are_shown_before_the_first_one_has_a_row(
    play: Callable[[Play], AgentSpec],
) -> None:
    """The row of a call is written with the output so far: a takeover knows the other calls."""
    shown: list[str] = []
    known: list[list[str]] = []

    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        if isinstance(request.messages[-1], ToolResultMessage):
            yield Text("done")
            return
        for call_id in ("c1", "c2", "c3"):
            yield Call(name="csv_report", arguments={"content_id": CSV_ID}, call_id=call_id)

    def answer(_call: ToolCallData) -> ToolOutcome:
        known.append(list(shown))
        return ToolOutcome(result="kept")

    async def receive(event: Event | str) -> None:
        # An event of an answer with a price may have to wait.
        await asyncio.sleep(0)
        if isinstance(event, ResponseDelta) and event.delta.tool_call is not None:
            shown.append(event.delta.tool_call.id)

    spec = with_tools(play(script), "csv_report")
    await run_agent(spec, asked(), receive, broker=Broker(answer=answer), media=Media())
    assert known == [["c1", "c2", "c3"]] * 3


async def test_a_run_goes_on_with_calls_that_had_no_result(
    play: Callable[[Play], AgentSpec],
) -> None:
    broker = Broker(answer=lambda _: ToolOutcome(result="kept"))
    spec = with_tools(play(calling("csv_report")), "csv_report")
    said = (
        TextContent(text="let me look"),
        ToolCallContent(
            tool_call=ToolCallData(id="c7", name="csv_report", arguments='{"content_id":"x"}')
        ),
    )
    events, end = await run(spec, asked(resume=said), broker=broker)
    assert [(c.id, c.arguments) for c in broker.calls] == [("c7", '{"content_id":"x"}')]
    call, result, text = output(events, said[1])
    assert isinstance(result, ToolResultContent)
    assert result.tool_result.call_id == "c7"
    assert text == TextContent(text="kept")
    assert end.steps == 1
    assert call is said[1]


@pytest.mark.parametrize(
    ("tools", "code"), [((WEATHER,), "invalid_tool_result"), ((), "provider_error")]
)
async def test_a_result_that_is_refused_after_a_takeover_is_the_clients_too(
    play: Callable[[Play], AgentSpec], tools: tuple[ToolDefinition, ...], code: str
) -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Fail(UPPError("no such thing", code=ErrorCode.INVALID_REQUEST))

    said = (
        ToolCallContent(tool_call=ToolCallData(id="c7", name="weather", arguments="{}")),
        ToolResultContent(tool_result=uamp.ToolResultData(call_id="c7", result='"rain"')),
    )
    error = await failure(play(script), asked(tools=tools, resume=said))
    assert error.code == code


async def test_a_run_goes_on_within_a_text() -> None:
    whole, _ = await run(AgentSpec(id="a", name="echo"), asked("one two three"))
    rest, _ = await run(
        AgentSpec(id="a", name="echo"), asked("one two three", resume=(TextContent(text="one "),))
    )
    assert output(whole) == [TextContent(text="one two three")]
    assert output(rest) == [TextContent(text="two three")]


async def test_too_many_rounds_are_reported(play: Callable[[Play], AgentSpec]) -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Call(name="short", arguments={})

    spec = with_tools(play(script), "short", max_steps=2)
    error = await failure(spec, asked())
    assert error.code == "too_many_steps"
    assert error.message == "bot used its 2 tool rounds without coming to an answer."


async def test_an_agent_that_wrote_its_tokens_takes_no_other_step(
    play: Callable[[Play], AgentSpec],
) -> None:
    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        yield Text("one two three")
        if len(request.messages) < 5:
            yield Call(name="short", arguments={})

    spec = with_tools(play(script), "short", max_output_tokens=6)
    error = await failure(spec, asked())
    assert error.code == "too_many_steps"
    assert "tokens without coming to an answer; 6 are allowed." in error.message
    enough = with_tools(spec, "short", max_output_tokens=1000)
    events, end = await run(enough, asked())
    assert (end.steps, end.usage.output_tokens) == (3, 9)
    assert output(events)
    # What its last process had written counts too.
    again = await failure(enough, msgspec.structs.replace(asked(), written=995))
    assert "wrote 1001 tokens" in again.message


async def test_an_agent_is_shown_its_last_messages(play: Callable[[Play], AgentSpec]) -> None:
    seen: list[LLMRequest] = []

    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        seen.append(request)
        yield Text("ok")

    history = [
        Message(role="system", content="context"),
        *(Message(role="user", content=f"m{number}") for number in range(5)),
    ]
    request = RunRequest(response_id="r1", history=history)
    for most in (2, 6, None):
        await run(with_tools(play(script), history_messages=most), request)
    shown = [[message.text for message in request.messages] for request in seen]
    assert shown[0] == ["m3", "m4"]
    assert shown[1] == shown[2] == ["m0", "m1", "m2", "m3", "m4"]
    assert {request.system for request in seen} == {"context"}


@pytest.mark.parametrize("code", list(ErrorCode))
async def test_a_failure_is_reported_in_safe_words(
    play: Callable[[Play], AgentSpec], code: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Fail(UPPError("key sk-1 at http://inside", code=code, retry_after=3))

    with caplog.at_level(logging.WARNING):
        error = await failure(play(script), asked())
    assert "sk-1" not in str(error)
    assert "inside" not in str(error)
    assert "sk-1" in caplog.text
    assert error.retry_after == 3
    expected = {
        ErrorCode.RATE_LIMITED: "rate_limit_exceeded",
        ErrorCode.CONTEXT_LENGTH_EXCEEDED: "context_length_exceeded",
        ErrorCode.CONTENT_FILTERED: "content_filtered",
        ErrorCode.TIMEOUT: "timeout",
        ErrorCode.CANCELLED: "interrupted",
    }
    assert error.code == expected.get(code, "provider_error")


async def test_the_fail_agent_says_half_and_fails() -> None:
    events: list[Event] = []
    spec = AgentSpec(id="a", name="fail")
    with pytest.raises(AgentError) as caught:
        await run_agent(spec, asked(), keep_in(events), broker=Broker(), media=Media())
    assert len(events) > 3
    assert caught.value.code == "provider_error"


@pytest.mark.parametrize("kind", ["connected"])
async def test_only_hosted_agents_run_here(kind: str) -> None:
    error = await failure(AgentSpec(id="a", name="far", kind=kind), asked())
    assert error.code == "agent_offline"


@pytest.mark.parametrize(
    ("reason", "reported"), [("max_tokens", "length"), ("tool_use", "tool_calls"), ("odd", "odd")]
)
async def test_the_finish_reason_is_reported(
    play: Callable[[Play], AgentSpec], reason: str, reported: str
) -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Stop(reason)

    _, end = await run(play(script), asked())
    assert end.finish_reason == reported


async def test_what_the_receiver_raises_ends_the_run_and_its_script(
    play: Callable[[Play], AgentSpec],
) -> None:
    closed = asyncio.Event()

    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        try:
            while True:
                yield Text("x")
                await asyncio.sleep(0)
        finally:
            closed.set()

    def receive(_shown: Event | str) -> None:
        raise AgentError("No more.", code=uamp.ErrorCode.PAYMENT_REQUIRED)

    with pytest.raises(AgentError, match="No more"):
        await run_agent(play(script), asked(), receive, broker=Broker(), media=Media())
    assert closed.is_set()


async def test_events_are_received_one_at_a_time_however_many_tools_run(
    play: Callable[[Play], AgentSpec],
) -> None:
    kinds: list[str] = []
    receiving = 0

    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        if len(request.messages) > 1:
            yield Text("done")
            return
        for number in range(4):
            yield Call(name="short", arguments={}, call_id=f"c{number}")

    async def receive(shown: Event | str) -> None:
        nonlocal receiving
        receiving += 1
        await asyncio.sleep(0.005)
        assert receiving == 1
        receiving -= 1
        event = as_event(shown)
        if isinstance(event, ResponseDelta):
            kinds.append(event.delta.type)

    spec = with_tools(play(script), "short")
    await run_agent(spec, asked(), receive, broker=Broker(), media=Media())
    assert sorted(kinds) == ["text", *["tool_call"] * 4, *["tool_result"] * 4]


async def test_a_fast_model_lets_other_tasks_run(play: Callable[[Play], AgentSpec]) -> None:
    turns = 0

    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        for _ in range(1000):
            yield Text("x")

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await run(play(script), asked())
    task.cancel()
    assert turns > 10


async def test_cancelling_a_run_closes_the_providers_request() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="a")
        await asyncio.wait_for(exchange.gone.wait(), 60)

    async with serve(answer) as wire, aclosing_providers():
        spec = model_agent(wire.url)
        began = asyncio.Event()

        def receive(_shown: Event | str) -> None:
            began.set()

        task = asyncio.create_task(
            run_agent(spec, asked(), receive, broker=Broker(), media=Media())
        )
        await asyncio.wait_for(began.wait(), 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(wire.exchanges[0].gone.wait(), 2)
        assert task.cancelled()


@asynccontextmanager
async def aclosing_providers() -> AsyncIterator[None]:
    try:
        yield
    finally:
        await close_providers()


def model_agent(url: str) -> AgentSpec:
    return AgentSpec(
        id="a", name="gpt", provider="openai_compat", model="m1", options={"base_url": url}
    )


async def test_a_server_at_an_address_of_the_agents_own_counts_at_most_its_bytes(
    settings: Settings,
) -> None:
    settings.UAMP_RESERVE_REASONING_TOKENS = 0

    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="Hi")
        await exchange.chunk(usage={"prompt_tokens": 10**9, "completion_tokens": 10**9})
        await exchange.finish()

    async with serve(answer) as wire, aclosing_providers():
        _, end = await run(model_agent(wire.url), asked("Hello"))
    assert end.usage is not None
    assert (end.usage.input_tokens or 0) + (end.usage.output_tokens or 0) < 2000


async def test_an_agent_with_a_model_sends_its_media_and_streams_its_answer() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(reasoning_content="hm")
        await exchange.delta(content="a cat")
        await exchange.chunk(choices=[], usage={"prompt_tokens": 5, "completion_tokens": 2})
        await exchange.finish()

    png = b"\x89PNG\r\n\x1a\n"
    picture = ImageContent(image=MediaUrl(url=f"/api/content/{CSV_ID}"), format="png")
    async with serve(answer) as wire, aclosing_providers():
        events, end = await run(
            model_agent(wire.url),
            asked("what is it?", TextContent(text="what is it?"), picture),
            media=Media({CSV_ID: (png, "image/png")}),
        )
    assert wire.exchanges[0].body["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "what is it?"},
                {
                    "type": "text",
                    "text": f"[attachment: content_id={CSV_ID}, kind=image, mime_type=image/png]",
                },
                {
                    "type": "image_url",
                    "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="},
                },
            ],
        }
    ]
    assert [type(event) for event in events] == [Thinking, ResponseDelta, UsageDelta]
    assert end.usage.total_tokens == 7
    assert end.model == "m1"


async def test_an_agent_that_is_asked_again_after_its_own_answer_is_prompted_so() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.chunk(choices=[{"delta": {"content": "more"}, "finish_reason": "stop"}])
        await exchange.finish()

    said = [Message(role="user", content="hi"), Message(role="assistant", content="hello")]
    async with serve(answer) as wire, aclosing_providers():
        events, _ = await run(model_agent(wire.url), RunRequest(response_id="r1", history=said))
    # Vendors refuse a conversation that ends in the model's own words.
    assert [message["role"] for message in wire.exchanges[0].body["messages"]] == [
        *("user", "assistant", "user"),
    ]
    assert output(events) == [TextContent(text="more")]


async def test_an_anthropic_agent_answers_in_a_schema_and_counts_cached_tokens_apart() -> None:
    async def answer(exchange: Exchange) -> None:
        assert exchange.body["tool_choice"] == {"type": "tool", "name": "json_answer"}
        assert "response_format" not in exchange.body
        await exchange.send(STREAM_HEAD)
        usage = {"input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 1}
        await exchange.event(
            "message_start",
            message={"id": "msg_1", "usage": {**usage, "cache_creation_input_tokens": 20}},
        )
        thinking = {"type": "thinking_delta", "thinking": "hm"}
        await exchange.event("content_block_start", index=0, content_block={"type": "thinking"})
        await exchange.event("content_block_delta", index=0, delta=thinking)
        call = {"type": "tool_use", "id": "t1", "name": "json_answer"}
        await exchange.event("content_block_start", index=1, content_block=call)
        piece = {"type": "input_json_delta", "partial_json": '{"a": 1}'}
        await exchange.event("content_block_delta", index=1, delta=piece)
        await exchange.event(
            "message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 9}
        )
        await exchange.event("message_stop")

    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    wanted = ResponseFormat(
        type="json_schema", json_schema=JsonSchemaFormat(name="n", schema=schema)
    )
    async with serve(answer) as wire, aclosing_providers():
        options = {"base_url": wire.url}
        spec = AgentSpec(id="a", name="claude", provider="anthropic", model="m", options=options)
        events, end = await run(spec, asked(response_format=wanted))
    assert [type(event) for event in events] == [Thinking, ResponseDelta, UsageDelta]
    assert (end.finish_reason, end.steps) == ("stop", 1)
    assert end.usage == UsageStats(
        input_tokens=5,
        output_tokens=9,
        total_tokens=14,
        cached_tokens=120,
        cache_write_tokens=20,
    )
