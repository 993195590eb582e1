"""The tool loop, with the scripted provider."""

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from tests.upp.tool_scripts import calls_then_answers, tool
from upp import (
    AfterCallResult,
    AssistantMessage,
    AudioBlock,
    Base64Source,
    BeforeCallResult,
    DocumentBlock,
    ErrorCode,
    ImageBlock,
    LLMCapabilities,
    LLMRequest,
    Message,
    Middleware,
    ProviderConfig,
    StreamEvent,
    TextBlock,
    TextSource,
    TokenUsage,
    Tool,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    ToolUseStrategy,
    TooManyRoundsError,
    UPPError,
    UserMessage,
    VideoBlock,
    current_tool_call,
    llm,
)
from upp.conversation.messages import UserContent
from upp.providers.scripted import Call, Reasoning, ScriptedModel, Step, Text


async def keeps_calling(request: LLMRequest) -> AsyncIterator[Step]:
    yield Call(name="t", arguments={"round": len(request.messages)})


async def test_generate_returns_inputs_and_outputs_without_the_history() -> None:
    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        yield Text(f"{len(request.messages)} messages, ")
        yield Text(f"system {request.system}, params {request.params}")

    model = llm(model=ScriptedModel(script=script), system="be kind", params={"top_p": 1})
    history: list[Message] = [
        UserMessage(content=(TextBlock(text="old"),)),
        AssistantMessage(content=()),
    ]
    turn = await model.generate(history, "one", TextBlock(text="two"))
    assert [message.text for message in turn.messages[:2]] == ["one", "two"]
    assert turn.messages[2:] == (turn.response,)
    assert turn.response.text == "4 messages, system be kind, params {'top_p': 1}"
    assert (turn.cycles, turn.stop_reason, turn.data) == (1, "end_turn", None)


async def test_calls_of_a_round_run_together_and_keep_their_order() -> None:
    both = asyncio.Barrier(2)

    async def meet(arguments: dict[str, Any]) -> str:
        await asyncio.wait_for(both.wait(), 60)
        await asyncio.sleep(0.02 if arguments["n"] == 1 else 0)
        return f"r{arguments['n']}"

    script = calls_then_answers(
        Call(name="meet", arguments={"n": 1}, call_id="a"),
        Call(name="meet", arguments={"n": 2}, call_id="b"),
    )
    model = llm(model=ScriptedModel(script=script), tools=[tool("meet", meet)])
    turn = await asyncio.wait_for(model.generate([], "go"), 2)
    assert turn.response.text == "r1 r2"
    assert [execution.tool_call_id for execution in turn.tool_executions] == ["b", "a"]
    assert turn.cycles == 2
    assert turn.tool_executions[0].approved is None


async def test_usage_is_the_sum_of_the_cycles() -> None:
    script = calls_then_answers(Call(name="t", arguments={}))
    model = llm(model=ScriptedModel(script=script), tools=[tool("t", lambda _: "done")])
    turn = await model.generate([], "go on")
    assert turn.usage == TokenUsage(input_tokens=2 + 3, output_tokens=1, total_tokens=6)


async def test_a_sync_tool_runs_in_a_thread_and_knows_its_call() -> None:
    def where(_arguments: dict[str, Any]) -> str:
        on_main = threading.current_thread() is threading.main_thread()
        return f"{on_main} {current_tool_call.get().tool_call_id}"

    script = calls_then_answers(Call(name="where", arguments={}, call_id="c9"))
    model = llm(model=ScriptedModel(script=script), tools=[tool("where", where)])
    assert (await model.generate([], "go")).response.text == "False c9"


async def test_a_callable_that_returns_an_awaitable_is_awaited() -> None:
    async def later() -> str:
        return "later"

    script = calls_then_answers(Call(name="t", arguments={}))
    model = llm(model=ScriptedModel(script=script), tools=[tool("t", lambda _: later())])
    assert (await model.generate([], "go")).response.text == "later"


def broken(_arguments: dict[str, Any]) -> None:
    raise ValueError("it is broken")


def speechless(_arguments: dict[str, Any]) -> None:
    raise KeyError


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (Call(name="broken", arguments={}), "it is broken!"),
        (Call(name="speechless", arguments={}), "KeyError!"),
        (Call(name="absent", arguments={}), "Tool 'absent' not found!"),
        (Call(name="broken", arguments='{"a":'), "The arguments are not a JSON object.!"),
    ],
)
async def test_what_goes_wrong_in_a_call_is_reported_to_the_model(call: Call, said: str) -> None:
    tools = [tool("broken", broken), tool("speechless", speechless)]
    model = llm(model=ScriptedModel(script=calls_then_answers(call)), tools=tools)
    turn = await model.generate([], "go")
    assert turn.response.text == said
    assert turn.tool_executions[0].is_error


async def test_a_upp_error_in_a_tool_ends_the_generation_and_the_other_calls() -> None:
    ended = asyncio.Event()
    cause = ValueError("why")

    async def fail(_arguments: dict[str, Any]) -> None:
        raise UPPError("stop", code=ErrorCode.CANCELLED) from cause

    async def wait(_arguments: dict[str, Any]) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    script = calls_then_answers(Call(name="wait", arguments={}), Call(name="fail", arguments={}))
    tools = [tool("fail", fail), tool("wait", wait)]
    with pytest.raises(UPPError, match="stop") as caught:
        await llm(model=ScriptedModel(script=script), tools=tools).generate([], "go")
    assert caught.value.__cause__ is cause
    assert ended.is_set()


async def test_an_approval_decides_and_is_recorded() -> None:
    async def approval(arguments: dict[str, Any]) -> bool:
        return bool(arguments["ok"])

    script = calls_then_answers(
        Call(name="t", arguments={"ok": True}), Call(name="t", arguments={"ok": False})
    )
    tools = [tool("t", lambda _: "ran", approval=approval)]
    turn = await llm(model=ScriptedModel(script=script), tools=tools).generate([], "go")
    assert turn.response.text == "ran The call was not approved.!"
    assert sorted(bool(e.approved) for e in turn.tool_executions) == [False, True]


async def test_an_approval_that_raises_ends_the_generation() -> None:
    script = calls_then_answers(Call(name="t", arguments={}))
    tools = [tool("t", lambda _: "ran", approval=broken)]
    with pytest.raises(ValueError, match="it is broken"):
        await llm(model=ScriptedModel(script=script), tools=tools).generate([], "go")


async def test_the_round_after_the_last_one_is_refused() -> None:
    rounds: list[int] = []
    tools = [tool("t", lambda arguments: rounds.append(arguments["round"]))]
    model = llm(model=ScriptedModel(script=keeps_calling), tools=tools, max_iterations=2)
    with pytest.raises(TooManyRoundsError) as caught:
        await model.generate([], "go")
    assert len(rounds) == 2
    assert caught.value.code == ErrorCode.INVALID_REQUEST


async def test_no_limit_means_no_limit() -> None:
    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        if len(request.messages) < 40:
            yield Call(name="t", arguments={})
        else:
            yield Text("enough")

    tools = [tool("t", lambda _: "")]
    model = llm(model=ScriptedModel(script=script), tools=tools, max_iterations=None)
    assert (await model.generate([], "go")).response.text == "enough"


@pytest.mark.parametrize("more", [{"max_iterations": 0, "tools": [tool("t", broken)]}, {}])
async def test_zero_rounds_and_no_tools_give_the_calls_back(more: dict[str, Any]) -> None:
    turn = await llm(model=ScriptedModel(script=keeps_calling), **more).generate([], "go")
    assert turn.response.has_tool_calls
    assert turn.tool_executions == ()
    assert turn.stop_reason == "tool_use"


async def test_a_history_that_ends_in_calls_starts_with_them() -> None:
    asked = AssistantMessage(
        content=(TextBlock(text="let me see"),),
        tool_calls=(
            ToolCall(tool_call_id="c1", tool_name="t", arguments={"n": 1}),
            ToolCall(tool_call_id="c2", tool_name="t", arguments={"n": 2}),
        ),
    )
    answered = ToolResultMessage(results=(ToolResult(tool_call_id="c1", result="kept"),))
    script = calls_then_answers(Call(name="t", arguments={"n": 3}))
    model = llm(model=ScriptedModel(script=script), tools=[tool("t", lambda a: f"fresh {a['n']}")])
    turn = await model.generate([asked, answered])
    assert turn.response.text == "kept fresh 2"
    assert turn.cycles == 1
    assert [type(message) for message in turn.messages] == [ToolResultMessage, AssistantMessage]


async def test_structured_output_is_parsed_and_ends_the_loop() -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Text('{"a": [1]}')

    model = llm(model=ScriptedModel(script=script), structure={"type": "object"})
    assert (await model.generate([], "go")).data == {"a": [1]}


async def test_structured_output_that_is_no_json_is_no_data() -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Text("I would rather talk")

    model = llm(model=ScriptedModel(script=script), structure={"type": "object"})
    assert (await model.generate([], "go")).data is None


NOTHING = LLMCapabilities(streaming=False, tools=False, structured_output=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tools": [tool("t", broken)]}, "does not support tools"),
        ({"structure": {}}, "does not support structured output"),
    ],
)
def test_what_the_api_lacks_is_refused(options: dict[str, Any], message: str) -> None:
    model = ScriptedModel(script=keeps_calling, capabilities=NOTHING)
    with pytest.raises(UPPError, match=message) as caught:
        llm(model=model, **options)
    assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(UPPError, match="same name"):
        llm(model=ScriptedModel(script=keeps_calling), tools=[tool("t", broken)] * 2)


def test_streaming_is_refused_where_there_is_none() -> None:
    model = llm(model=ScriptedModel(script=keeps_calling, capabilities=NOTHING))
    with pytest.raises(UPPError, match="does not support streaming"):
        model.stream([], "go")


@pytest.mark.parametrize(
    "block",
    [
        ImageBlock(source=Base64Source(data=""), mime_type="image/png"),
        DocumentBlock(source=TextSource(data=""), mime_type="text/plain"),
        AudioBlock(data=b"", mime_type="audio/wav"),
        VideoBlock(data=b"", mime_type="video/mp4"),
    ],
)
async def test_media_that_the_api_lacks_are_refused(block: UserContent) -> None:
    model = llm(model=ScriptedModel(script=keeps_calling, capabilities=NOTHING))
    history: list[Message] = [
        AssistantMessage(content=()),
        UserMessage(content=(TextBlock(text=""), block)),
    ]
    with pytest.raises(UPPError, match=type(block).__name__) as caught:
        await model.generate(history)
    assert caught.value.code == ErrorCode.INVALID_REQUEST


async def test_a_provider_without_a_response_is_an_invalid_response() -> None:
    class Silent:
        model_id = provider = "silent"
        capabilities = LLMCapabilities()

        async def stream(self, _request: LLMRequest) -> Any:
            yield StreamEvent(type="message_start")

    with pytest.raises(UPPError) as caught:
        await llm(model=Silent()).generate([], "go")
    assert caught.value.code == ErrorCode.INVALID_RESPONSE


async def test_calls_run_by_hand_wait_for_those_that_they_come_after() -> None:
    log: list[str] = []

    async def work(arguments: dict[str, Any]) -> str:
        log.append(f"+{arguments['n']}")
        await asyncio.sleep(0.01)
        log.append(f"-{arguments['n']}")
        return str(arguments["n"])

    async def note(event: StreamEvent) -> None:
        log.append(f"{event.type} {event.index}")

    model = llm(model=ScriptedModel(script=keeps_calling), tools=[tool("t", work)])
    calls = [ToolCall(tool_call_id=f"c{n}", tool_name="t", arguments={"n": n}) for n in (1, 2, 3)]
    answer, executions = await model.run_tools(calls, after={0: [1, 2]}, emit=note)

    assert [entry for entry in log if " " not in entry] == ["+2", "+3", "-2", "-3", "+1", "-1"]
    assert log[-1] == "tool_execution_end 0"
    assert [result.result for result in answer.results] == ["1", "2", "3"]
    assert [execution.tool_call_id for execution in executions] == ["c2", "c3", "c1"]


async def test_the_first_argument_may_be_an_input() -> None:
    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        yield Text("+".join(message.text for message in request.messages))

    model = llm(model=ScriptedModel(script=script))
    assert (await model.generate("a", "b")).response.text == "a+b"
    assert (await model.generate(TextBlock(text="c"))).response.text == "c"
    turn = await model.stream(UserMessage(content=(TextBlock(text="d"),)), "e")
    assert [message.text for message in turn.messages] == ["d", "e", "d+e"]


async def test_a_history_of_something_else_is_refused() -> None:
    model = llm(model=ScriptedModel(script=keeps_calling))
    with pytest.raises(UPPError, match="not str") as caught:
        await model.generate(["hi"])  # type: ignore[list-item] # what is refused
    assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_options_are_changed_in_another_instance() -> None:
    tools = [tool("t", broken)]
    config = ProviderConfig(timeout=1)
    model = llm(
        model=ScriptedModel(script=keeps_calling),
        system="s",
        tools=tools,
        structure={"type": "object"},
        params={"p": 1},
        config=config,
        max_iterations=3,
        middleware=[Middleware()],
    )
    other = model.with_options(max_iterations=0, structure=None)
    assert other == replace(model, structure=None, tool_strategy=ToolUseStrategy(max_iterations=0))
    assert (model.max_iterations, other.max_iterations) == (3, 0)
    assert other.config is config
    assert model.with_options(tool_strategy=ToolUseStrategy()).max_iterations == 10
    with pytest.raises(UPPError, match="same name"):
        model.with_options(tools=tools * 2)


async def test_hooks_of_the_strategy_see_each_call_in_order() -> None:
    log: list[str] = []

    async def on_tool_call(tool: Tool, arguments: dict[str, Any]) -> None:
        log.append(f"call {tool.name} {arguments}")

    def on_before_call(_tool: Tool, arguments: dict[str, Any]) -> BeforeCallResult:
        log.append("before")
        return BeforeCallResult(params={**arguments, "more": 1})

    def approval(arguments: dict[str, Any]) -> bool:
        log.append(f"approval {arguments}")
        return True

    def run(arguments: dict[str, Any]) -> str:
        log.append(f"run {current_tool_call.get().arguments}")
        return str(arguments)

    async def on_after_call(
        _tool: Tool, _arguments: dict[str, Any], result: Any
    ) -> AfterCallResult:
        log.append(f"after {result}")
        return AfterCallResult(result="replaced")

    strategy = ToolUseStrategy(
        on_tool_call=on_tool_call, on_before_call=on_before_call, on_after_call=on_after_call
    )
    model = llm(
        model=ScriptedModel(script=calls_then_answers(Call(name="t", arguments={"n": 1}))),
        tools=[tool("t", run, approval=approval)],
        tool_strategy=strategy,
    )
    turn = await model.generate("go")
    changed = {"n": 1, "more": 1}
    assert log == [
        "call t {'n': 1}",
        "before",
        f"approval {changed}",
        f"run {changed}",
        f"after {changed}",
    ]
    assert turn.response.text == "replaced"
    assert turn.tool_executions[0].arguments == changed


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (True, "ran"),
        (BeforeCallResult(), "ran"),
        (False, "Tool execution skipped!"),
        (BeforeCallResult(proceed=False), "Tool execution skipped!"),
    ],
)
async def test_a_hook_decides_whether_a_call_runs(decision: Any, said: str) -> None:
    strategy = ToolUseStrategy(
        on_before_call=lambda _tool, _arguments: decision, on_after_call=lambda *_: None
    )
    model = llm(
        model=ScriptedModel(script=calls_then_answers(Call(name="t", arguments={}))),
        tools=[tool("t", lambda _: "ran")],
        tool_strategy=strategy,
    )
    assert (await model.generate("go")).response.text == said


@pytest.mark.parametrize("hook", ["on_tool_call", "on_before_call", "on_after_call"])
async def test_a_hook_that_raises_makes_an_error_result(hook: str) -> None:
    def raising(*_arguments: Any) -> Any:
        raise ValueError(f"{hook} is broken")

    hooks: dict[str, Any] = {hook: raising}
    model = llm(
        model=ScriptedModel(script=calls_then_answers(Call(name="t", arguments={}))),
        tools=[tool("t", lambda _: "ran")],
        tool_strategy=ToolUseStrategy(**hooks),
    )
    assert (await model.generate("go")).response.text == f"{hook} is broken!"


async def test_errors_and_the_limit_are_reported_to_the_strategy() -> None:
    log: list[str] = []

    async def on_error(tool: Tool, arguments: dict[str, Any], error: Exception) -> None:
        log.append(f"{tool.name} {arguments} {error}")

    strategy = ToolUseStrategy(
        max_iterations=1,
        on_error=on_error,
        on_max_iterations=lambda rounds: log.append(f"limit {rounds}"),
    )
    model = llm(
        model=ScriptedModel(script=keeps_calling), tools=[tool("t", broken)], tool_strategy=strategy
    )
    with pytest.raises(TooManyRoundsError):
        await model.generate("go")
    assert log == ["t {'round': 1} it is broken", "limit 1"]


async def test_structured_output_streams_as_an_object_beside_its_text() -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Reasoning("hm")
        yield Text('{"a"')
        yield Text(": 1}")

    model = llm(model=ScriptedModel(script=script), structure={"type": "object"})
    result = model.stream("go")
    events = [(event.type, event.delta.text) async for event in result if event.delta.text]
    assert events == [
        ("reasoning_delta", "hm"),
        ("text_delta", '{"a"'),
        ("object_delta", '{"a"'),
        ("text_delta", ": 1}"),
        ("object_delta", ": 1}"),
    ]
    assert (await result).data == {"a": 1}


async def test_a_tool_that_changes_its_arguments_does_not_change_the_conversation() -> None:
    script = calls_then_answers(Call(name="t", arguments={"list": [1]}))
    eats = tool("t", lambda arguments: arguments.pop("list").pop())
    turn = await llm(model=ScriptedModel(script=script), tools=[eats]).generate([], "go")
    asked = turn.messages[1]

    assert isinstance(asked, AssistantMessage)
    assert asked.tool_calls[0].arguments == {"list": [1]}
    assert turn.tool_executions[0].arguments == {"list": [1]}
    assert turn.response.text == "1"


@pytest.mark.parametrize(
    ("name", "reported"),
    [("sytem", r"no option 'sytem'\. Did you mean 'system'"), ("zzz", r"no option 'zzz'\.$")],
)
def test_an_option_that_there_is_not_is_refused(name: str, reported: str) -> None:
    options: Any = {name: "x"}
    with pytest.raises(TypeError, match=reported):
        llm(model=ScriptedModel(script=calls_then_answers()), **options)
