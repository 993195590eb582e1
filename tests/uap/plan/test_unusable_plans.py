"""Plans that cannot be read or carried out, and their limits."""

from uuid import UUID

import pytest

from tests.uap.agents import followed, model, requests
from tests.uap.plan.plans import DOWN, START, a_plan, details, prompts, statuses, step
from uap import AgentStrategy, agent
from uap.execution import plan
from upp import ErrorCode, UPPError
from upp.providers.scripted import Fail


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("I will just do it.", "holds no plan"),
        ('{"steps": "many"}', "holds no plan"),
        ("[1]", "holds no plan"),
        ('{"a":' * 3000, "holds no plan"),
        ('{"steps": [{"id": "a"}]}', "holds no plan"),
        (a_plan(step("a", "b"), step("b", "a")), "depend on steps that never run: a, b"),
        (a_plan(step("a"), step("b", "missing")), "depend on steps that never run: b"),
        (a_plan(step("a"), step("a")), "the same id"),
    ],
)
async def test_a_plan_that_cannot_be_carried_out_is_refused(reply: str, message: str) -> None:
    """UAP §5.4: the plan has the structure of planSchema, and no step is skipped in silence."""
    for allow_replan, request_count in ((False, 1), (True, 3)):
        bot = agent(model=model(reply), execution=plan(allow_replan=allow_replan))

        with pytest.raises(UPPError, match=message) as raised:
            await bot.generate("go", START)
        assert raised.value.code is ErrorCode.INVALID_RESPONSE
        assert len(requests(bot)) == request_count


async def test_a_plan_that_cannot_be_read_is_asked_for_again() -> None:
    """UAP §5.4: allowReplan, also for the first plan."""
    bot = agent(
        model=model("I will.", a_plan(step("a", "b")), a_plan(step("a")), "did a"), execution=plan()
    )
    stream = bot.stream("go", START)

    assert details(await followed(stream)) == [
        *("start 1 planning", "end 1", "start 2 planning", "end 2"),
        *("start 3 planning", "end 3 a=pending", "start 4 execute a", "end 4 a=completed"),
    ]
    assert (await stream).turn.response.text == "did a"
    assert "cannot be carried out. Failed to parse" in prompts(bot)[1]
    assert "depend on steps that never run: a" in prompts(bot)[2]


async def test_a_new_plan_that_cannot_be_read_is_asked_for_again() -> None:
    """UAP §5.4: allowReplan, and what is done stays done."""
    answers = (a_plan(step("a")), [Fail(DOWN)], "Hm.", a_plan(step("b")), "did b")
    bot = agent(model=model(*answers), execution=plan())
    result = await bot.generate("go", START)

    assert statuses(result.state) == {"b": "completed"}


async def test_the_stop_condition_ends_a_run_without_a_plan() -> None:
    bot = agent(
        model=model("I will."),
        execution=plan(),
        strategy=AgentStrategy(stop_condition=lambda state: state.step == 2),
    )
    result = await bot.generate("go", START)

    assert (result.state.plan, len(requests(bot))) == (None, 2)


async def test_a_plan_is_cut_to_the_limit_after_it_was_put_in_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """UAP §5.4: maxPlanSteps is the maximum of steps in a plan."""
    steps = [step("c", "b"), step("b", "a"), step("a")]
    bot = agent(model=model(a_plan(*steps), "x"), execution=plan(max_plan_steps=2))
    result = await bot.generate("go", START)

    assert statuses(result.state) == {"a": "completed", "b": "completed"}
    assert "Use at most 2 steps." in prompts(bot)[0]
    assert caplog.messages == ["A plan of 3 steps was cut to 2"]


async def test_missing_ids_are_made_up_and_numbers_are_read_as_names() -> None:
    """UAP §14.2 MUST: UUIDv4 for all ids."""
    numbered_steps = [
        {"id": 2, "description": "y", "dependsOn": [1]},
        {"id": 1, "description": "z"},
    ]
    reply = a_plan({"description": "x"}, *numbered_steps)
    result = await agent(model=model(reply, "x"), execution=plan()).generate("go", START)
    steps = result.state.plan or ()

    assert UUID(steps[0].id).version == 4
    assert [(plan_step.id, plan_step.depends_on) for plan_step in steps[1:]] == [
        ("1", ()),
        ("2", ("1",)),
    ]


async def test_a_new_plan_may_name_done_steps_again_and_use_their_ids_anew() -> None:
    again = {**step("a"), "description": "something else"}
    bot = agent(
        model=model(
            a_plan(step("a"), step("b"), step("c")),
            "did a",
            "did b",
            [Fail(DOWN)],
            a_plan(again, step("b"), step("d", "a", "b")),
            "did the rest",
        ),
        execution=plan(),
    )
    result = await bot.generate("go", START)

    assert [(plan_step.id, plan_step.description) for plan_step in result.state.plan or ()] == [
        ("b", "do b"),
        ("a", "something else"),
        ("d", "do d"),
    ]
    assert set(statuses(result.state).values()) == {"completed"}
    assert len(requests(bot)) == 7
