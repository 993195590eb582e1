"""Custom strategies and their streams."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from tests.uap.agents import call, followed, kinds, message_lines, model, tool
from tests.uap.states import DOWN, START
from uap import (
    AgentStreamEvent,
    AgentStreamResult,
    ExecutionResult,
    GenerateResult,
    agent,
    memory_checkpoints,
)
from uap.execution import ExecutionContext, Steps, loop, plan, react, run_steps, stream_steps
from upp import AssistantMessage, TextBlock, TokenUsage, Turn, UPPError, UserMessage
from upp.providers.scripted import Fail, Pause, Text


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

    assert message_lines(result.state.messages) == [
        "user HI",
        "assistant",
        "results done",
        "assistant HELLO",
    ]
    assert message_lines(streamed.state.messages) == ["user HI", "assistant HELLO"]
    assert await store.load("s") == streamed.state.to_json()


class Stream:
    """A run as the specification describes one: events, a result, and a way to end it."""

    def __init__(self, stream: AgentStreamResult, how: str) -> None:
        self._made = stream
        self.aborted = 0
        if how == "function":
            self.result: object = self._result
        elif how == "awaitable":
            self.result = stream
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
        """Delegate to `loop()`."""
        return await loop().execute(context)

    def stream(self, context: ExecutionContext) -> Stream:
        """Loop, live."""
        stream = loop().stream(context)
        assert isinstance(stream, AgentStreamResult)
        self.streams.append(Stream(stream, self.how))
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
    assert message_lines((await stream).turn.messages) == [
        "user hi",
        "assistant one",
        "assistant two",
    ]
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
    assert [strategy.name for strategy in (loop(), react(), plan())] == ["loop", "react", "plan"]
