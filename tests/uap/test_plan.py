"""Planning, doing the steps, and planning again."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from tests.uap.agents import Answer, call, followed, kinds, model, requests, said, tool
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from uap import Agent, AgentState, AgentStrategy, AgentStreamEvent, PlanStep, PlanStepError, agent
from uap.execution import PLAN_SCHEMA, plan
from upp import (
    ErrorCode,
    LLMCapabilities,
    ToolUseStrategy,
    TooManyRoundsError,
    UPPError,
    UserMessage,
)
from upp.providers.anthropic import AnthropicProvider
from upp.providers.scripted import Fail, Text

START = AgentState.initial()
DOWN = UPPError("secret words", code=ErrorCode.PROVIDER_ERROR)


def a_plan(*steps: Mapping[str, Any]) -> str:
    return json.dumps({"steps": steps})


def step(name: str, *after: str, tool: str | None = None) -> dict[str, Any]:
    return {"id": name, "description": f"do {name}", "dependsOn": after, "tool": tool}


def statuses(of: AgentState) -> dict[str, str]:
    return {one.id: one.status for one in of.plan or ()}


def details(events: list[AgentStreamEvent]) -> list[str]:
    """Return the borders of steps, as `start 2 execute a` and `end 2 a=completed`."""
    lines = []
    for event in (event.uap for event in events if event.uap is not None):
        if event.type == "step_start":
            named = [event.data["planStep"].id] if "planStep" in event.data else []
            lines.append(" ".join(["start", str(event.step), event.data["phase"], *named]))
        if event.type == "step_end":
            states = [f"{one.id}={one.status}" for one in event.data["plan"]]
            lines.append(" ".join(["end", str(event.step), *states]))
    return lines


def prompts(of: Agent) -> list[str]:
    """Return the last message of each request."""
    return [
        last.text if isinstance(last := request.messages[-1], UserMessage) else "results"
        for request in requests(of)
    ]


async def test_a_plan_is_made_and_its_steps_are_done_in_the_order_of_their_dependencies() -> None:
    """UAP §5.4: plan-then-execute with an upfront planning phase."""
    bot = agent(model=model(a_plan(step("b", "a"), step("a")), "did a", "did b"), execution=plan())
    stream = bot.stream("go", START)

    assert details(await followed(stream)) == [
        *("start 1 planning", "end 1 a=pending b=pending"),
        *("start 2 execute a", "end 2 a=completed b=pending"),
        *("start 3 execute b", "end 3 a=completed b=completed"),
    ]
    result = await stream
    assert result.turn.response.text == "did b"
    assert (result.turn.cycles, result.state.step) == (3, 3)
    assert result.turn.messages == result.state.messages
    assert [message.metadata.get("uap", {}).get("phase") for message in result.state.messages] == [
        None,
        "plan",
        "plan",
        "plan_step",
        None,
        "plan_step",
        None,
    ]


async def test_the_plan_schema_holds_the_model_in_the_planning_call_only() -> None:
    """UAP §5.4: planSchema is the schema for the plan's structure."""
    own = {**PLAN_SCHEMA, "title": "own"}
    answer = {"type": "object", "title": "answer"}
    bot = agent(
        model=model(a_plan(step("a")), '{"done": 1}'),
        execution=plan(plan_schema=own),
        structure=answer,
    )
    result = await bot.generate("go", START)

    assert [request.structure for request in requests(bot)] == [own, answer]
    assert "JSON Schema" not in prompts(bot)[0]
    assert result.turn.data == {"done": 1}


async def test_where_the_api_has_no_structure_the_schema_is_reported_and_the_text_is_read() -> None:
    """UAP §5.4: planSchema is the schema for the plan's structure."""
    reply = f"Sure {{no JSON}}: {a_plan(step('a'))} like that?"
    api = LLMCapabilities(structured_output=False)
    bot = agent(model=model(reply, "did a", capabilities=api), execution=plan())
    result = await bot.generate("go", START)

    assert requests(bot)[0].structure is None
    assert json.dumps(PLAN_SCHEMA) in prompts(bot)[0]
    assert statuses(result.state) == {"a": "completed"}


@pytest.mark.parametrize(
    "reply",
    [
        f"In {{}} I think: {a_plan(step('a'))}",
        f'{{"thought": "first a"}}\n{a_plan(step("a"))}\n{a_plan(step("b"))}',
        f"```json\n{a_plan(step('a'))}\n```",
        a_plan({"id": "a", "description": "do a", "dependsOn": None}),
    ],
)
async def test_the_first_plan_in_a_reply_is_the_plan(reply: str) -> None:
    bot = agent(model=model(reply, "did a"), execution=plan())

    assert statuses((await bot.generate("go", START)).state) == {"a": "completed"}


async def test_where_a_call_stands_for_the_plan_no_other_can_be_made() -> None:
    """UAP §5.4: planSchema holds the model, also where structured output is a forced call."""

    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        choice = exchange.body.get("tool_choice")
        planning = choice == {"type": "tool", "name": "json_answer"}
        start = (
            {"type": "tool_use", "id": "c", "name": "json_answer"} if planning else {"type": "text"}
        )
        said = a_plan(step("a")) if planning else "did a"
        piece = {"type": "input_json_delta", "partial_json": said}
        await exchange.event("content_block_start", index=0, content_block=start)
        delta = piece if planning else {"type": "text_delta", "text": said}
        await exchange.event("content_block_delta", index=0, delta=delta)
        await exchange.event("message_stop")

    async with serve(answer) as wire:
        provider = AnthropicProvider(base_url=wire.url)
        bot = agent(model=provider("claude"), tools=[tool("t")], execution=plan())
        result = await bot.generate("go", START)
        await provider.aclose()

    assert statuses(result.state) == {"a": "completed"}
    given = [[one["name"] for one in exchange.body["tools"]] for exchange in wire.exchanges]
    assert given == [["json_answer"], ["t"]]


async def test_a_step_of_the_plan_lasts_until_the_model_calls_no_more_tools() -> None:
    ran: list[object] = []
    bot = agent(
        model=model(a_plan(step("a", tool="t"), step("b", "a")), call("t", n=1), "a", "b"),
        tools=[tool("t", ran.append)],
        execution=plan(),
    )
    stream = bot.stream("go", START)
    events = await followed(stream)

    assert details(events) == [
        *("start 1 planning", "end 1 a=pending b=pending"),
        *("start 2 execute a", "end 2 a=in_progress b=pending"),
        *("start 3 execute a", "end 3 a=completed b=pending"),
        *("start 4 execute b", "end 4 a=completed b=completed"),
    ]
    assert kinds(events)[2:6] == ["step_start 2", "action 2", "observation 2", "step_end 2"]
    assert ran == [{"n": 1}]
    first, second, third = prompts(bot)[1:]
    assert first.startswith("Now do step a of the plan: do a. Use the tool t. Do this step only")
    assert second == "results"
    assert third.startswith("Now do step b of the plan: do b. It is the last step")


async def test_tools_are_not_run_while_the_plan_is_made() -> None:
    ran: list[object] = []
    bot = agent(
        model=model([call("t"), Text(a_plan(step("a")))], "did a"),
        tools=[tool("t", ran.append)],
        execution=plan(),
    )
    result = await bot.generate("go", START)

    assert ran == []
    assert [len(getattr(message, "tool_calls", ())) for message in result.state.messages] == [0] * 5
    assert "Tools: t: t" in prompts(bot)[0]


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


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("I will just do it.", "holds no plan"),
        ('{"steps": "many"}', "holds no plan"),
        ("[1]", "holds no plan"),
        ('{"a":' * 3000, "holds no plan"),
        ('{"steps": [{"id": "a"}]}', "holds no plan"),
        (a_plan(step("a", "b"), step("b", "a")), "wait for what is never done: a, b"),
        (a_plan(step("a"), step("b", "missing")), "wait for what is never done: b"),
        (a_plan(step("a"), step("a")), "the same id"),
    ],
)
async def test_a_plan_that_cannot_be_carried_out_is_refused(reply: str, message: str) -> None:
    """UAP §5.4: the plan has the structure of planSchema, and no step is skipped in silence."""
    for allow_replan, asked in ((False, 1), (True, 3)):
        bot = agent(model=model(reply), execution=plan(allow_replan=allow_replan))

        with pytest.raises(UPPError, match=message) as raised:
            await bot.generate("go", START)
        assert raised.value.code is ErrorCode.INVALID_RESPONSE
        assert len(requests(bot)) == asked


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
    assert "wait for what is never done: a" in prompts(bot)[2]


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


async def test_a_plan_has_no_limit_of_its_own() -> None:
    """UAP §2.4 SHALL NOT impose limits: maxPlanSteps is infinite."""
    steps = [step(f"s{n}") for n in range(40)]
    result = await agent(model=model(a_plan(*steps), "x"), execution=plan()).generate("go", START)

    assert set(statuses(result.state).values()) == {"completed"}
    assert len(statuses(result.state)) == 40


async def test_when_a_plan_leaves_nothing_to_do_the_model_answers() -> None:
    bot = agent(model=model(a_plan(), call("t"), "no need"), tools=[tool("t")], execution=plan())
    stream = bot.stream("go", START)

    assert details(await followed(stream)) == [
        *("start 1 planning", "end 1", "start 2 execute", "end 2", "start 3 execute", "end 3"),
    ]
    assert (await stream).turn.response.text == "no need"
    assert prompts(bot)[1].startswith("There is nothing left to do")


async def test_when_a_new_plan_leaves_nothing_to_do_the_model_answers() -> None:
    bot = agent(
        model=model(a_plan(step("a"), step("b")), "did a", [Fail(DOWN)], a_plan(), "so it is"),
        execution=plan(),
    )
    result = await bot.generate("go", START)

    assert statuses(result.state) == {"a": "completed"}
    assert result.turn.response.text == "so it is"


async def test_missing_ids_are_made_up_and_numbers_are_read_as_names() -> None:
    """UAP §14.2 MUST: UUIDv4 for all ids."""
    named = [{"id": 2, "description": "y", "dependsOn": [1]}, {"id": 1, "description": "z"}]
    reply = a_plan({"description": "x"}, *named)
    result = await agent(model=model(reply, "x"), execution=plan()).generate("go", START)
    made = result.state.plan or ()

    assert UUID(made[0].id).version == 4
    assert [(one.id, one.depends_on) for one in made[1:]] == [("1", ()), ("2", ("1",))]


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

    assert [(one.id, one.description) for one in result.state.plan or ()] == [
        ("b", "do b"),
        ("a", "something else"),
        ("d", "do d"),
    ]
    assert set(statuses(result.state).values()) == {"completed"}
    assert len(requests(bot)) == 7


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


async def test_an_unfinished_plan_goes_on_without_an_input() -> None:
    waits = PlanStep(id="b", description="do b", depends_on=("a",), status="pending")
    done = PlanStep(id="a", description="do a", depends_on=(), status="completed")
    state = START.with_plan([done, waits])
    bot = agent(model=model("did b"), execution=plan())
    result = await bot.generate(None, state)

    assert statuses(result.state) == {"a": "completed", "b": "completed"}
    assert said(result.turn.messages)[-1] == "assistant did b"
    assert len(requests(bot)) == 1


async def test_a_step_in_progress_goes_on_without_its_prompt_and_a_failed_one_is_replanned() -> (
    None
):
    running = PlanStep(id="a", description="do a", depends_on=(), status="in_progress")
    bot = agent(model=model("did a"), execution=plan())
    result = await bot.generate(None, START.with_plan([running]))
    assert said(result.turn.messages) == ["assistant did a"]

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

    with pytest.raises(UPPError, match="never done: a"):
        await bot.generate(None, START.with_plan([lost]))


async def test_a_new_input_makes_a_new_plan_whatever_was_left_of_the_old_one() -> None:
    waits = PlanStep(id="old", description="x", depends_on=(), status="pending")
    bot = agent(model=model(a_plan(step("new")), "did new"), execution=plan())

    assert statuses((await bot.generate("go", START.with_plan([waits]))).state) == {
        "new": "completed"
    }


async def test_what_an_approval_raises_ends_the_run_and_the_call_is_there_to_go_on_with() -> None:
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
