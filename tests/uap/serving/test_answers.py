"""The events of an agent's answer."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from uamp.errors import ErrorCode
from uamp.events import (
    InputText,
    ResponseCancelled,
    ResponseCreated,
    ResponseDelta,
    ResponseDone,
    ResponseError,
    Thinking,
    ToolCall,
    ToolResult,
    UsageDelta,
)
from uamp.events.base import Event
from uamp.types.content import Message, TextContent
from uap import Agent, AgentState, AgentStrategy, agent, memory_checkpoints
from uap.serving.answers import ServedAnswer, history_of
from uap.serving.link import RequestedAnswer
from upp import ErrorCode as ProviderErrorCode
from upp import LLMCapabilities, LLMRequest, Tool, ToolResultMessage, ToolUseStrategy, UPPError
from upp.providers.scripted import (
    Call,
    Fail,
    Reasoning,
    Script,
    ScriptedModel,
    ScriptedProvider,
    Step,
    Text,
)


class NoContents:
    """A server without contents."""

    async def load(self, content_id: str) -> tuple[bytes, str]:
        """Raise LookupError."""
        raise LookupError(content_id)


def bot_of(script: Script, **options: Any) -> Agent:
    return agent(model=ScriptedProvider(scripts={"s": script})("s"), **options)


async def answered(bot: Agent, event: InputText | None = None) -> list[Event]:
    events: list[Event] = []

    async def send(event: Event) -> None:
        events.append(event)

    answer = RequestedAnswer(
        agent="alice", session_id="s1", response_id="r1", input=event or InputText(text="hi")
    )
    await ServedAnswer(bot, answer, media=NoContents(), send=send).run()
    return events


async def greet(request: LLMRequest) -> AsyncIterator[Step]:
    yield Reasoning("hm")
    yield Text("Hel")
    yield Text(f"lo {len(request.messages)}")


async def test_an_answer_has_its_beginning_its_pieces_and_its_end() -> None:
    created, thinking, first, second, usage, done = await answered(bot_of(greet))

    assert created == ResponseCreated(response_id="r1", agent="alice")
    assert isinstance(thinking, Thinking)
    assert isinstance(first, ResponseDelta)
    assert isinstance(second, ResponseDelta)
    assert (first.delta.text, first.offset) == ("Hel", 0)
    assert (second.delta.text, second.offset) == ("lo 1", 3)
    assert isinstance(usage, UsageDelta)
    assert isinstance(done, ResponseDone)
    assert done.response is not None
    assert done.response.output[-1] == TextContent(text="Hello 1")
    assert (done.response.status, done.response.finish_reason) == ("completed", "stop")
    assert done.response.usage is not None
    assert done.response.usage.output_tokens


async def test_an_agent_reads_the_conversation_and_its_system_texts() -> None:
    seen: list[LLMRequest] = []

    async def look(request: LLMRequest) -> AsyncIterator[Step]:
        seen.append(request)
        yield Text("ok")

    history = (
        Message(role="system", content="Be kind."),
        Message(role="user", content="one"),
        Message(role="assistant", content="two"),
        Message(role="user", content="three"),
    )
    await answered(bot_of(look, system="Be brief."), InputText(text="three", messages=history))

    (request,) = seen
    assert request.system == "Be brief.\n\nBe kind."
    assert [message.text for message in request.messages if hasattr(message, "text")] == [
        "one",
        "two",
        "three",
    ]


async def test_a_model_without_tools_is_offered_none_and_keeps_to_the_options() -> None:
    """A server may offer the tools of its row to any agent."""
    seen: list[LLMRequest] = []

    async def look(request: LLMRequest) -> AsyncIterator[Step]:
        seen.append(request)
        yield Text("ok")

    @dataclass(frozen=True, kw_only=True)
    class Silent(ScriptedModel):
        capabilities: LLMCapabilities = field(default=LLMCapabilities(tools=False))

        def options(self, params: Mapping[str, Any]) -> frozenset[str]:
            return frozenset({"seed", *params})

        def adjusted(self, params: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
            return {**params, **options}

    tools = [{"type": "function", "function": {"name": "clock", "parameters": {}}}]
    context = {"tools": tools, "params": {"seed": 7, "top_p": 0.5}}
    model = Silent(script=look, model_id="s")
    events = await answered(agent(model=model), InputText(text="hi", context=context))

    assert isinstance(events[-1], ResponseDone)
    assert [(request.tools, request.params) for request in seen] == [((), {"seed": 7})]


async def test_calls_of_the_agents_own_tools_are_shown() -> None:
    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        if isinstance(request.messages[-1], ToolResultMessage):
            yield Text("4 degrees")
        else:
            yield Call(name="weather", arguments={}, call_id="c1")

    look = Tool(name="weather", description="", parameters={}, run=lambda _arguments: 4)
    events = await answered(bot_of(script, tools=[look]))

    delta_types = [event.delta.type for event in events if isinstance(event, ResponseDelta)]
    assert delta_types == ["tool_call", "tool_result", "text"]
    assert isinstance(events[-1], ResponseDone)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ProviderErrorCode.RATE_LIMITED, ErrorCode.RATE_LIMIT_EXCEEDED),
        (ProviderErrorCode.AUTHENTICATION_FAILED, ErrorCode.PROVIDER_ERROR),
    ],
)
async def test_a_failed_model_ends_the_answer_without_its_own_words(
    code: ProviderErrorCode, expected: ErrorCode
) -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Text("so far")
        yield Fail(UPPError("key sk-1 is wrong", code=code, provider="p"))

    end = (await answered(bot_of(script)))[-1]

    assert isinstance(end, ResponseError)
    assert end.error.code == expected
    assert "sk-1" not in end.error.message


async def test_code_of_the_agent_that_raises_ends_the_answer() -> None:
    def broken(*_arguments: object) -> None:
        raise RuntimeError("secret")

    end = (await answered(bot_of(greet, strategy=AgentStrategy(on_step_start=broken))))[-1]

    assert isinstance(end, ResponseError)
    assert end.error.code == ErrorCode.INTERNAL_ERROR
    assert "secret" not in end.error.message


async def test_too_many_rounds_of_tools_are_reported() -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Call(name="again", arguments={})

    again = Tool(name="again", description="", parameters={}, run=lambda _arguments: 1)
    bot = bot_of(script, tools=[again], tool_strategy=ToolUseStrategy(max_iterations=1))
    end = (await answered(bot))[-1]

    assert isinstance(end, ResponseError)
    assert end.error.code == ErrorCode.TOO_MANY_STEPS
    assert end.usage is not None


@pytest.mark.parametrize("interrupted", [False, True])
async def test_a_cancelled_answer_ends_with_what_there_is(*, interrupted: bool) -> None:
    has_begun = asyncio.Event()

    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Text("so far")
        has_begun.set()
        await asyncio.wait_for(asyncio.Event().wait(), 300)

    events: list[Event] = []

    async def send(event: Event) -> None:
        events.append(event)

    answer = RequestedAnswer(
        agent="a", session_id="s", response_id="r1", input=InputText(text="hi")
    )
    run = ServedAnswer(bot_of(script), answer, media=NoContents(), send=send)
    task = asyncio.create_task(run.run())
    await asyncio.wait_for(has_begun.wait(), 60)
    run.ends_interrupted = interrupted
    task.cancel()
    await task

    assert run.has_ended
    if interrupted:
        assert isinstance(events[-1], ResponseError)
        assert events[-1].error.code == ErrorCode.INTERRUPTED
    else:
        assert isinstance(events[-1], ResponseCancelled)
        assert events[-1].partial_output == (TextContent(text="so far"),)


async def test_the_conversation_of_one_chat_does_not_reach_another() -> None:
    store = memory_checkpoints()
    bot = bot_of(greet, checkpoints=store, session_id="mine")
    await bot.generate("before", AgentState.initial())
    checkpoint = await store.load("mine")

    await answered(bot)

    assert await store.load("mine") == checkpoint


def test_the_messages_of_an_input_are_the_whole_conversation() -> None:
    message = Message(role="user", content="a")

    assert history_of(InputText(text="a")) == (message,)
    assert history_of(InputText(text="(no text)", messages=(message,))) == (message,)


CLOCK = {"type": "function", "function": {"name": "clock", "description": "The time."}}


def asking(name: str = "clock") -> Script:
    """Return a script that calls a tool once, and says its result."""

    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        last = request.messages[-1]
        if isinstance(last, ToolResultMessage):
            (result,) = last.results
            yield Text(f"{'failed' if result.is_error else 'said'}: {result.result}")
        else:
            yield Call(name=name, arguments={"zone": "UTC"}, call_id="c1")

    return script


async def answered_with_results(bot: Agent, event: InputText, *results: ToolResult) -> list[Event]:
    """Answer, with these results as soon as a tool is called."""
    events: list[Event] = []

    async def send(event: Event) -> None:
        events.append(event)
        if isinstance(event, ToolCall):
            for result in results:
                run.take_result(result)

    answer = RequestedAnswer(agent="alice", session_id="s1", response_id="r1", input=event)
    run = ServedAnswer(bot, answer, media=NoContents(), send=send)
    await run.run()
    return events


async def test_a_tool_of_the_client_is_asked_for_and_its_result_read() -> None:
    event = InputText(text="hi", context={"tools": [CLOCK]})
    late = ToolResult(call_id="c1", result='"late"')
    other = ToolResult(call_id="c9", result='"of no call"')
    noon = ToolResult(call_id="c1", result='"noon"')

    events = await answered_with_results(bot_of(asking()), event, other, noon, late)

    (call,) = [server_event for server_event in events if isinstance(server_event, ToolCall)]
    assert (call.call_id, call.name, call.arguments) == ("c1", "clock", '{"zone":"UTC"}')
    # The server shows the call and its result: the daemon does not.
    assert {
        server_event.delta.type
        for server_event in events
        if isinstance(server_event, ResponseDelta)
    } == {"text"}
    assert isinstance(events[-1], ResponseDone)
    assert events[-1].response is not None
    assert events[-1].response.output == (TextContent(text="said: noon"),)


async def test_a_call_that_the_client_refuses_is_an_error_for_the_model() -> None:
    event = InputText(text="hi", context={"tools": [CLOCK]})
    refused = ToolResult(call_id="c1", result="no such tool", is_error=True)

    end = (await answered_with_results(bot_of(asking()), event, refused))[-1]

    assert isinstance(end, ResponseDone)
    assert end.response is not None
    (text_item,) = end.response.output
    assert isinstance(text_item, TextContent)
    assert text_item.text.startswith("failed:")
    assert "no such tool" in text_item.text


async def test_the_agents_own_tool_keeps_its_name() -> None:
    own_tool = Tool(name="clock", description="", parameters={}, run=lambda _arguments: "mine")
    event = InputText(text="hi", context={"tools": [CLOCK, {"type": "web_search"}]})

    events = await answered_with_results(bot_of(asking(), tools=[own_tool]), event)

    assert not [server_event for server_event in events if isinstance(server_event, ToolCall)]
    assert isinstance(events[-1], ResponseDone)


async def test_invalid_tools_are_left_out() -> None:
    events = await answered(
        bot_of(greet), InputText(text="hi", context={"tools": [{"function": 1}]})
    )

    assert isinstance(events[-1], ResponseDone)
