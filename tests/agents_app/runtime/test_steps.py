"""Runs of more than one step: strategies, checkpoints between steps, and going on from one."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents_app.checkpoints import ResponseCheckpoint
from agents_app.providers import scripts
from agents_app.runtime.agent_run import AgentError, RunFinished, RunRequest, run_agent
from agents_app.selectors import AgentSpec
from agents_app.tools.registry import ToolOutcome
from tests.agents_app.run_context import Broker, Media, as_event
from uamp.events import Event, Progress, ResponseDone, ResponseOutput
from uamp.output import OutputBuilder
from uamp.types.content import (
    ContentItem,
    Message,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolCallData,
    ToolResultContent,
    ToolResultData,
)
from uamp.types.session import FunctionDefinition, ToolDefinition
from uap import AgentState
from upp import AssistantMessage, ErrorCode, LLMRequest, ToolResultMessage, UPPError, UserMessage
from upp.providers.scripted import Call, Fail, Step, Text

Play = Callable[[LLMRequest], AsyncIterator[Step]]
LOOK = ToolDefinition(function=FunctionDefinition(name="look", description="d"))
PLAN = json.dumps(
    {
        "steps": [
            {"id": "a", "description": "Look", "tool": "look", "dependsOn": []},
            {"id": "b", "description": "Say", "tool": None, "dependsOn": ["a"]},
        ]
    }
)


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AgentSpec]:
    """Return a function that makes an agent of what its model says to each request in turn."""

    def agent(*turns: list[Step], seen: list[LLMRequest] | None = None, **values: Any) -> AgentSpec:
        left = list(turns)

        async def script(request: LLMRequest) -> AsyncIterator[Step]:
            if seen is not None:
                seen.append(request)
            for step in left.pop(0) if len(left) > 1 else left[0]:
                yield step

        monkeypatch.setitem(scripts.SCRIPTS, "played", lambda _spec, request: script(request))
        return AgentSpec(id="a", name="bot", options={"script": "played"}, **values)

    return agent


@dataclass
class CheckpointSaver:
    """Keeps each checkpoint with what had been shown when it was saved."""

    builder: OutputBuilder = field(default_factory=OutputBuilder)
    checkpoints: list[ResponseCheckpoint] = field(default_factory=list)
    broken: bool = False

    async def save(self, state: AgentState, *, step: int) -> None:
        """Keep it, through JSON as a row does."""
        if self.broken:
            raise OSError("the disk is full")
        state = AgentState.from_json(state.to_json())
        output = tuple(self.builder.output)
        self.checkpoints.append(ResponseCheckpoint(state=state, output=output, step=step, fence=1))


def request(**values: Any) -> RunRequest:
    history = [Message(role="user", content="hello")]
    return RunRequest(response_id="r1", history=history, tools=[LOOK], **values)


async def run(
    spec: AgentSpec, run_request: RunRequest, saver: CheckpointSaver | None = None
) -> tuple[list[Event], RunFinished, Broker]:
    broker = Broker(answer=lambda _: ToolOutcome(result="seen"))
    saver = saver or CheckpointSaver()
    events: list[Event] = []

    def receive(piece: Event | str) -> None:
        event = as_event(piece)
        saver.builder.add(event)
        events.append(event)

    end = await run_agent(
        spec, run_request, receive, broker=broker, media=Media(), checkpoints=saver
    )
    return events, end, broker


def drop(_shown: Event | str) -> None:
    """Receive text or an event and drop it."""


def output_of(events: list[Event]) -> list[ContentItem]:
    builder = OutputBuilder()
    for event in events:
        builder.add(event)
    return builder.output


CALL: list[Step] = [Text("I look. "), Call(name="look", arguments={"at": 1}, call_id="c1")]


async def test_a_turn_of_one_step_has_no_checkpoint(play: Callable[..., AgentSpec]) -> None:
    saver = CheckpointSaver()
    await run(play([Text("hi")]), request(), saver)
    assert saver.checkpoints == []


async def test_a_checkpoint_is_saved_after_each_step_but_the_last(
    play: Callable[..., AgentSpec],
) -> None:
    saver = CheckpointSaver()
    again: list[Step] = [Text("More. "), Call(name="look", arguments={}, call_id="c2")]
    await run(play(CALL, again, [Text("done")]), request(), saver)
    first, second = saver.checkpoints
    assert (first.step, second.step) == (1, 2)
    assert (first.output, second.output) == (
        (TextContent(text="I look. "),),
        (TextContent(text="I look. More. "),),
    )
    # The question is in the chat, and not in the checkpoint.
    assert [type(message) for message in first.state.messages] == [
        AssistantMessage,
        ToolResultMessage,
    ]
    assert [len(checkpoint.state.messages) for checkpoint in saver.checkpoints] == [2, 4]


async def test_a_checkpoint_that_is_not_saved_does_not_end_the_run(
    play: Callable[..., AgentSpec], caplog: pytest.LogCaptureFixture
) -> None:
    events, _, _ = await run(play(CALL, [Text("done")]), request(), CheckpointSaver(broken=True))
    assert output_of(events) == [TextContent(text="I look. done")]
    assert "a checkpoint was not saved" in caplog.text


async def test_a_run_resumes_from_its_checkpoint(play: Callable[..., AgentSpec]) -> None:
    saver = CheckpointSaver()
    await run(play(CALL, [Text("lost")]), request(), saver)
    (checkpoint,) = saver.checkpoints
    seen: list[LLMRequest] = []
    spec = play([Text("done")], seen=seen)
    after = CheckpointSaver()
    events, end, broker = await run(
        spec, request(resume=checkpoint.output, checkpoint=checkpoint), after
    )
    assert output_of(events) == [TextContent(text="done")]
    assert (broker.calls, end.steps, after.checkpoints) == ([], 1, [])
    (llm_request,) = seen
    assert [type(message) for message in llm_request.messages] == [
        UserMessage,
        AssistantMessage,
        ToolResultMessage,
    ]


async def test_a_run_that_waited_resumes_from_its_checkpoint_and_its_new_call(
    play: Callable[..., AgentSpec],
) -> None:
    saver = CheckpointSaver()
    await run(play(CALL, [Text("lost")]), request(), saver)
    (checkpoint,) = saver.checkpoints
    added = (
        TextContent(text="I look. Again."),
        ToolCallContent(tool_call=ToolCallData(id="c2", name="look", arguments="{}")),
        ToolResultContent(tool_result=ToolResultData(call_id="c2", result="dark")),
    )
    seen: list[LLMRequest] = []
    _, _, broker = await run(
        play([Text("done")], seen=seen), request(resume=added, checkpoint=checkpoint)
    )
    assert broker.calls == []
    *_, answer, result = seen[0].messages
    assert (answer.text, len(seen[0].messages)) == ("Again.", 5)
    assert isinstance(result, ToolResultMessage)
    assert result.results[0].result == "dark"


HALF: tuple[ContentItem, ...] = (
    TextContent(text="I do both. "),
    ToolCallContent(tool_call=ToolCallData(id="c1", name="look", arguments='{"at": 1}')),
    ToolCallContent(tool_call=ToolCallData(id="c2", name="look", arguments='{"at": 2}')),
    ToolResultContent(tool_result=ToolResultData(call_id="c2", result='"dark"')),
)
"""A response that was left when the second of its two calls had a result."""


async def test_results_from_before_and_after_a_takeover_are_one_round(
    play: Callable[..., AgentSpec],
) -> None:
    seen: list[LLMRequest] = []
    spec = play([Text("done")], seen=seen)
    _, _, broker = await run(spec, request(resume=HALF))
    assert [call.id for call in broker.calls] == ["c1"]
    *_, answer, tool_results = seen[0].messages
    assert isinstance(answer, AssistantMessage)
    assert isinstance(tool_results, ToolResultMessage)
    assert [
        (tool_result.tool_call_id, tool_result.result) for tool_result in tool_results.results
    ] == [
        ("c1", "seen"),
        ("c2", "dark"),
    ]


async def test_a_checkpoint_after_a_takeover_has_all_that_the_response_said(
    play: Callable[..., AgentSpec],
) -> None:
    """The process that took a response over, which had no checkpoint, may die as well."""
    saver = CheckpointSaver()
    response = ResponseOutput(id="r1", status="in_progress", output=HALF)
    saver.builder.add(ResponseDone(response_id="r1", response=response))
    again: list[Step] = [Text("More. "), Call(name="look", arguments={}, call_id="c3")]
    await run(play(again, [Text("lost")]), request(resume=HALF), saver)
    (checkpoint,) = saver.checkpoints
    assert checkpoint.tool_rounds == 2
    seen: list[LLMRequest] = []
    await run(
        play([Text("done")], seen=seen), request(resume=checkpoint.output, checkpoint=checkpoint)
    )
    texts = [
        message.text if isinstance(message, AssistantMessage) else type(message)
        for message in seen[0].messages
    ]
    assert texts == [UserMessage, "I do both. ", ToolResultMessage, "More. ", ToolResultMessage]


async def test_rounds_before_the_checkpoint_count(play: Callable[..., AgentSpec]) -> None:
    saver = CheckpointSaver()
    await run(play(CALL, CALL, [Text("lost")]), request(), saver)
    checkpoint = saver.checkpoints[-1]
    spec = play([Call(name="look", arguments={})], max_steps=4)
    broker = Broker(answer=lambda _: ToolOutcome(result="seen"))
    run_request = request(resume=checkpoint.output, checkpoint=checkpoint)
    with pytest.raises(AgentError) as caught:
        await run_agent(spec, run_request, drop, broker=broker, media=Media())
    assert caught.value.code == "too_many_steps"
    assert len(broker.calls) == 2


async def test_react_shows_its_reasoning_as_thinking(play: Callable[..., AgentSpec]) -> None:
    seen: list[LLMRequest] = []
    spec = play(
        [Text("I have to look.")],
        CALL,
        [Text("I know.")],
        [Text("It is blue.")],
        seen=seen,
        strategy="react",
        strategy_options={"reasoning_prompt": "Think!"},
    )
    saver = CheckpointSaver()
    events, end, broker = await run(spec, request(), saver)
    assert output_of(events) == [
        ThinkingContent(thinking="I have to look.", stage="analyzing"),
        TextContent(text="I look. "),
        ThinkingContent(thinking="I know.", stage="analyzing"),
        TextContent(text="It is blue."),
    ]
    assert (end.steps, len(broker.calls), len(saver.checkpoints)) == (4, 1, 1)
    assert seen[0].messages[-1].text == "Think!"


async def test_a_plan_is_shown_as_thinking_and_its_steps_as_progress(
    play: Callable[..., AgentSpec],
) -> None:
    saver = CheckpointSaver()
    spec = play([Text(PLAN)], CALL, [Text("I saw it.")], [Text("Blue.")], strategy="plan")
    events, end, _ = await run(spec, request(), saver)
    assert output_of(events) == [
        ThinkingContent(thinking="1. Look\n2. Say\n", stage="planning"),
        TextContent(text="I look. I saw it.\n\nBlue."),
    ]
    reported = [event.message for event in events if isinstance(event, Progress)]
    assert (reported, end.steps) == (["Look", "Look", "Say"], 4)
    assert [checkpoint.step for checkpoint in saver.checkpoints] == [1, 2, 3]


@pytest.mark.parametrize(
    ("at", "left", "text"),
    [
        (0, [CALL, [Text("I saw it.")], [Text("Blue.")]], "I look. I saw it.\n\nBlue."),
        (1, [[Text("I saw it.")], [Text("Blue.")]], "I saw it.\n\nBlue."),
        (2, [[Text("Blue.")]], "\n\nBlue."),
    ],
)
async def test_a_plan_resumes_where_it_left_off(
    play: Callable[..., AgentSpec], at: int, left: list[list[Step]], text: str
) -> None:
    saver = CheckpointSaver()
    spec = play([Text(PLAN)], CALL, [Text("I saw it.")], [Text("Blue.")], strategy="plan")
    await run(spec, request(), saver)
    checkpoint = saver.checkpoints[at]
    after = CheckpointSaver()
    events, end, _ = await run(
        play(*left, strategy="plan"),
        request(resume=checkpoint.output, checkpoint=checkpoint),
        after,
    )
    assert "".join(item.text for item in output_of(events) if isinstance(item, TextContent)) == text
    assert end.steps == len(left)
    assert [later.step for later in after.checkpoints] == list(range(at + 2, 4))


async def test_endless_replanning_is_stopped(play: Callable[..., AgentSpec]) -> None:
    turns: list[list[Step]] = []
    error = UPPError("away", code=ErrorCode.PROVIDER_ERROR)
    for _ in range(20):
        turns += [[Text(PLAN)], [Fail(error)]]
    spec = play(*turns, strategy="plan", max_steps=2)
    with pytest.raises(AgentError) as caught:
        await run(spec, request())
    assert caught.value.code == "too_many_steps"
    assert caught.value.message == "bot took 6 steps without coming to an answer."


async def test_a_strategy_that_cannot_be_made_is_reported_in_safe_words(
    play: Callable[..., AgentSpec],
) -> None:
    with pytest.raises(AgentError) as caught:
        await run(play([Text("x")], strategy="plan", strategy_options={"secret": 1}), request())
    assert (caught.value.code, "secret" in caught.value.message) == ("provider_error", False)
