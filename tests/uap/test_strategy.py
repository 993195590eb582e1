"""Hooks: their order, the stop condition, and recovery."""

import pytest

from tests.uap.agents import call, followed, kinds, message_lines, model, tool
from tests.uap.states import DOWN, START
from uap import AgentState, AgentStrategy, GenerateResult, agent, memory_checkpoints, set_metadata
from uap.execution import ExecutionStrategy, loop, plan, react
from upp import UPPError
from upp.providers.scripted import Fail


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
    assert message_lines(result.state.messages)[-1] == "results done"
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
    checkpoint = await store.load("s")
    assert checkpoint is not None
    assert checkpoint["metadata"]["taskComplete"] is True


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
        turns.append((step, message_lines(result.turn.messages), len(result.turn.tool_executions)))

    bot = agent(
        model=model(call("t"), "bye"),
        tools=[tool("t")],
        strategy=AgentStrategy(on_step_end=ended),
    )
    await bot.generate("go", START)

    assert turns == [(1, ["user go", "assistant", "results done"], 1), (2, ["assistant bye"], 0)]


async def test_an_error_is_reported_with_the_state_so_far() -> None:
    """UAP §10.1: onError(error, state)."""
    reports: list[tuple[Exception, list[str]]] = []
    bot = agent(
        model=model(call("t"), [Fail(DOWN)]),
        tools=[tool("t")],
        strategy=AgentStrategy(
            on_error=lambda error, state: reports.append((error, message_lines(state.messages)))
        ),
    )
    with pytest.raises(UPPError):
        await bot.generate("go", START)

    assert reports == [(DOWN, ["user go", "assistant", "results done"])]


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
