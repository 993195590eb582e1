"""Middleware that comes with the protocol."""

import logging
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.upp.middleware.streams import endless, failing
from tests.upp.text_scripts import three_words
from tests.upp.tool_scripts import calls_then_answers, tool
from upp import (
    LLMRequest,
    LoggingMiddleware,
    MiddlewareContext,
    ParsedObjectMiddleware,
    UPPError,
    llm,
)
from upp.providers.scripted import Call, Script, ScriptedModel, Step, Text


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the log, with its milliseconds hidden."""
    return [re.sub(r"\d+ ms", "N ms", f"{r.levelname} {r.message}") for r in caplog.records]


def model_of(script: Script, *middleware: Any, **options: Any) -> Any:
    model = ScriptedModel(script=script, model_id="m")
    return llm(model=model, middleware=middleware, **options)


async def test_the_start_and_the_end_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "upp")
    await model_of(three_words, LoggingMiddleware()).generate("my secret")
    assert logged(caplog) == [
        "INFO scripted/m started with 1 messages",
        "INFO scripted/m ended in N ms with 1 cycles, 3 tokens",
    ]


async def test_messages_are_logged_on_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger = logging.getLogger("own")
    caplog.set_level(logging.DEBUG, "own")
    middleware = LoggingMiddleware(logger=logger, level=logging.DEBUG, include_messages=True)
    await model_of(three_words, middleware).generate("my secret")
    await model_of(three_words, middleware).generate([])
    assert logged(caplog) == [
        "DEBUG scripted/m started with 1 messages: 'my secret'",
        "DEBUG scripted/m ended in N ms with 1 cycles, 3 tokens: 'abc'",
        "DEBUG scripted/m started with 0 messages",
        "DEBUG scripted/m ended in N ms with 1 cycles, 1 tokens: 'abc'",
    ]


def test_an_end_without_a_turn_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "upp")
    context = MiddlewareContext(
        model_id="m", provider="p", streaming=False, request=LLMRequest(messages=())
    )
    LoggingMiddleware().on_end(context)
    assert logged(caplog) == []


async def test_errors_and_aborts_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "upp")
    with pytest.raises(UPPError, match="no"):
        await model_of(failing, LoggingMiddleware()).generate("go")
    async with model_of(endless, LoggingMiddleware()).stream("go") as result:
        async for event in result:
            if event.type == "text_delta":
                break
    assert logged(caplog)[1::2] == [
        "WARNING scripted/m failed after N ms: no",
        "INFO scripted/m was aborted after N ms",
    ]


async def test_an_object_is_shown_as_it_grows() -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        for piece in ('{"a": [1', ", 2]", ', "b": "x', 'y"}'):
            yield Text(piece)

    result = model_of(script, ParsedObjectMiddleware(), structure={"type": "object"}).stream("go")
    events = [event async for event in result]
    assert [e.delta.parsed for e in events if e.type == "object_delta"] == [
        {"a": [1]},
        {"a": [1, 2]},
        {"a": [1, 2], "b": "x"},
        {"a": [1, 2], "b": "xy"},
    ]
    assert {e.delta.parsed for e in events if e.type != "object_delta"} == {None}


async def test_each_inference_begins_its_object_anew() -> None:
    script = calls_then_answers(Call(name="t", arguments={}))

    async def twice(request: LLMRequest) -> AsyncIterator[Step]:
        yield Text('{"n": 1}')
        async for step in script(request):
            if isinstance(step, Call):
                yield step

    model = model_of(
        twice,
        ParsedObjectMiddleware(),
        structure={"type": "object"},
        tools=[tool("t", lambda _: "done")],
    )
    parsed = [e.delta.parsed async for e in model.stream("go") if e.type == "object_delta"]
    assert parsed == [{"n": 1}, {"n": 1}]
