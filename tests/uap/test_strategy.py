"""Hooks: their order, the stop condition, recovery, and strategies of one's own."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from tests.uap.agents import call, followed, kinds, model, said, tool
from uap import (
    AgentState,
    AgentStrategy,
    AgentStreamEvent,
    AgentStreamResult,
    ExecutionResult,
    GenerateResult,
    agent,
    memory_checkpoints,
    set_metadata,
)
from uap.execution import (
    ExecutionContext,
    ExecutionStrategy,
    Steps,
    loop,
    plan,
    react,
    run_steps,
    stream_steps,
)
from upp import (
    AssistantMessage,
    ErrorCode,
    TextBlock,
    TokenUsage,
    Turn,
    UPPError,
    UserMessage,
)
from upp.providers.scripted import Fail, Pause, Text

START = AgentState.initial()
DOWN = UPPError("down", code=ErrorCode.PROVIDER_ERROR)


async def test_hooks_may_be_async() -> None:
    """UAP §10.1: the hooks of a run."""
    log: list[str] = []

    async def started(step: int, _state: AgentState) -> None:
        log.append(f"start {step}")

    async def stops(_state: AgentState) -> bool:
        return True

    bot = agent(
        model=model(call("t")),
        tools=[tool("t")],
        strategy=AgentStrategy(on_step_start=started, stop_condition=stops),
    )
    result = await bot.generate("go", START)

    assert log == ["start 1"]
    assert result.state.step == 1


async def test_the_stop_condition_ends_the_run_after_a_step() -> None:
    """UAP §10.2: stopCondition is the primary control of termination."""
    completed: list[GenerateResult] = []
    bot = agent(
        model=model(call("t")),
        tools=[tool("t")],
        strategy=AgentStrategy(
            stop_condition=lambda state: state.step == 2, on_complete=completed.append
        ),
    )
    stream = bot.stream("go", START)

    assert kinds(await followed(stream))[-1] == "step_end 2"
    result = await stream
    assert said(result.state.messages)[-1] == "results done"
    assert result.turn.response.has_tool_calls
    assert completed == [result]


@pytest.mark.parametrize("execution", [react(), plan()])
async def test_the_stop_condition_is_asked_after_every_step(execution: ExecutionStrategy) -> None:
    """UAP §10.2: stopCondition, for every strategy."""
    bot = agent(
        model=model('{"steps": [{"description": "x"}, {"description": "y"}]}', call("t")),
        tools=[tool("t")],
        execution=execution,
        strategy=AgentStrategy(stop_condition=lambda _: True),
    )
    assert (await bot.generate("go", START)).state.step == 1


async def test_the_stop_condition_sees_the_metadata() -> None:
    """UAP §10.2: the condition may look at state.metadata."""
    bot = agent(
        model=model(call("t")),
        tools=[tool("t")],
        strategy=AgentStrategy(stop_condition=lambda state: state.metadata["taskComplete"]),
    )
    result = await bot.generate("go", START.with_metadata("taskComplete", value=True))

    assert result.state.step == 1


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_tool_says_when_the_task_is_complete(*, streaming: bool) -> None:
    """UAP §10.2: the specification's own example, state.metadata.taskComplete."""

    def finish(_arguments: object) -> str:
        set_metadata("taskComplete", value=True)
        return "done"

    store = memory_checkpoints()
    bot = agent(
        model=model(call("look"), call("finish"), "never"),
        tools=[tool("look"), tool("finish", finish)],
        strategy=AgentStrategy(
            stop_condition=lambda state: state.metadata.get("taskComplete", False)
        ),
        checkpoints=store,
        session_id="s",
    )
    result = await (bot.stream("go", START) if streaming else bot.generate("go", START))
    assert (result.state.metadata["taskComplete"], result.state.step) == (True, 2)
    kept = await store.load("s")
    assert kept is not None
    assert kept["metadata"]["taskComplete"] is True


@pytest.mark.parametrize("execution", [loop(), react()])
async def test_a_hook_counts_what_the_stop_condition_reads(execution: ExecutionStrategy) -> None:
    """UAP §10.2: the specification's own example, state.metadata.totalTokens."""
    seen: list[int] = []

    async def count(_step: int, result: GenerateResult) -> AgentState:
        total = result.state.metadata.get("totalTokens", 0) + result.turn.usage.total_tokens
        return result.state.with_metadata("totalTokens", total)

    def note(_step: int, state: AgentState) -> AgentState:
        seen.append(state.metadata.get("totalTokens", 0))
        return state.with_metadata("steps", len(seen))

    bot = agent(
        model=model(call("t")),
        tools=[tool("t")],
        execution=execution,
        strategy=AgentStrategy(
            on_step_start=note,
            on_step_end=count,
            stop_condition=lambda state: state.metadata["totalTokens"] > 5,
        ),
    )
    result = await bot.generate("go", START)

    assert result.state.metadata["totalTokens"] > 5
    assert result.state.metadata["steps"] == len(seen) == result.state.step
    assert all(total <= 5 for total in seen)


async def test_a_hook_changes_nothing_but_metadata() -> None:
    """UAP §6.3, §10.1: the conversation is changed by middleware."""
    hook = AgentStrategy(on_step_start=lambda _step, state: state.with_message("psst"))
    with pytest.raises(ValueError, match="only the metadata of a state"):
        await agent(model=model("x"), strategy=hook).generate("go", START)


def test_metadata_are_set_by_tools_alone() -> None:
    with pytest.raises(RuntimeError, match="only works in tools"):
        set_metadata("a", 1)


async def test_what_a_tool_sets_is_json() -> None:
    bot = agent(
        model=model(call("t"), "bye"), tools=[tool("t", lambda _: set_metadata("a", object()))]
    )
    result = await bot.generate("go", START)

    assert "a" not in result.state.metadata
    assert result.turn.tool_executions[0].is_error


async def test_the_end_of_a_step_gets_the_turn_of_that_step() -> None:
    """UAP §10.1: onStepEnd(step, result)."""
    turns: list[tuple[int, list[str], int]] = []

    def ended(step: int, result: GenerateResult) -> None:
        turns.append((step, said(result.turn.messages), len(result.turn.tool_executions)))

    bot = agent(
        model=model(call("t"), "bye"),
        tools=[tool("t")],
        strategy=AgentStrategy(on_step_end=ended),
    )
    await bot.generate("go", START)

    assert turns == [(1, ["user go", "assistant", "results done"], 1), (2, ["assistant bye"], 0)]


async def test_an_error_is_reported_with_the_state_so_far() -> None:
    """UAP §10.1: onError(error, state)."""
    reported: list[tuple[Exception, list[str]]] = []
    bot = agent(
        model=model(call("t"), [Fail(DOWN)]),
        tools=[tool("t")],
        strategy=AgentStrategy(
            on_error=lambda error, state: reported.append((error, said(state.messages)))
        ),
    )
    with pytest.raises(UPPError):
        await bot.generate("go", START)

    assert reported == [(DOWN, ["user go", "assistant", "results done"])]


@pytest.mark.parametrize("streaming", [False, True])
async def test_the_error_hook_may_give_a_result(*, streaming: bool) -> None:
    """UAP §10.1: onError is called on error, and may recover."""
    spare = await agent(model=model("spare")).generate("x", START)
    bot = agent(model=model([Fail(DOWN)]), strategy=AgentStrategy(on_error=lambda *_: spare))
    result = await (bot.stream("go", START) if streaming else bot.generate("go", START))

    assert result is spare


async def test_what_a_hook_raises_ends_the_run() -> None:
    def broken(*_: object) -> None:
        raise ValueError("my hook")

    bot = agent(model=model("x"), strategy=AgentStrategy(on_complete=broken))
    with pytest.raises(ValueError, match="my hook"):
        await bot.generate("go", START)


@dataclass(frozen=True)
class Shout:
    """A strategy that knows nothing of steps: it asks once, in capitals."""

    name: str = "shout"

    async def execute(self, context: ExecutionContext) -> ExecutionResult:
        """Ask."""
        assert isinstance(context.input, UserMessage)
        loud = UserMessage(content=(TextBlock(text=context.input.text.upper()),))
        turn = await context.llm.generate(context.state.messages, loud)
        return ExecutionResult(turn=turn, state=context.state.with_messages(turn.messages))

    def stream(self, context: ExecutionContext) -> AgentStreamResult:
        """Ask, without events."""
        return AgentStreamResult(lambda _emit: self.execute(context))


@dataclass(frozen=True)
class Twice:
    """A strategy made of steps: it asks two times, whatever is said."""

    name: str = "twice"

    async def execute(self, context: ExecutionContext) -> ExecutionResult:
        """Ask twice."""
        return await run_steps(context, self._body, None)

    def stream(self, context: ExecutionContext) -> AgentStreamResult:
        """Ask twice, live."""
        return stream_steps(context, self._body)

    async def _body(self, steps: Steps) -> None:
        for part in ("first", "second"):
            await steps.begin(part=part)
            await steps.act()
            await steps.end()


async def test_any_object_with_the_members_of_a_strategy_is_one() -> None:
    """UAP §5.5 MUST: custom strategies; §5.1: the members of ExecutionStrategy."""
    store = memory_checkpoints()
    bot = agent(
        model=model(call("t"), "HELLO"),
        tools=[tool("t")],
        execution=Shout(),
        checkpoints=store,
        session_id="s",
    )
    result = await bot.generate("hi", START)
    streamed = await bot.stream("hi", START)

    assert said(result.state.messages) == [
        "user HI",
        "assistant",
        "results done",
        "assistant HELLO",
    ]
    assert said(streamed.state.messages) == ["user HI", "assistant HELLO"]
    assert await store.load("s") == streamed.state.to_json()


class Stream:
    """A run as the specification describes one: events, a result, and a way to end it."""

    def __init__(self, made: AgentStreamResult, how: str) -> None:
        self._made = made
        self.aborted = 0
        if how == "function":
            self.result: object = self._result
        elif how == "awaitable":
            self.result = made
        else:
            self.result = GenerateResult(turn=TURN, state=START)

    async def _result(self) -> GenerateResult:
        return await self._made

    async def __aiter__(self) -> AsyncIterator[AgentStreamEvent]:
        """Give the events."""
        async for event in self._made:
            yield event

    def abort(self) -> None:
        """End the run."""
        self.aborted += 1
        self._made.abort()


ANSWER = AssistantMessage(content="hello")
TURN = Turn(
    messages=(ANSWER,),
    response=ANSWER,
    tool_executions=(),
    usage=TokenUsage(),
    cycles=1,
    stop_reason="end_turn",
)


@dataclass
class Foreign:
    """A strategy whose streams are objects of its own."""

    how: str = "function"
    name: str = "foreign"
    streams: list[Stream] = field(default_factory=list)

    async def execute(self, context: ExecutionContext) -> ExecutionResult:
        """Loop."""
        return await loop().execute(context)

    def stream(self, context: ExecutionContext) -> Stream:
        """Loop, live."""
        made = loop().stream(context)
        assert isinstance(made, AgentStreamResult)
        self.streams.append(Stream(made, self.how))
        return self.streams[-1]


@pytest.mark.parametrize("how", ["function", "awaitable", "value"])
async def test_the_stream_of_a_strategy_is_any_object_with_its_three_members(how: str) -> None:
    """UAP §5.5 MUST: custom strategies; §11.1: AgentStreamResult is iteration, result, abort."""
    foreign = Foreign(how)
    stream = agent(model=model("hello"), execution=foreign).stream("hi", START)

    assert kinds(await followed(stream)) == ["step_start 1", "step_end 1"]
    assert (await stream).turn.response.text == "hello"
    assert foreign.streams[0].aborted == 0


async def test_leaving_the_stream_of_a_strategy_aborts_it() -> None:
    """UAP §11.1: abort()."""
    foreign = Foreign()
    stream = agent(model=model([Text("hello"), Pause(60)]), execution=foreign).stream("hi", START)
    async with stream:
        async for _event in stream:
            break
    assert foreign.streams[0].aborted == 1


async def test_what_the_stream_of_a_strategy_raises_is_raised() -> None:
    """UAP §11.1: the result."""
    foreign = Foreign()
    with pytest.raises(UPPError, match="down"):
        await agent(model=model([Fail(DOWN)]), execution=foreign).stream("hi", START)
    assert foreign.streams[0].aborted == 1


async def test_a_strategy_may_be_made_of_the_parts_of_the_others() -> None:
    """UAP §5.5 MUST: custom strategies."""
    store = memory_checkpoints()
    bot = agent(model=model("one", "two"), execution=Twice(), checkpoints=store, session_id="s")
    stream = bot.stream("hi", START)

    assert kinds(await followed(stream)) == [
        *("step_start 1", "step_end 1", "step_start 2", "step_end 2"),
    ]
    assert said((await stream).turn.messages) == ["user hi", "assistant one", "assistant two"]
    assert await store.load("s") == (await stream).state.to_json()


async def test_a_step_without_an_inference_is_refused() -> None:
    class Idle(Twice):
        async def _body(self, steps: Steps) -> None:
            await steps.begin()
            await steps.end()

    with pytest.raises(RuntimeError, match="before it called the model"):
        await agent(model=model("x"), execution=Idle()).generate("hi", START)


def test_strategies_have_names_and_are_interchangeable() -> None:
    """UAP §2.3, §5.1: strategies are decoupled from agents, and have a name."""
    assert [one.name for one in (loop(), react(), plan())] == ["loop", "react", "plan"]
