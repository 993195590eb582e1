"""Making a plan, and the order of its steps."""

import json

import pytest

from tests.uap.agents import call, followed, kinds, model, requests, tool
from tests.uap.plan.plans import START, a_plan, details, prompts, statuses, step
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from uap import agent
from uap.execution import PLAN_SCHEMA, plan
from upp import LLMCapabilities
from upp.providers.anthropic import AnthropicProvider
from upp.providers.scripted import Text


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
    own_schema = {**PLAN_SCHEMA, "title": "own"}
    answer = {"type": "object", "title": "answer"}
    bot = agent(
        model=model(a_plan(step("a")), '{"done": 1}'),
        execution=plan(plan_schema=own_schema),
        structure=answer,
    )
    result = await bot.generate("go", START)

    assert [request.structure for request in requests(bot)] == [own_schema, answer]
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


async def test_no_other_call_can_be_made_where_a_call_carries_the_plan() -> None:
    """UAP §5.4: planSchema holds the model, also where structured output is a forced call."""

    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        choice = exchange.body.get("tool_choice")
        planning = choice == {"type": "tool", "name": "json_answer"}
        start = (
            {"type": "tool_use", "id": "c", "name": "json_answer"} if planning else {"type": "text"}
        )
        text = a_plan(step("a")) if planning else "did a"
        piece = {"type": "input_json_delta", "partial_json": text}
        await exchange.event("content_block_start", index=0, content_block=start)
        delta = piece if planning else {"type": "text_delta", "text": text}
        await exchange.event("content_block_delta", index=0, delta=delta)
        await exchange.event("message_stop")

    async with serve(answer) as wire:
        provider = AnthropicProvider(base_url=wire.url)
        bot = agent(model=provider("claude"), tools=[tool("t")], execution=plan())
        result = await bot.generate("go", START)
        await provider.aclose()

    assert statuses(result.state) == {"a": "completed"}
    tool_names = [
        [definition["name"] for definition in exchange.body["tools"]] for exchange in wire.exchanges
    ]
    assert tool_names == [["json_answer"], ["t"]]


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
