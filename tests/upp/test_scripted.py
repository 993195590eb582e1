"""The scripted provider: what a script says is what comes out."""

import time
from collections.abc import AsyncIterator

import pytest

from upp import (
    AssistantMessage,
    ErrorCode,
    LLMRequest,
    ReasoningBlock,
    TextBlock,
    TokenUsage,
    UPPError,
    llm,
)
from upp.providers.scripted import (
    Call,
    Pause,
    Reasoning,
    ScriptedModel,
    ScriptedProvider,
    Step,
    Stop,
    Text,
    Usage,
)


async def everything(_request: LLMRequest) -> AsyncIterator[Step]:
    yield Reasoning("first ")
    yield Reasoning("I think")
    yield Text("then ")
    yield Text("I say")
    yield Reasoning("wait")
    yield Call(name="t", arguments={"a": 1}, call_id="c1")
    yield Stop("max_tokens")
    yield Text("never said")


async def test_pieces_become_blocks_in_their_order() -> None:
    events = []
    result = llm(model=ScriptedModel(script=everything)).stream([], "go")
    async for event in result:
        events.append((event.type, event.delta.text or event.delta.arguments_json))  # noqa: PERF401 it reads better
    assert events == [
        ("message_start", None),
        ("reasoning_delta", "first "),
        ("reasoning_delta", "I think"),
        ("text_delta", "then "),
        ("text_delta", "I say"),
        ("reasoning_delta", "wait"),
        ("tool_call_delta", '{"a":1}'),
        ("message_stop", None),
    ]
    turn = await result
    assert turn.response.content == (
        ReasoningBlock(text="first I think"),
        TextBlock(text="then I say"),
        ReasoningBlock(text="wait"),
    )
    assert turn.response.tool_calls[0].arguments == {"a": 1}
    assert turn.stop_reason == "max_tokens"


async def test_words_are_counted_as_tokens() -> None:
    model = llm(model=ScriptedModel(script=everything), system="be brief")
    turn = await model.generate([AssistantMessage(content=())], "three more words")
    assert turn.usage == TokenUsage(input_tokens=5, output_tokens=7, total_tokens=12)


async def test_a_script_may_report_its_usage() -> None:
    usage = TokenUsage(input_tokens=7, cache_read_tokens=5)

    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Usage(usage)

    assert (await llm(model=ScriptedModel(script=script)).generate([], "go")).usage == usage


async def test_two_calls_have_two_ids() -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Call(name="t", arguments={})
        yield Call(name="t", arguments={})

    turn = await llm(model=ScriptedModel(script=script)).generate([], "go")
    first, second = (call.tool_call_id for call in turn.response.tool_calls)
    assert first != second


async def test_delays_and_pauses_take_their_time() -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Text("a")
        yield Pause(0.02)
        yield Call(name="t", arguments={})

    started = time.monotonic()
    await llm(model=ScriptedModel(script=script, delay=0.03)).generate([], "go")
    assert 0.05 <= time.monotonic() - started < 30


async def test_a_provider_plays_scripts_by_name() -> None:
    provider = ScriptedProvider(scripts={"everything": everything})
    model = provider("everything")
    assert (model.model_id, model.provider) == ("everything", "scripted")
    assert (await llm(model=model).generate([], "go")).stop_reason == "max_tokens"
    with pytest.raises(UPPError) as caught:
        provider("nothing")
    assert caught.value.code == ErrorCode.MODEL_NOT_FOUND


async def test_any_async_iterator_can_be_a_script() -> None:
    class Once:
        def __init__(self) -> None:
            self.steps: list[Step] = [Text("once")]

        def __aiter__(self) -> "Once":
            return self

        async def __anext__(self) -> Step:
            if not self.steps:
                raise StopAsyncIteration
            return self.steps.pop()

    model = ScriptedModel(script=lambda _request: Once())
    assert (await llm(model=model).generate([], "go")).response.text == "once"
