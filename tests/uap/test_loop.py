"""The loop, and what holds for the steps of every strategy."""

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.uap.agents import (
    Answers,
    call,
    content,
    followed,
    kinds,
    message_lines,
    model,
    requests,
    tool,
)
from uap import AgentState, AgentStrategy, ExecutionStrategy, GenerateResult, agent
from uap.execution import loop, plan, react
from upp import (
    AssistantMessage,
    ErrorCode,
    LLMRequest,
    LLMResponse,
    StreamEvent,
    TextBlock,
    TokenUsage,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    ToolUseStrategy,
    TooManyRoundsError,
    UPPError,
    UserMessage,
)
from upp.providers.scripted import Fail, ScriptedModel, Step, Text, Usage

START = AgentState.initial()


async def test_an_answer_without_calls_is_one_step() -> None:
    """UAP §5.2: loop() is the simplest strategy."""
    stream = agent(model=model("hello")).stream("hi", START)

    assert kinds(await followed(stream)) == ["step_start 1", "step_end 1"]
    result = await stream
    assert message_lines(result.state.messages) == ["user hi", "assistant hello"]
    assert result.state.step == 1
    assert result.turn.messages == result.state.messages


async def test_a_step_is_one_inference_and_its_tools() -> None:
    """UAP §5.2: the tool loop; the turn is about all of its steps."""
    usage = [TokenUsage(input_tokens=n, output_tokens=1, total_tokens=n + 1) for n in (1, 2, 3)]
    answers: list[list[Step]] = [
        [call("t", "a", n=1), Usage(usage[0])],
        [call("t", "b", n=2), Usage(usage[1])],
        [Text("done"), Usage(usage[2])],
    ]
    bot = agent(model=model(*answers), tools=[tool("t", lambda arguments: arguments["n"])])
    stream = bot.stream("go", START)

    assert kinds(await followed(stream)) == [
        *("step_start 1", "action 1", "observation 1", "step_end 1"),
        *("step_start 2", "action 2", "observation 2", "step_end 2"),
        *("step_start 3", "step_end 3"),
    ]
    turn, state = (await stream).turn, (await stream).state
    assert message_lines(state.messages) == [
        *("user go", "assistant", "results 1", "assistant", "results 2", "assistant done"),
    ]
    assert state.step == 3
    assert turn.messages == state.messages
    assert (turn.cycles, turn.response.text, turn.stop_reason) == (3, "done", "end_turn")
    assert turn.usage == TokenUsage(input_tokens=6, output_tokens=3, total_tokens=9)
    assert [execution.tool_call_id for execution in turn.tool_executions] == ["a", "b"]


async def test_the_history_is_sent_and_is_not_part_of_the_turn() -> None:
    """UAP §14.2 MUST NOT hide conversation history: all of it is in the state."""
    bot = agent(model=model(call("t"), "one", "two"), tools=[tool("t")])
    first = await bot.generate("go", START)
    second = await bot.generate("again", first.state)

    assert requests(bot)[-1].messages == second.state.messages[:-1]
    assert second.state.messages == (*first.state.messages, *second.turn.messages)
    assert message_lines(second.turn.messages) == ["user again", "assistant two"]
    assert second.state.step == 1


@pytest.mark.parametrize(("limit", "inferences"), [(0, 1), (1, 1), (3, 3)])
async def test_the_limit_of_the_loop_ends_the_run_without_an_error(
    limit: int, inferences: int
) -> None:
    """UAP §5.2: maxIterations is the number of tool rounds."""
    ran: list[object] = []
    bot = agent(
        model=model(call("t")),
        tools=[tool("t", ran.append)],
        execution=loop(max_iterations=limit),
    )
    result = await bot.generate("go", START)

    assert (len(ran), len(requests(bot)), result.state.step) == (limit, inferences, inferences)
    assert result.turn.response.has_tool_calls


async def test_nothing_is_limited_unless_it_is_asked_for() -> None:
    """UAP §2.4 SHALL NOT, §14.2 MUST: maxIterations and toolStrategy.maxIterations are infinite."""
    for strategy in (None, ToolUseStrategy()):
        bot = agent(
            model=model(*[call("t")] * 30, "done"), tools=[tool("t")], tool_strategy=strategy
        )

        assert (await bot.generate("go", START)).state.step == 31


async def test_the_limit_of_the_tool_strategy_counts_over_steps_and_is_an_error() -> None:
    """UAP §10.3: toolStrategy goes to the model's tools as it is."""
    reports: list[object] = []
    bot = agent(
        model=model(call("t")),
        tools=[tool("t")],
        tool_strategy=ToolUseStrategy(max_iterations=2, on_max_iterations=reports.append),
        strategy=AgentStrategy(
            on_error=lambda error, state: reports.append((error.args, state.step))
        ),
    )

    with pytest.raises(TooManyRoundsError) as raised:
        await bot.generate("go", START)
    assert raised.value.code is ErrorCode.INVALID_REQUEST
    assert reports == [2, (("The model requested more than 2 tool rounds.",), 3)]


async def test_zero_rounds_give_the_calls_back() -> None:
    """UAP §10.3: toolStrategy goes to the model's tools as it is."""
    bot = agent(
        model=model(call("t")),
        tools=[tool("t")],
        tool_strategy=ToolUseStrategy(max_iterations=0),
    )
    result = await bot.generate("go", START)

    assert message_lines(result.state.messages) == ["user go", "assistant"]
    assert result.turn.response.tool_calls[0].tool_call_id == "c1"


async def test_hooks_of_the_tool_strategy_fire_while_tools_run() -> None:
    """UAP §10.3: ToolUseStrategy hooks fire during execution, AgentStrategy hooks around it."""
    log: list[str] = []
    bot = agent(
        model=model(call("t"), "done"),
        tools=[tool("t", lambda _: log.append("run"))],
        tool_strategy=ToolUseStrategy(on_tool_call=lambda tool, _: log.append(f"call {tool.name}")),
        strategy=AgentStrategy(
            on_act=lambda step, calls: log.append(f"act {step} {calls[0].tool_name}"),
            on_observe=lambda step, done: log.append(f"observe {step} {len(done)}"),
        ),
    )
    await bot.generate("go", START)

    assert log == ["act 1 t", "call t", "run", "observe 1 1"]


async def test_calls_without_tools_end_the_run() -> None:
    bot = agent(model=model(call("t")))
    result = await bot.generate("go", START)

    assert result.turn.response.has_tool_calls
    assert result.state.step == 1


async def test_structured_data_end_the_run() -> None:
    """UAP §4.2: structure is passed through."""
    structure = {"type": "object"}
    bot = agent(model=model(call("t"), '{"a": 1}'), tools=[tool("t")], structure=structure)
    result = await bot.generate("go", START)

    assert result.turn.data == {"a": 1}
    assert requests(bot)[0].structure == structure


async def test_calls_beside_structured_data_are_not_run() -> None:
    @dataclass(frozen=True)
    class Both(ScriptedModel):
        async def stream(
            self, request: LLMRequest
        ) -> AsyncGenerator[StreamEvent | LLMResponse, None]:
            async for event in super().stream(request):
                yield event if isinstance(event, StreamEvent) else replace(event, data={"a": 1})

    ran: list[object] = []
    structured = Both(script=Answers(call("t")))
    bot = agent(model=structured, tools=[tool("t", ran.append)], structure={"type": "object"})
    result = await bot.generate("go", START)

    assert (ran, result.turn.data) == ([], {"a": 1})


async def test_a_new_input_answers_interrupted_calls_with_errors() -> None:
    bot = agent(model=model(call("t"), "fine"), tools=[tool("t")], execution=loop(max_iterations=0))
    stopped = (await bot.generate("go", START)).state
    result = await bot.generate("never mind", stopped)

    assert message_lines(result.state.messages[2:]) == [
        "results The call was interrupted.!",
        "user never mind",
        "assistant fine",
    ]
    assert message_lines(result.turn.messages) == message_lines(result.state.messages[2:])


async def test_without_an_input_open_calls_are_run_and_the_run_continues() -> None:
    bot = agent(model=model(call("t"), "fine"), tools=[tool("t")], execution=loop(max_iterations=0))
    stopped = (await bot.generate("go", START)).state
    stream = agent(model=model("fine"), tools=[tool("t")]).stream(None, stopped)

    assert kinds(await followed(stream)) == [
        *("step_start 1", "action 1", "observation 1", "step_end 1"),
    ]
    result = await stream
    assert message_lines(result.turn.messages) == ["results done", "assistant fine"]
    assert [done.tool_call_id for done in result.turn.tool_executions] == ["c1"]


async def test_results_may_be_the_input_and_calls_that_they_leave_open_are_run() -> None:
    two = [call("t", "a"), call("t", "b")]
    bot = agent(model=model(two), tools=[tool("t")], execution=loop(max_iterations=0))
    stopped = (await bot.generate("go", START)).state
    results = ToolResultMessage(results=(ToolResult(tool_call_id="a", result="by hand"),))
    result = await agent(model=model("fine"), tools=[tool("t")]).generate(results, stopped)

    assert message_lines(result.turn.messages) == [
        "results by hand",
        "results done",
        "assistant fine",
    ]
    assert result.turn.messages[0] is results


async def test_an_error_of_the_model_is_raised_with_its_code() -> None:
    error = UPPError("down", code=ErrorCode.PROVIDER_ERROR)
    bot = agent(model=model([Text("half"), Fail(error)]))

    with pytest.raises(UPPError, match="down") as raised:
        await bot.generate("go", START)
    assert raised.value is error


async def test_a_message_is_used_as_it_is() -> None:
    """UAP §4.4, §2.1: the input is a text or a message of UPP, and is not wrapped."""
    message = UserMessage(content=(TextBlock(text="hi"),), metadata={"a": 1})
    result = await agent(model=model("x")).generate(message, START)

    assert result.state.messages[0] is message


async def test_the_loop_continues_after_a_tool_error() -> None:
    def broken(_arguments: object) -> None:
        raise ValueError("no such file")

    bot = agent(model=model(call("t"), "sorry"), tools=[tool("t", broken)])
    result: GenerateResult = await bot.generate("go", START)

    assert message_lines(result.state.messages)[2:] == ["results no such file!", "assistant sorry"]
    assert result.turn.tool_executions[0].is_error


def test_calls_are_those_of_upp() -> None:
    """UAP §1.4 MUST: UPP's types are used directly."""
    assert ToolCall.__module__ == "upp.tools"


@pytest.mark.parametrize(
    ("execution", "answers"),
    [
        (loop(), [call("t"), "fine"]),
        (react(), ["hm", call("t"), "hm", "fine"]),
        (plan(), ['{"steps": [{"id": "a", "description": "x"}]}', call("t"), "fine"]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
@pytest.mark.parametrize("streaming", [False, True])
async def test_a_finished_run_comes_back_and_no_model_is_asked(
    execution: ExecutionStrategy, answers: list[Any], *, streaming: bool
) -> None:
    """UAP §4.4, §12: going on from a checkpoint of a run that had ended gives its result."""
    bot = agent(model=model(*answers, "never"), tools=[tool("t")], execution=execution)
    ended = await bot.ask("go", START)
    request_count = len(requests(bot))
    saved_state = AgentState.from_json(json.loads(json.dumps(ended.state.to_json())))
    again = await (bot.stream(None, saved_state) if streaming else bot.generate(None, saved_state))

    assert len(requests(bot)) == request_count
    assert again.turn.response == ended.turn.response
    assert again.state.messages == ended.state.messages
    assert content(again.state) == content(ended.state)
    # Nothing was said and used by this call.
    assert (again.turn.messages, again.turn.usage, again.turn.cycles) == ((), TokenUsage(), 0)
    # And the conversation goes on.
    later = await agent(model=model("later")).ask("more", again.state)
    assert message_lines(later.state.messages)[-2:] == ["user more", "assistant later"]


async def test_a_finished_answer_in_a_shape_comes_back_with_its_data() -> None:
    """UAP §4.2, §4.4: the structure of a finished run."""
    bot = agent(model=model('{"a": 1}'), structure={"type": "object"})
    ended = await bot.ask("go", START)

    assert (await bot.generate(None, ended.state)).turn.data == ended.turn.data == {"a": 1}


@pytest.mark.parametrize("mark", ["unfinished", "synthetic"])
async def test_an_answer_that_was_cut_off_is_asked_for_again(mark: str) -> None:
    half = AssistantMessage(content="ha", metadata={"uap": {mark: True}})
    bot = agent(model=model("lf"))
    result = await bot.generate(None, START.with_messages(["go", half]))

    assert message_lines(result.state.messages) == ["user go", "assistant ha", "assistant lf"]


async def test_an_empty_state_is_not_finished() -> None:
    assert (await agent(model=model("x")).generate(None, START)).turn.response.text == "x"
