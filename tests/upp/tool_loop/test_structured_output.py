"""Structured output: parsing, errors and streaming."""

from collections.abc import AsyncIterator

from upp import LLMRequest, llm
from upp.providers.scripted import Reasoning, ScriptedModel, Step, Text


async def test_structured_output_is_parsed_and_ends_the_loop() -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Text('{"a": [1]}')

    model = llm(model=ScriptedModel(script=script), structure={"type": "object"})
    assert (await model.generate([], "go")).data == {"a": [1]}


async def test_structured_output_that_is_not_json_has_no_data() -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Text("I would rather talk")

    model = llm(model=ScriptedModel(script=script), structure={"type": "object"})
    assert (await model.generate([], "go")).data is None


async def test_structured_output_streams_as_an_object_beside_its_text() -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Reasoning("hm")
        yield Text('{"a"')
        yield Text(": 1}")

    model = llm(model=ScriptedModel(script=script), structure={"type": "object"})
    result = model.stream("go")
    events = [(event.type, event.delta.text) async for event in result if event.delta.text]
    assert events == [
        ("reasoning_delta", "hm"),
        ("text_delta", '{"a"'),
        ("object_delta", '{"a"'),
        ("text_delta", ": 1}"),
        ("object_delta", ": 1}"),
    ]
    assert (await result).data == {"a": 1}
