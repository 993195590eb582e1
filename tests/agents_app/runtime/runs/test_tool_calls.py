"""The tools of a run: the client's through the broker, the server's here or as long tools."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

import uamp
from agents_app.runtime import short_tools
from agents_app.runtime.agent_run import AgentError, run_agent
from agents_app.selectors import AgentSpec
from agents_app.tools.registry import ToolOutcome
from tests.agents_app.run_context import CSV_ID, Broker, Context, Media
from tests.agents_app.runtime.runs.run_tools import HANG, SHORT
from tests.agents_app.runtime.runs.scripted_runs import (
    WEATHER,
    Play,
    calling,
    failure,
    output,
    request_of,
    run,
    with_tools,
)
from uamp.events import Event, ResponseDelta, ToolCallDone
from uamp.types.content import (
    FileContent,
    ImageContent,
    MediaUrl,
    TextContent,
    ToolCallContent,
    ToolCallData,
    ToolResultContent,
)
from uamp.types.session import FunctionDefinition, ToolDefinition
from upp import ErrorCode, LLMRequest, Tool, ToolResultMessage, UPPError
from upp.providers.scripted import Call, Fail, Step, Text


async def test_a_client_tool_goes_through_the_broker_and_shows_no_delta() -> None:
    broker = Broker(answer=lambda _: ToolOutcome(result='{"temp":22}'))
    spec = AgentSpec(id="a", name="tool-user")
    events, end = await run(spec, request_of("warm?", tools=[WEATHER]), broker=broker)
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
    events, _ = await run(spec, request_of("warm?", tools=[WEATHER]), broker=broker)
    report = "failed: two\nlines"
    if not is_error:
        report = f"answered: two\nlines\n\n[image: content_id={CSV_ID}, a map]"
    assert output(events) == [TextContent(text=f"The tool {report}")]


@pytest.mark.parametrize("result", ["[" * 100_000, '"half', "1e999"])
async def test_a_client_tool_that_answers_no_json_is_quoted(result: str) -> None:
    broker = Broker(answer=lambda _: ToolOutcome(result=result))
    spec = AgentSpec(id="a", name="tool-user")
    events, _ = await run(spec, request_of("warm?", tools=[WEATHER]), broker=broker)
    assert output(events) == [TextContent(text=f"The tool answered: {result}")]


async def test_a_failed_client_tool_is_reported_to_the_model() -> None:
    broker = Broker(answer=lambda _: ToolOutcome(result="no network", is_error=True))
    spec = AgentSpec(id="a", name="tool-user")
    events, _ = await run(spec, request_of(tools=[WEATHER]), broker=broker)
    assert output(events) == [TextContent(text="The tool failed: no network")]


async def test_the_report_of_a_csv_file_is_a_long_tool_with_a_chart() -> None:
    attached = FileContent(
        file=MediaUrl(url=f"/api/content/{CSV_ID}"), filename="sales.csv", mime_type="text/csv"
    )
    broker = Broker(context=Context(data=b"city,people\nRome,3\nParis,2\n"))
    spec = AgentSpec(id="a", name="report", tools=("csv_report",))
    events, _ = await run(spec, request_of("", attached), broker=broker)
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
    events, _ = await run(spec, request_of())
    assert output(events)[-1] == TextContent(text="{'a': 1}")
    spec = with_tools(play(calling("short", fail=True)), "short")
    events, _ = await run(spec, request_of())
    assert output(events)[-1] == TextContent(text="failed: Say something else.")


@pytest.mark.parametrize(
    ("what", "refused_act"),
    [("read", "read content"), ("write", "write content"), ("search", "search the chat")],
)
async def test_a_short_tool_has_no_chat_and_no_content(
    play: Callable[[Play], AgentSpec], what: str, refused_act: str
) -> None:
    events, _ = await run(with_tools(play(calling("nosy", what=what)), "nosy"), request_of())
    text = output(events)[-1]
    assert isinstance(text, TextContent)
    assert text.text.startswith(f"failed: A short tool cannot {refused_act}")


LIMIT = uamp.DEFAULT_LIMITS.tool_result_bytes


@pytest.mark.parametrize(
    ("how", "expected"),
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
    play: Callable[[Play], AgentSpec], how: object, expected: str
) -> None:
    events, _ = await run(with_tools(play(calling("odd", how=how)), "odd"), request_of())
    assert output(events)[-1] == TextContent(text=expected)


async def test_a_short_tool_that_hangs_is_left_behind(
    play: Callable[[Play], AgentSpec],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(short_tools, "SHORT_TOOL_SECONDS", 0.1)
    try:
        events, _ = await run(with_tools(play(calling("odd", how="hang")), "odd"), request_of())
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
    events, _ = await run(play(calling("weather")), request_of(tools=[WEATHER]), broker=broker)
    assert output(events) == [TextContent(text="failed: The tool failed inside the server.")]
    assert "password=secret" in caplog.text


async def test_a_broker_may_end_the_run(play: Callable[[Play], AgentSpec]) -> None:
    ended = AgentError("No client answered.", code=uamp.ErrorCode.TIMEOUT)

    def late(_call: ToolCallData) -> ToolOutcome:
        raise ended

    spec = play(calling("weather"))
    assert await failure(spec, request_of(tools=[WEATHER]), Broker(answer=late)) is ended


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
    await run(spec, request_of(tools=[shadow, WEATHER, again, native]))
    assert [(tool.name, tool.description) for tool in seen] == [("weather", "d"), ("short", "")]
    assert seen[0].parameters == {"type": "object", "properties": {}}
    assert seen[1].parameters == SHORT.parameters
    assert "no tool named absent" in caplog.text


async def test_all_calls_of_a_step_are_shown_before_the_first_one_has_a_row(
    play: Callable[[Play], AgentSpec],
) -> None:
    """The row of a call is written with the output so far: a takeover knows the other calls."""
    shown_ids: list[str] = []
    ids_by_call: list[list[str]] = []

    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        if isinstance(request.messages[-1], ToolResultMessage):
            yield Text("done")
            return
        for call_id in ("c1", "c2", "c3"):
            yield Call(name="csv_report", arguments={"content_id": CSV_ID}, call_id=call_id)

    def answer(_call: ToolCallData) -> ToolOutcome:
        ids_by_call.append(list(shown_ids))
        return ToolOutcome(result="kept")

    async def receive(event: Event | str) -> None:
        # An event of an answer with a price may have to wait.
        await asyncio.sleep(0)
        if isinstance(event, ResponseDelta) and event.delta.tool_call is not None:
            shown_ids.append(event.delta.tool_call.id)

    spec = with_tools(play(script), "csv_report")
    await run_agent(spec, request_of(), receive, broker=Broker(answer=answer), media=Media())
    assert ids_by_call == [["c1", "c2", "c3"]] * 3


async def test_a_resumed_run_makes_the_calls_that_had_no_result(
    play: Callable[[Play], AgentSpec],
) -> None:
    broker = Broker(answer=lambda _: ToolOutcome(result="kept"))
    spec = with_tools(play(calling("csv_report")), "csv_report")
    items = (
        TextContent(text="let me look"),
        ToolCallContent(
            tool_call=ToolCallData(id="c7", name="csv_report", arguments='{"content_id":"x"}')
        ),
    )
    events, end = await run(spec, request_of(resume=items), broker=broker)
    assert [(c.id, c.arguments) for c in broker.calls] == [("c7", '{"content_id":"x"}')]
    call, result, text = output(events, items[1])
    assert isinstance(result, ToolResultContent)
    assert result.tool_result.call_id == "c7"
    assert text == TextContent(text="kept")
    assert end.steps == 1
    assert call is items[1]


@pytest.mark.parametrize(
    ("tools", "code"), [((WEATHER,), "invalid_tool_result"), ((), "provider_error")]
)
async def test_a_result_that_is_refused_after_a_takeover_is_the_clients_too(
    play: Callable[[Play], AgentSpec], tools: tuple[ToolDefinition, ...], code: str
) -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Fail(UPPError("no such thing", code=ErrorCode.INVALID_REQUEST))

    items = (
        ToolCallContent(tool_call=ToolCallData(id="c7", name="weather", arguments="{}")),
        ToolResultContent(tool_result=uamp.ToolResultData(call_id="c7", result='"rain"')),
    )
    error = await failure(play(script), request_of(tools=tools, resume=items))
    assert error.code == code
