"""Failed steps and replanning."""

import json

import pytest

from tests.uap.agents import Answer, call, followed, model, requests, tool
from tests.uap.plan.plans import DOWN, START, a_plan, details, prompts, statuses, step
from uap import AgentState, AgentStrategy, PlanStepError, agent
from uap.execution import plan
from upp import ErrorCode, ToolUseStrategy, TooManyRoundsError, UPPError
from upp.providers.scripted import Fail


async def test_a_failed_step_is_planned_again_and_what_is_done_stays_done() -> None:
    """UAP §5.4: allowReplan allows replanning on failure, and is the default."""
    bot = agent(
        model=model(
            a_plan(step("a"), step("b", "a"), step("c", "b")),
            "did a",
            [Fail(DOWN)],
            a_plan(step("b2", "a")),
            "did b2",
        ),
        execution=plan(),
    )
    stream = bot.stream("go", START)

    assert details(await followed(stream)) == [
        *("start 1 planning", "end 1 a=pending b=pending c=pending"),
        *("start 2 execute a", "end 2 a=completed b=pending c=pending"),
        "start 3 execute b",
        *("start 4 replanning", "end 4 a=completed b2=pending"),
        *("start 5 execute b2", "end 5 a=completed b2=completed"),
    ]
    result = await stream
    assert statuses(result.state) == {"a": "completed", "b2": "completed"}
    assert prompts(bot)[3].startswith(
        "Step b of the plan has failed: the model could not be asked (PROVIDER_ERROR).\n"
        "Done so far: a (do a). Not begun: c (do c).\n"
    )
    assert "secret" not in json.dumps(result.state.to_json())
    assert result.turn.messages == result.state.messages


async def test_a_step_whose_tool_never_worked_has_failed() -> None:
    """UAP §5.4: replanning on failure."""
    tries = iter([ValueError("locked"), None])

    def run(_arguments: object) -> str:
        if error := next(tries):
            raise error
        return "opened"

    bot = agent(
        model=model(
            a_plan(step("a", tool="t")),
            call("t"),
            "could not",
            a_plan(step("again", tool="t")),
            call("t"),
            "could",
        ),
        tools=[tool("t", run)],
        execution=plan(),
    )
    stream = bot.stream("go", START)
    ends = [line for line in details(await followed(stream)) if line.startswith("end")]

    assert ends[2:] == [
        "end 3 a=failed",
        "end 4 again=pending",
        "end 5 again=in_progress",
        "end 6 again=completed",
    ]
    assert "Step a of the plan has failed: t: locked\nDone so far: nothing." in prompts(bot)[3]


async def test_without_replanning_a_failure_ends_the_run() -> None:
    """UAP §5.4: allowReplan false."""
    answers: list[Answer] = [a_plan(step("a", tool="t")), call("t"), "could not"]
    broken = tool("t", lambda _: 1 / 0)
    bot = agent(model=model(*answers), tools=[broken], execution=plan(allow_replan=False))
    with pytest.raises(UPPError, match="Step a of the plan failed: t: division by zero") as failed:
        await bot.generate("go", START)
    assert failed.value.code == ErrorCode.INVALID_RESPONSE
    assert isinstance(failed.value.__cause__, PlanStepError)
    assert len(failed.value.__cause__.calls) == 1

    unreadable: list[Answer] = [*answers, "no plan", "no plan", "no plan"]
    lost = agent(model=model(*unreadable), tools=[broken], execution=plan())
    with pytest.raises(UPPError) as raised:
        await lost.generate("go", START)
    assert raised.value.code == ErrorCode.INVALID_RESPONSE
    assert isinstance(raised.value.__cause__, PlanStepError)

    seen: list[AgentState] = []
    down = agent(
        model=model(a_plan(step("a")), [Fail(DOWN)]),
        execution=plan(allow_replan=False),
        strategy=AgentStrategy(on_error=lambda _, state: seen.append(state)),
    )
    with pytest.raises(UPPError) as raised:
        await down.generate("go", START)
    assert raised.value is DOWN
    assert statuses(seen[0]) == {"a": "failed"}


@pytest.mark.parametrize("code", ["AUTHENTICATION_FAILED", "QUOTA_EXCEEDED", "CANCELLED"])
async def test_what_another_plan_cannot_help_against_ends_the_run(code: str) -> None:
    bot = agent(
        model=model(a_plan(step("a")), [Fail(UPPError("no", code=ErrorCode(code)))]),
        execution=plan(),
    )
    with pytest.raises(UPPError, match="no"):
        await bot.generate("go", START)
    assert len(requests(bot)) == 2


async def test_too_many_rounds_end_the_run() -> None:
    bot = agent(
        model=model(a_plan(step("a")), call("t")),
        tools=[tool("t")],
        tool_strategy=ToolUseStrategy(max_iterations=1),
        execution=plan(),
    )
    with pytest.raises(TooManyRoundsError):
        await bot.generate("go", START)


async def test_calls_that_the_developer_runs_stop_the_plan_where_it_is() -> None:
    bot = agent(
        model=model(a_plan(step("a"), step("b")), call("t")),
        tools=[tool("t")],
        tool_strategy=ToolUseStrategy(max_iterations=0),
        execution=plan(),
    )
    stream = bot.stream("go", START)

    assert details(await followed(stream))[-2:] == [
        *("start 2 execute a", "end 2 a=in_progress b=pending"),
    ]
    result = await stream
    assert statuses(result.state) == {"a": "in_progress", "b": "pending"}
    assert result.turn.response.has_tool_calls


async def test_when_a_new_plan_leaves_nothing_to_do_the_model_answers() -> None:
    bot = agent(
        model=model(a_plan(step("a"), step("b")), "did a", [Fail(DOWN)], a_plan(), "so it is"),
        execution=plan(),
    )
    result = await bot.generate("go", START)

    assert statuses(result.state) == {"a": "completed"}
    assert result.turn.response.text == "so it is"


async def test_what_a_tool_did_in_another_step_does_not_count() -> None:
    outcomes = iter(["worked", None, "worked"])

    def run(_arguments: object) -> str:
        if (outcome := next(outcomes)) is None:
            raise ValueError("locked")
        return outcome

    bot = agent(
        model=model(
            a_plan(step("a", tool="t"), step("b", "a", tool="t")),
            call("t"),
            "did a",
            call("t"),
            "could not",
            a_plan(step("c", tool="t")),
            call("t"),
            "did c",
        ),
        tools=[tool("t", run)],
        execution=plan(),
    )
    result = await bot.generate("go", START)

    assert statuses(result.state) == {"a": "completed", "c": "completed"}
