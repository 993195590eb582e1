"""Reasoning before each action."""

from tests.uap.agents import Answer, call, followed, kinds, message_lines, model, requests, tool
from uap import AgentState, AgentStrategy, agent
from uap.execution import react
from upp import UserMessage
from upp.providers.scripted import Reasoning, Text

START = AgentState.initial()


async def test_each_step_reasons_acts_and_observes() -> None:
    """UAP §5.3: reason, act, observe, until there are no more actions."""
    bot = agent(
        model=model("first look", call("t"), "then tell", "it is 7"),
        tools=[tool("t", lambda _: 7)],
        execution=react(),
    )
    stream = bot.stream("go", START)
    events = await followed(stream)

    assert kinds(events) == [
        *("step_start 1", "reasoning 1", "action 1", "observation 1", "step_end 1"),
        *("step_start 2", "reasoning 2", "step_end 2"),
    ]
    uap_events = [event.uap for event in events if event.uap is not None]
    assert uap_events[0].data == {"phase": "reasoning"}
    assert uap_events[1].data == {"reasoning": "first look"}
    result = await stream
    assert result.state.reasoning == ("first look", "then tell")
    assert (result.turn.response.text, result.turn.cycles, result.state.step) == ("it is 7", 4, 2)
    assert len(result.turn.tool_executions) == 1


async def test_prompts_and_thoughts_stay_in_the_state_and_are_marked() -> None:
    """UAP §11.3 MUST: the state includes the complete history."""
    bot = agent(model=model("hm", "yes"), execution=react(reasoning_prompt="Think!"))
    result = await bot.generate("go", START)
    _, prompt, thought, urge, _ = result.state.messages

    assert message_lines(result.state.messages)[:3] == ["user go", "user Think!", "assistant hm"]
    assert prompt.metadata == {"uap": {"synthetic": True, "phase": "reason"}}
    assert thought.metadata == prompt.metadata
    assert urge.metadata == {"uap": {"synthetic": True, "phase": "act"}}
    assert result.state.messages[-1].metadata == {}
    assert result.turn.messages == result.state.messages
    assert requests(bot)[1].messages == result.state.messages[:-1]


async def test_the_reasoning_prompt_is_the_last_message_of_the_reasoning_call() -> None:
    """UAP §5.3: reasoningPrompt is the prompt of the reasoning phase."""
    bot = agent(model=model("hm", "yes"), execution=react(reasoning_prompt="Think!"))
    await bot.generate("go", START)
    last = requests(bot)[0].messages[-1]

    assert isinstance(last, UserMessage)
    assert last.text == "Think!"


async def test_the_limit_ends_the_run_without_an_error() -> None:
    """UAP §5.3: maxSteps is the maximum of reason-act-observe cycles."""
    bot = agent(
        model=model("hm", call("t"), "hm", call("t"), "hm", call("t")),
        tools=[tool("t")],
        execution=react(max_steps=2),
    )
    result = await bot.generate("go", START)

    assert (result.state.step, len(requests(bot))) == (2, 4)


async def test_reasoning_has_no_limit_of_its_own() -> None:
    """UAP §2.4 SHALL NOT, §14.2 MUST: maxSteps is infinite."""
    answers: list[Answer] = [answer for _ in range(25) for answer in ("hm", call("t"))]
    bot = agent(model=model(*answers, "hm", "done"), tools=[tool("t")], execution=react())

    assert (await bot.generate("go", START)).state.step == 26


async def test_tools_are_not_run_while_the_model_reasons() -> None:
    ran: list[object] = []
    bot = agent(
        model=model([Text("hm"), call("t")], "done"),
        tools=[tool("t", ran.append)],
        execution=react(),
    )
    result = await bot.generate("go", START)

    assert ran == []
    assert message_lines(result.state.messages)[2] == "assistant hm"
    assert not any(getattr(message, "tool_calls", ()) for message in result.state.messages)


async def test_a_reasoning_without_words_is_not_kept_in_the_conversation() -> None:
    bot = agent(model=model([call("t")], "done"), tools=[tool("t")], execution=react())
    result = await bot.generate("go", START)

    assert len(result.state.messages) == 3
    assert result.state.reasoning == ("",)


async def test_what_a_model_only_thinks_is_its_reasoning() -> None:
    """UAP §5.3: models that think by themselves often write nothing down."""
    thinks: Answer = [Reasoning("the key "), Reasoning("is gone"), Text(" \n")]
    bot = agent(model=model(thinks, "done"), execution=react())

    assert (await bot.generate("go", START)).state.reasoning == ("the key is gone",)


async def test_the_structure_of_the_answer_does_not_bind_the_reasoning() -> None:
    structure = {"type": "object"}
    bot = agent(
        model=model([Reasoning("quiet"), Text("hm")], '{"a": 1}'),
        execution=react(),
        structure=structure,
    )
    result = await bot.generate("go", START)

    assert [request.structure for request in requests(bot)] == [None, structure]
    assert result.turn.data == {"a": 1}


async def test_the_hooks_of_a_reasoning_step_come_in_order() -> None:
    """UAP §10.1: onStepStart, onReason, onAct, onObserve, onStepEnd, stopCondition, onComplete."""
    log: list[str] = []

    def stops(state: AgentState) -> bool:
        log.append(f"stop? {state.step}")
        return False

    strategy = AgentStrategy(
        on_step_start=lambda step, state: log.append(f"start {step} {state.step}"),
        on_reason=lambda step, reasoning: log.append(f"reason {step} {reasoning}"),
        on_act=lambda step, calls: log.append(f"act {step} {calls[0].tool_name}"),
        on_observe=lambda step, done: log.append(f"observe {step} {done[0].result}"),
        on_step_end=lambda step, result: log.append(f"end {step} {result.turn.cycles}"),
        stop_condition=stops,
        on_complete=lambda result: log.append(f"complete {result.state.step}"),
    )
    bot = agent(
        model=model("hm", call("t"), "so", "bye"),
        tools=[tool("t")],
        execution=react(),
        strategy=strategy,
    )
    await bot.generate("go", START)

    assert log == [
        *("start 1 1", "reason 1 hm", "act 1 t", "observe 1 done", "end 1 2", "stop? 1"),
        *("start 2 2", "reason 2 so", "end 2 2", "stop? 2"),
        "complete 2",
    ]
