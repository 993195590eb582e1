"""From a model's stream to UAMP events."""

from typing import Any

import pytest

from agents_app.tools.registry import ToolOutcome
from uamp.events import (
    Delta,
    Event,
    Progress,
    ResponseDelta,
    Thinking,
    ToolCallDone,
    ToolProgress,
    TranscriptDone,
    UsageDelta,
)
from uamp.types.content import ImageContent, ToolCallData, ToolResultData
from uamp.types.session import UsageStats
from uap import AgentStreamEvent, UAPEvent, UAPEventType
from uap.state import PlanStep
from uap.uamp_adapter.stream import Translator, usage_stats
from upp import EventDelta, StreamEvent, TokenUsage
from upp.stream import StreamEventType, reasoning_delta, text_delta, tool_call_delta

PICTURE = ImageContent(image="QQ==", content_id="x")


def new_translator() -> Translator:
    return Translator(
        "r1",
        client_tools=frozenset({"ask"}),
        known_calls=frozenset({"old"}),
        outcomes={"c1": ToolOutcome(result="done", content_items=(PICTURE,))},
    )


def executed(kind: StreamEventType, name: str, call_id: str = "c1", **delta: object) -> StreamEvent:
    return StreamEvent(
        type=kind,
        delta=EventDelta(tool_name=name, tool_call_id=call_id, **delta),  # type: ignore[arg-type] # members by name
    )


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            text_delta("hi"),
            ("hi",),
        ),
        (text_delta(""), ()),
        (
            reasoning_delta("hm"),
            (Thinking(content="hm", is_delta=True, response_id="r1"),),
        ),
        (reasoning_delta(""), ()),
        (tool_call_delta(call_id="c1", name="find", arguments_json="{"), ()),
        (StreamEvent(type="message_start"), ()),
        (StreamEvent(type="message_stop"), ()),
        (
            StreamEvent(
                type="message_stop",
                delta=EventDelta(usage=TokenUsage(input_tokens=1, output_tokens=2, total_tokens=3)),
            ),
            (
                UsageDelta(
                    response_id="r1",
                    delta=UsageStats(input_tokens=1, output_tokens=2, total_tokens=3),
                ),
            ),
        ),
        (
            executed("tool_execution_start", "find", arguments_json='{"q":1}'),
            (
                ResponseDelta(
                    response_id="r1",
                    delta=Delta(
                        type="tool_call",
                        tool_call=ToolCallData(id="c1", name="find", arguments='{"q":1}'),
                    ),
                ),
            ),
        ),
        (executed("tool_execution_start", "find", "old"), ()),
        (
            executed("tool_execution_end", "find", result="done", is_error=False),
            (
                ResponseDelta(
                    response_id="r1",
                    delta=Delta(
                        type="tool_result",
                        tool_result=ToolResultData(
                            call_id="c1",
                            result='"done"',
                            status="success",
                            content_items=(PICTURE,),
                        ),
                    ),
                ),
                ToolCallDone(call_id="c1", response_id="r1"),
            ),
        ),
        (
            executed("tool_execution_end", "find", "old", result="no", is_error=True),
            (
                ResponseDelta(
                    response_id="r1",
                    delta=Delta(
                        type="tool_result",
                        tool_result=ToolResultData(
                            call_id="old", result='"no"', is_error=True, status="error"
                        ),
                    ),
                ),
                ToolCallDone(call_id="old", response_id="r1"),
            ),
        ),
        (executed("tool_execution_start", "ask"), ()),
        (executed("tool_execution_end", "ask", result="x", is_error=False), ()),
    ],
)
def test_an_event_has_its_translation(
    event: StreamEvent, expected: tuple[Event | str, ...]
) -> None:
    assert new_translator().translate(event) == expected


def test_the_result_of_a_call_says_how_long_it_took() -> None:
    translator = new_translator()
    for call_id, is_measured in (("c1", True), ("old", False)):
        translator.translate(executed("tool_execution_start", "find", call_id))
        done = translator.translate(
            executed("tool_execution_end", "find", call_id, result="x", is_error=False)
        )[0]
        assert isinstance(done, ResponseDelta)
        assert done.delta.tool_result is not None
        assert (done.delta.tool_result.duration_ms is not None) is is_measured


def test_cached_tokens_are_reads_and_writes() -> None:
    usage = TokenUsage(input_tokens=1, cache_read_tokens=2, cache_write_tokens=3)
    assert usage_stats(usage).cached_tokens == 5
    assert usage_stats(TokenUsage()).cached_tokens is None


def test_what_no_database_takes_is_replaced_in_a_models_words() -> None:
    event = StreamEvent(type="text_delta", index=0, delta=EventDelta(text="a\0b\ud800c"))
    assert new_translator().translate(event) == ("a\ufffdb?c",)


def uap(kind: UAPEventType, **data: Any) -> AgentStreamEvent:
    event = UAPEvent(type=kind, step=1, agent_id="a", data=data)
    return AgentStreamEvent(source="uap", uap=event)


def upp(event: StreamEvent) -> AgentStreamEvent:
    return AgentStreamEvent(source="upp", upp=event)


def inside(event: AgentStreamEvent, call_id: str = "c1") -> AgentStreamEvent:
    return uap("subagent_event", parentToolCallId=call_id, innerEvent=event)


def progress(**values: Any) -> tuple[Event, ...]:
    return (Progress(target="tool", target_id="c1", response_id="r1", **values),)


def tool_progress(text: str) -> tuple[Event, ...]:
    reported = ToolProgress(call_id="c1", text=text)
    delta = Delta(type="tool_progress", tool_progress=reported)
    return (ResponseDelta(response_id="r1", delta=delta),)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (uap("subagent_start", parentToolCallId="c1"), progress(stage="delegating")),
        (
            uap("subagent_end", parentToolCallId="c1", success=True),
            progress(stage="done", percent=100),
        ),
        (
            uap("subagent_end", parentToolCallId="c1", success=False),
            progress(stage="failed", percent=100),
        ),
        (inside(upp(text_delta("hi"))), tool_progress("hi")),
        (inside(inside(upp(text_delta("deep")), "c9")), tool_progress("deep")),
        (inside(upp(reasoning_delta("hm"))), ()),
        (inside(uap("step_start")), ()),
        (uap("action", toolCalls=()), ()),
    ],
)
def test_what_a_sub_agent_says_is_progress_of_its_call(
    event: AgentStreamEvent, expected: tuple[Event, ...]
) -> None:
    assert Translator("r1", outcomes={}).follow(event) == expected


def test_texts_of_a_reasoning_phase_are_thoughts_until_it_ends() -> None:
    translator = Translator("r1", outcomes={})
    event = upp(text_delta("x"))
    assert translator.follow(uap("step_start", phase="reasoning")) == ()
    (thought,) = translator.follow(event)
    assert thought == Thinking(content="x", stage="analyzing", is_delta=True, response_id="r1")
    translator.follow(uap("reasoning", reasoning="x"))
    assert translator.follow(event) == ("x",)


def test_what_a_model_speaks_and_understood_are_events() -> None:
    translator = Translator("r1", outcomes={}, sound_format="pcm16")
    spoken = StreamEvent(type="audio_delta", delta=EventDelta(data=b"abc"))
    delta = Delta(type="audio", audio="YWJj", format="pcm16")
    assert translator.translate(spoken) == (ResponseDelta(response_id="r1", delta=delta),)
    assert translator.spoken == 3
    received = StreamEvent(type="input_transcript", delta=EventDelta(text="hello"))
    done = TranscriptDone(response_id="r1", transcript="hello", role="user")
    assert translator.translate(received) == (done,)
    assert translator.translate(StreamEvent(type="input_transcript")) == ()


def test_a_plan_is_shown_when_it_was_read_and_its_steps_are_paragraphs() -> None:
    translator = Translator("r1", outcomes={})
    first, second = (
        PlanStep(id=name, description=f"do {name}", depends_on=(), status="in_progress")
        for name in ("a", "b")
    )
    translator.follow(uap("step_start", phase="planning"))
    assert translator.follow(upp(text_delta("[{"))) == ()
    (thinking,) = translator.follow(uap("step_end", plan=[first, second]))
    assert thinking == Thinking(
        content="1. do a\n2. do b\n", stage="planning", is_delta=True, response_id="r1"
    )
    (progress_event,) = translator.follow(uap("step_start", planStep=first))
    assert progress_event == Progress(
        target="response", target_id="r1", stage="in_progress", message="do a", response_id="r1"
    )
    assert translator.follow(upp(text_delta("one"))) == ("one",)
    translator.follow(uap("step_start", planStep=second))
    assert translator.follow(upp(text_delta("two"))) == ("\n\ntwo",)
