"""Mistakes of a model in its calls: the answer goes on."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings as django_settings

import uamp
from agents_app.inferences import read_inferences
from agents_app.models import Agent
from agents_app.runtime import agent_run, model_calls
from agents_app.tools.registry import ToolOutcome, tool
from sessions_app.models import Response, ToolCall
from tests.agents_app.runtime.invalid_calls import (
    asking,
    call_tool,
    done,
    failed,
    kept_text,
    model_agent,
    provider,
    say,
)
from tests.client import output_text, text_of
from tests.upp.wire_server import STREAM_HEAD, Exchange

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.live_server import Dial
    from tests.upp.wire_server import Answer

FOUR = json.dumps({"text": "four"})


@tool(long_running=False)
def count(text: str) -> int:
    """Count characters here."""
    return len(text)


@tool
def count_slowly(text: str) -> int:
    """Count characters in a worker."""
    return len(text)


@tool(long_running=False)
def show() -> ToolOutcome:
    """Show what no row takes."""
    return ToolOutcome(result="a\0b", content_items=(uamp.TextContent(text="a\0b\ud800"),))


@pytest.fixture(autouse=True)
def _tools(settings: Settings) -> None:
    settings.UAMP_SERVER_TOOLS = [
        *django_settings.UAMP_SERVER_TOOLS,
        f"{__name__}.count",
        f"{__name__}.count_slowly",
        f"{__name__}.show",
    ]


def calls(*functions: dict[str, str]) -> Answer:
    """Return a provider that makes these calls at once, and then says what they gave."""

    async def answer(exchange: Exchange) -> None:
        results = [m["content"] for m in exchange.body["messages"] if m["role"] == "tool"]
        if results:
            await say(exchange, " | ".join(results))
            return
        await exchange.send(STREAM_HEAD)
        pieces: list[dict[str, Any]] = [
            {
                "index": index,
                "id": call.get("id", f"call_{index}"),
                "type": "function",
                "function": {"name": call["name"], "arguments": call.get("arguments", FOUR)},
            }
            for index, call in enumerate(functions)
        ]
        await exchange.delta(tool_calls=pieces)
        await exchange.finish("tool_calls")

    return answer


@pytest.mark.sampled
@pytest.mark.usefixtures("celery_worker_thread")
@pytest.mark.parametrize("name", ["count", "count_slowly"])
@pytest.mark.parametrize("call_id", ["a\0b", "i" * 5000, "zwölf", " "])
def test_a_call_whose_id_no_row_can_hold_is_run(dial: Dial, name: str, call_id: str) -> None:
    with provider(calls({"name": name, "id": call_id})) as wire:
        model_agent(wire.url, name)
        assert output_text(done(asking(dial))) == "4"


@pytest.mark.usefixtures("celery_worker_thread")
@pytest.mark.parametrize("name", ["count", "count_slowly"])
def test_calls_of_one_answer_that_share_an_id_are_each_run(dial: Dial, name: str) -> None:
    texts = [json.dumps({"text": text}) for text in ("three", "or four")]
    same = [{"name": name, "id": "call_x", "arguments": text} for text in texts]
    with provider(calls(*same)) as wire:
        model_agent(wire.url, name)
        answer = done(asking(dial))
        messages = wire.exchanges[-1].body["messages"]
    assert output_text(answer) == "5 | 7"
    reported = [
        call["id"] for m in messages if m["role"] == "assistant" for call in m["tool_calls"]
    ]
    assert reported == [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    assert reported[0] == "call_x"
    assert len(set(reported)) == 2
    if name == "count_slowly":
        # They are opened at once: which row is the first does not matter.
        assert set(ToolCall.objects.values_list("call_id", flat=True)) == set(reported)
        assert not ToolCall.objects.filter(started_at=None).exists()
    # Operators see both requests to the model.
    first, second = read_inferences(Response.objects.get().inferences)
    assert (first.number, second.number, first.end, second.end) == (1, 2, "", "")
    assert (second.input_tokens, second.output_tokens) == (10, 2)
    for inference in (first, second):
        assert inference.first_ms is not None
        assert inference.ms is not None
        assert 0 <= inference.first_ms <= inference.ms


@pytest.mark.parametrize(
    ("call", "excerpt"),
    [
        ({"name": "tele\0port"}, "not found"),
        ({"name": "t" * 5000}, "not found"),
        ({"name": ""}, "not found"),
        ({"name": "count", "arguments": '{"text": "\0"}'}, "not a JSON object"),
    ],
)
def test_an_impossible_call_is_shown_and_the_model_continues(
    dial: Dial, call: dict[str, str], excerpt: str
) -> None:
    with provider(calls(call)) as wire:
        model_agent(wire.url, "count")
        answer = done(asking(dial))
    assert excerpt in output_text(answer)
    assert len(output_text(answer)) < 300
    shown_calls = [i["tool_call"] for i in answer["response"]["output"] if i["type"] == "tool_call"]
    assert shown_calls[0]["name"] == call["name"].replace("\0", "\N{REPLACEMENT CHARACTER}")[:128]


@pytest.mark.usefixtures("celery_worker_thread")
@pytest.mark.parametrize("name", ["count", "count_slowly"])
def test_arguments_may_hold_what_no_row_takes(dial: Dial, name: str) -> None:
    with provider(calls({"name": name, "arguments": json.dumps({"text": "a\0"})})) as wire:
        model_agent(wire.url, name)
        assert output_text(done(asking(dial))) == "2"


def test_a_result_may_hold_what_no_row_takes(dial: Dial) -> None:
    with provider(calls({"name": "show", "arguments": "{}"})) as wire:
        model_agent(wire.url, "show")
        answer = done(asking(dial))
    (result,) = [i for i in answer["response"]["output"] if i["type"] == "tool_result"]
    assert result["tool_result"]["result"] == '"a\N{REPLACEMENT CHARACTER}b"'
    items = result["tool_result"]["content_items"]
    assert [item["text"] for item in items] == ["a\N{REPLACEMENT CHARACTER}b?"]


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("celery_worker_thread")
@pytest.mark.parametrize("name", ["count", "count_slowly", "weather", "delegate", "present"])
def test_only_some_of_too_many_calls_are_run(
    dial: Dial, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_calls, "CALLS_AT_ONCE", 0)
    with provider(calls({"name": name})) as wire:
        model_agent(wire.url, "count", "count_slowly", "present")
        Agent.objects.create(name="worker", is_public=True, options={"script": "echo"})
        Agent.objects.filter(name="model").update(delegates=["worker"])
        weather = {"type": "function", "function": {"name": "weather"}}
        text = output_text(done(asking(dial, session={"tools": [weather]})))
    assert text.endswith("calls can run at once, so this one was not run. Call it again.")
    assert not ToolCall.objects.exists()


def test_the_first_of_too_many_calls_are_run(dial: Dial) -> None:
    with provider(calls(*[{"name": "count"}] * 40)) as wire:
        model_agent(wire.url, "count")
        results = output_text(done(asking(dial))).split(" | ")
    assert results[:32] == ["4"] * 32
    assert [result[:21] for result in results[32:]] == ["Only 32 calls can run"] * 8


@pytest.mark.parametrize("kind", ["content", "reasoning_content"])
def test_an_answer_without_an_end_is_stopped(
    dial: Dial, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        while not exchange.gone.is_set():
            await exchange.delta(**{kind: "more "})

    monkeypatch.setattr(agent_run, "ANSWER_CHARS", 1000)
    with provider(answer) as wire:
        model_agent(wire.url)
        frames, error = failed(asking(dial), "answer_too_long")
    assert error["message"] == "model wrote more than 1000 characters and was stopped."
    if kind == "content":
        assert text_of(frames) == kept_text() == "more " * 201


def test_calls_without_an_end_are_stopped(dial: Dial, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        for number in itertools.count():
            if exchange.gone.is_set():
                break
            function = {"name": "count", "arguments": '{"text": "many letters"}'}
            call = {"index": number, "id": f"call_{number}", "function": function}
            await exchange.delta(tool_calls=[call])

    monkeypatch.setattr(agent_run, "ANSWER_CHARS", 1000)
    with provider(answer) as wire:
        model_agent(wire.url, "count")
        _, error = failed(asking(dial), "answer_too_long")
    assert error["message"] == "model wrote more than 1000 characters and was stopped."


def test_no_step_asks_for_more_tokens_than_the_answer_has_left(dial: Dial) -> None:
    async def answer(exchange: Exchange) -> None:
        if len(wire.exchanges) < 3:
            # 3 tokens each.
            await call_tool(exchange, "count", FOUR)
        else:
            await say(exchange, "Done.")

    with provider(answer) as wire:
        model_agent(wire.url, "count")
        Agent.objects.filter(name="model").update(max_output_tokens=10)
        assert output_text(done(asking(dial))) == "Done."
        assert [exchange.body["max_tokens"] for exchange in wire.exchanges] == [10, 7, 4]
