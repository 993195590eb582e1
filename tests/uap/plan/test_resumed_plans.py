"""Plans that resume where they left off."""

import pytest

from tests.uap.agents import call, message_lines, model, requests, tool
from tests.uap.plan.plans import START, a_plan, prompts, statuses, step
from uap import AgentState, AgentStrategy, PlanStep, agent
from uap.execution import plan
from upp import ErrorCode, UPPError, UserMessage


async def test_earlier_states_keep_the_plan_that_they_had() -> None:
    """UAP §14.2 MUST NOT mutate state: each step of a plan is a new value."""
    seen: list[AgentState] = []
    bot = agent(
        model=model(a_plan(step("a")), "did a"),
        execution=plan(),
        strategy=AgentStrategy(on_step_end=lambda _, result: seen.append(result.state)),
    )
    await bot.generate("go", START)

    assert [statuses(state) for state in seen] == [{"a": "pending"}, {"a": "completed"}]


async def test_an_unfinished_plan_resumes_without_an_input() -> None:
    waits = PlanStep(id="b", description="do b", depends_on=("a",), status="pending")
    done = PlanStep(id="a", description="do a", depends_on=(), status="completed")
    state = START.with_plan([done, waits])
    bot = agent(model=model("did b"), execution=plan())
    result = await bot.generate(None, state)

    assert statuses(result.state) == {"a": "completed", "b": "completed"}
    assert message_lines(result.turn.messages)[-1] == "assistant did b"
    assert len(requests(bot)) == 1


async def test_a_step_in_progress_resumes_without_its_prompt_and_a_failed_one_is_replanned() -> (
    None
):
    running = PlanStep(id="a", description="do a", depends_on=(), status="in_progress")
    bot = agent(model=model("did a"), execution=plan())
    result = await bot.generate(None, START.with_plan([running]))
    assert message_lines(result.turn.messages) == ["assistant did a"]

    failed = PlanStep(id="a", description="do a", depends_on=(), status="failed")
    bot = agent(model=model(a_plan(step("x")), "did x"), execution=plan())
    result = await bot.generate(None, START.with_plan([failed]))
    assert statuses(result.state) == {"x": "completed"}
    assert "Step a of the plan has failed: it was not finished." in prompts(bot)[0]


async def test_a_finished_plan_is_made_anew() -> None:
    done = PlanStep(id="a", description="do a", depends_on=(), status="completed")
    state = START.with_message(UserMessage(content=())).with_plan([done])
    bot = agent(model=model(a_plan(step("x")), "did x"), execution=plan())

    assert statuses((await bot.generate(None, state)).state) == {"x": "completed"}


async def test_a_kept_plan_that_cannot_be_carried_out_is_refused() -> None:
    lost = PlanStep(id="a", description="do a", depends_on=("gone",), status="pending")
    bot = agent(model=model("x"), execution=plan())

    with pytest.raises(UPPError, match="never run: a"):
        await bot.generate(None, START.with_plan([lost]))


async def test_a_new_input_makes_a_new_plan_whatever_was_left_of_the_old_one() -> None:
    waits = PlanStep(id="old", description="x", depends_on=(), status="pending")
    bot = agent(model=model(a_plan(step("new")), "did new"), execution=plan())

    assert statuses((await bot.generate("go", START.with_plan([waits]))).state) == {
        "new": "completed"
    }


async def test_an_error_of_an_approval_ends_the_run_and_the_call_can_be_resumed() -> None:
    worked: list[object] = []
    error = UPPError("no person is there", code=ErrorCode.TIMEOUT)
    answers = iter([error, None])

    def approves(_arguments: object) -> bool:
        if raised := next(answers):
            raise raised
        return True

    seen: list[AgentState] = []
    bot = agent(
        model=model(a_plan(step("a")), call("t"), "did a"),
        tools=[tool("t", worked.append, approval=approves)],
        execution=plan(),
        strategy=AgentStrategy(on_error=lambda _, state: seen.append(state)),
    )
    with pytest.raises(UPPError) as caught:
        await bot.generate("go", START)

    assert caught.value is error
    assert statuses(seen[0]) == {"a": "in_progress"}
    result = await bot.generate(None, seen[0])
    assert worked == [{}]
    assert statuses(result.state) == {"a": "completed"}
