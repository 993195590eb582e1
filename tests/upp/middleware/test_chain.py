"""Code around a generation."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tests.upp.middleware.streams import endless, failing
from tests.upp.text_scripts import three_words
from tests.upp.tool_scripts import calls_then_answers, tool
from upp import (
    AudioBlock,
    ErrorCode,
    LLMCapabilities,
    LLMRequest,
    Middleware,
    MiddlewareContext,
    StreamEvent,
    TextBlock,
    ToolCall,
    ToolExecution,
    Turn,
    UPPError,
    UserMessage,
    llm,
)
from upp.providers.scripted import Call, Script, ScriptedModel, Step, Text


class Noting(Middleware):
    """Writes down its hooks, some sync and some async."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self._log = log

    def _note(self, context: MiddlewareContext, hook: str) -> None:
        assert context.provider == "scripted"
        self._log.append(f"{self.name} {hook}")

    def on_start(self, context: MiddlewareContext) -> None:
        """Note."""
        context.state[self.name] = len(context.state)
        self._note(context, f"start {context.provider}/{context.model_id} {context.streaming}")

    async def on_request(self, context: MiddlewareContext) -> None:
        """Note."""
        await asyncio.sleep(0)
        self._note(context, f"request {len(context.request.messages)}")

    def on_response(self, context: MiddlewareContext) -> None:
        """Note."""
        assert context.response is not None
        self._note(context, f"response {context.response.cycles}")

    async def on_end(self, context: MiddlewareContext) -> None:
        """Note."""
        assert context.end_time is not None
        assert context.end_time >= context.start_time
        self._note(context, f"end {context.state}")

    def on_error(self, context: MiddlewareContext, error: Exception) -> None:
        """Note."""
        self._note(context, f"error {error}")

    async def on_abort(self, context: MiddlewareContext) -> None:
        """Note."""
        self._note(context, "abort")

    def on_stream_event(self, event: StreamEvent, context: MiddlewareContext) -> StreamEvent:
        """Note texts."""
        if event.type == "text_delta":
            self._note(context, f"event {event.delta.text}")
        return event

    def on_stream_end(self, context: MiddlewareContext) -> None:
        """Note."""
        self._note(context, "stream end")

    def on_tool_call(self, call: ToolCall, context: MiddlewareContext) -> None:
        """Note."""
        self._note(context, f"call {call.arguments}")

    async def on_tool_result(self, execution: ToolExecution, context: MiddlewareContext) -> None:
        """Note."""
        self._note(context, f"result {execution.result}")


def model_of(script: Script, *middleware: Middleware, **options: Any) -> Any:
    model = ScriptedModel(script=script, model_id="m")
    return llm(model=model, middleware=middleware, **options)


async def test_hooks_run_in_order_on_the_way_in_and_reversed_on_the_way_out() -> None:
    log: list[str] = []
    script = calls_then_answers(Call(name="t", arguments={"n": 1}))
    pair = (Noting("a", log), Noting("b", log))
    await model_of(script, *pair, tools=[tool("t", lambda _: "done")]).generate([], "go")
    assert log == [
        "a start scripted/m False",
        "b start scripted/m False",
        "a request 1",
        "b request 1",
        "a call {'n': 1}",
        "b call {'n': 1}",
        "b result done",
        "a result done",
        "b response 2",
        "a response 2",
        "b end {'a': 0, 'b': 1}",
        "a end {'a': 0, 'b': 1}",
    ]


async def test_events_pass_the_middleware_in_order_before_the_stream_ends() -> None:
    log: list[str] = []
    result = model_of(three_words, Noting("a", log), Noting("b", log)).stream([], "go")
    async for _ in result:
        pass
    assert log[4:13] == [
        "a event a",
        "b event a",
        "a event b",
        "b event b",
        "a event c",
        "b event c",
        "a stream end",
        "b stream end",
        "b response 1",
    ]
    assert log[0] == "a start scripted/m True"


class Shouting(Middleware):
    """Drops b, doubles c, and shouts the rest."""

    def on_stream_event(
        self, event: StreamEvent, context: MiddlewareContext
    ) -> StreamEvent | Sequence[StreamEvent] | None:
        """Change texts."""
        assert context.streaming
        text = event.delta.text
        if text == "b":
            return None
        if text == "c":
            return [event, event]
        loud = msgspec.structs.replace(event.delta, text=text and text.upper())
        return msgspec.structs.replace(event, delta=loud)


async def test_an_event_can_be_changed_dropped_and_doubled() -> None:
    log: list[str] = []
    result = model_of(three_words, Shouting(), Noting("a", log)).stream([], "go")
    texts = [event.delta.text async for event in result if event.type == "text_delta"]
    assert texts == ["A", "c", "c"]
    assert [line for line in log if "event" in line] == ["a event A", "a event c", "a event c"]
    assert (await result.turn()).response.text == "abc"


async def test_tools_run_by_hand_pass_the_middleware_too() -> None:
    log: list[str] = []
    seen: list[StreamEvent] = []

    async def keep(event: StreamEvent) -> None:
        seen.append(event)

    model = model_of(three_words, Noting("a", log), tools=[tool("t", lambda _: "done")])
    call = ToolCall(tool_call_id="c", tool_name="t", arguments={})
    await model.run_tools([call], emit=keep)
    await model.run_tools([call])
    assert log == ["a call {}", "a result done"] * 2
    assert [event.type for event in seen] == ["tool_execution_start", "tool_execution_end"]


class Remembering(Middleware):
    """Puts an old message before the conversation, and signs the turn."""

    def __init__(self, message: UserMessage) -> None:
        self._message = message

    def on_request(self, context: MiddlewareContext) -> None:
        """Prepend."""
        messages = (self._message, *context.request.messages)
        context.request = replace(context.request, messages=messages, system="changed")

    def on_response(self, context: MiddlewareContext) -> None:
        """Sign."""
        assert context.response is not None
        context.response = msgspec.structs.replace(context.response, data="signed")


async def test_messages_that_middleware_adds_are_sent_and_are_part_of_the_turn() -> None:
    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        yield Text(f"{request.system}: {' '.join(m.text for m in request.messages)}")

    old, added = _said("old"), _said("added")
    turn: Turn = await model_of(script, Remembering(added)).generate([old], "new")
    assert turn.response.text == "changed: added old new"
    assert [message.text for message in turn.messages[:2]] == ["added", "new"]
    assert turn.data == "signed"


async def test_media_that_middleware_adds_are_checked() -> None:
    sound = UserMessage(content=(AudioBlock(data=b"", mime_type="audio/wav"),))
    model = ScriptedModel(script=three_words, capabilities=LLMCapabilities())
    with pytest.raises(UPPError, match="AudioBlock"):
        await llm(model=model, middleware=[Remembering(sound)]).generate([], "go")


def _said(text: str) -> UserMessage:
    return UserMessage(content=(TextBlock(text=text),))


class Breaking(Middleware):
    """Raises in the hook of its name."""

    def __init__(self, hook: str) -> None:
        self.name = f"breaking {hook}"

        def broken(*_arguments: object) -> None:
            raise ValueError(f"broken {hook}")

        setattr(self, hook, broken)


async def test_an_error_is_reported_to_all_even_when_one_breaks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log: list[str] = []
    middleware = (Noting("a", log), Breaking("on_error"), Noting("b", log))
    with pytest.raises(UPPError, match="no"):
        await model_of(failing, *middleware).generate([], "go")
    assert log[-2:] == ["a error no", "b error no"]
    assert "Middleware breaking on_error raised an error in on_error" in caplog.text


@pytest.mark.parametrize(
    "hook", ["on_start", "on_request", "on_response", "on_end", "on_tool_result"]
)
async def test_a_hook_that_breaks_ends_the_generation(hook: str) -> None:
    log: list[str] = []
    script = calls_then_answers(Call(name="t", arguments={}))
    model = model_of(script, Noting("a", log), Breaking(hook), tools=[tool("t", lambda _: "done")])
    with pytest.raises(ValueError, match=f"broken {hook}"):
        await model.generate([], "go")
    assert log[-1] == f"a error broken {hook}"


async def test_a_hook_can_refuse_a_call_in_words_for_the_model() -> None:
    ran: list[object] = []
    script = calls_then_answers(Call(name="t", arguments={}))
    model = model_of(script, Breaking("on_tool_call"), tools=[tool("t", ran.append)])
    assert (await model.generate([], "go")).response.text == "broken on_tool_call!"
    assert ran == []


async def test_an_abort_is_reported_once_and_is_not_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log: list[str] = []
    middleware = (Breaking("on_abort"), Noting("a", log))
    result = model_of(endless, *middleware).stream([], "go")
    async for event in result:
        if event.type == "text_delta":
            break
    with pytest.raises(UPPError) as caught:
        await result
    assert caught.value.code == ErrorCode.CANCELLED
    assert log[2:] == ["a event a", "a abort"]
    assert "raised an error in on_abort" in caplog.text


async def test_middleware_that_overrides_nothing_changes_nothing() -> None:
    script = calls_then_answers(Call(name="t", arguments={}))
    tools = [tool("t", lambda _: "done")]
    result = model_of(script, Middleware(), tools=tools).stream([], "go")
    assert (await result).response.text == "done"
    aborted = model_of(endless, Middleware()).stream([], "go")
    async for event in aborted:
        if event.type == "text_delta":
            break
    with pytest.raises(UPPError, match="no"):
        await model_of(failing, Middleware()).generate([], "go")
