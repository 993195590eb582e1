"""Faults of providers and tools, as a client sees them: typed errors, nothing lost.

The whole server on a socket, providers on the wire, long tools in a worker.
"""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings as django_settings

from agents_app.demo import prepare_agents
from agents_app.models import Agent
from agents_app.runtime import short_tools
from agents_app.tools.registry import ToolError, tool
from sessions_app.models import Response
from tests import services
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
from tests.sessions_app.tools import long_tools
from tests.upp.wire_server import STREAM_HEAD, Answer, Exchange

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_django import Settings

    from tests.live_server import Dial

HANG = threading.Event()


@tool(long_running=False)
def misbehave(how: str) -> object:
    """Misbehave in the process of the server."""
    match how:
        case "raise":
            raise RuntimeError("the password is hunter2")
        case "refuse":
            raise ToolError("Say please.")
        case "hang":
            HANG.wait(20)
        case "no json":
            return object()
        case "large":
            return "x" * 50 * 1024 * 1024
    return "well"


@pytest.fixture(autouse=True)
def _tools(settings: Settings) -> Iterator[None]:
    settings.UAMP_SERVER_TOOLS = [
        *django_settings.UAMP_SERVER_TOOLS,
        "tests.agents_app.runtime.test_bad_input.misbehave",
        *long_tools.PATHS,
    ]
    HANG.clear()
    yield
    HANG.set()


def calls_once(name: str, arguments: str = "{}") -> Answer:
    """Return a provider that calls a tool and then says what it was given."""

    async def answer(exchange: Exchange) -> None:
        last = exchange.body["messages"][-1]
        if last["role"] == "tool":
            await say(exchange, f"The tool said: {last['content']}")
        else:
            await call_tool(exchange, name, arguments)

    return answer


# --- Providers ---


def test_a_provider_that_is_down(dial: Dial) -> None:
    model_agent(f"http://127.0.0.1:{services.free_port()}/v1")
    _, error = failed(asking(dial), "provider_error")
    assert error["message"] == "The connection to the model was lost. Try again."


def test_a_provider_that_never_begins_to_answer(dial: Dial) -> None:
    async def answer(exchange: Exchange) -> None:
        await asyncio.wait_for(exchange.gone.wait(), 60)

    with provider(answer) as wire:
        model_agent(wire.url, timeout=0.2)
        _, error = failed(asking(dial), "timeout")
        assert error["message"] == "The model did not answer in time. Try again."
        assert len(wire.exchanges) == 3


def test_a_provider_that_falls_silent_in_mid_answer(dial: Dial) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="Half an")
        await asyncio.wait_for(exchange.gone.wait(), 60)

    with provider(answer) as wire:
        model_agent(wire.url, timeout=0.3)
        frames, _ = failed(asking(dial), "timeout")
        # What has begun is not asked for again.
        assert len(wire.exchanges) == 1
    assert text_of(frames) == kept_text() == "Half an"


def test_a_provider_that_does_not_take_the_key(dial: Dial) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.refuse("401 Unauthorized", b'{"error": {"message": "secret sk-1"}}')

    with provider(answer) as wire:
        model_agent(wire.url)
        _, error = failed(asking(dial), "provider_error")
        assert len(wire.exchanges) == 1
    assert error["message"].startswith("The model does not accept this server's key.")


def test_a_rate_limit_that_ends_soon_is_waited_for(dial: Dial) -> None:
    async def answer(exchange: Exchange) -> None:
        if len(wire.exchanges) < 2:
            await exchange.refuse("429 Too Many Requests", b"secret", "Retry-After: 1")
        else:
            await say(exchange, "Now.")

    with provider(answer) as wire:
        model_agent(wire.url)
        assert output_text(done(asking(dial))) == "Now."
        assert len(wire.exchanges) == 2


@pytest.mark.parametrize(("seconds", "requests"), [(9, 1), (0, 3)])
def test_a_rate_limit_that_stays_is_reported_with_its_time(
    dial: Dial, seconds: int, requests: int
) -> None:
    async def answer(exchange: Exchange) -> None:
        after = f"Retry-After: {seconds}"
        await exchange.refuse("429 Too Many Requests", b"secret", after)

    with provider(answer) as wire:
        model_agent(wire.url)
        _, error = failed(asking(dial), "rate_limit_exceeded")
        assert error["details"] == {"retry_after": seconds}
        assert len(wire.exchanges) == requests


def test_an_answer_that_is_cut_off_keeps_its_text_and_counts_its_steps(dial: Dial) -> None:
    async def answer(exchange: Exchange) -> None:
        if len(wire.exchanges) == 1:
            await call_tool(exchange, "misbehave", '{"how": "well"}')
            return
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="Half an")

    with provider(answer) as wire:
        model_agent(wire.url, "misbehave")
        frames, error = failed(asking(dial), "provider_error")
    assert error["message"] == "The connection to the model was lost. Try again."
    assert text_of(frames) == kept_text() == "Half an"
    usage = Response.objects.get().usage
    assert usage is not None
    # The first step as its provider counted it; of the second one an estimate: it read what the
    # first one read and wrote, and the result of the tool.
    assert (usage["input_tokens"], usage["output_tokens"]) == (7 + 10 + 2, 3 + 2)


def test_a_cancelled_answer_counts_its_steps(dial: Dial) -> None:
    async def answer(exchange: Exchange) -> None:
        if len(wire.exchanges) == 1:
            await call_tool(exchange, "misbehave", '{"how": "well"}')
            return
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="Half an")
        await asyncio.wait_for(exchange.gone.wait(), 60)

    with provider(answer) as wire:
        model_agent(wire.url, "misbehave")
        client = asking(dial)
        while not text_of(client.until("response.delta")):
            pass
        client.send("response.cancel")
        client.until("response.cancelled")
    usage = Response.objects.get().usage
    assert usage is not None
    # The first step as its provider counted it; of the second one an estimate: it read what the
    # first one read and wrote, and the result of the tool.
    assert (usage["input_tokens"], usage["output_tokens"]) == (7 + 10 + 2, 3 + 2)


@pytest.mark.parametrize(
    "nonsense", [b"data: {secret\n\n", b"data: [7]\n\n", b"data: " + b"x" * 10**7]
)
def test_a_provider_that_says_nonsense(dial: Dial, nonsense: bytes) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="Half an")
        await exchange.send(nonsense)

    with provider(answer) as wire:
        model_agent(wire.url)
        frames, _ = failed(asking(dial), "provider_error")
    assert text_of(frames) == kept_text() == "Half an"


@pytest.mark.parametrize(
    "depends_on",
    [
        {"a": ["b"], "b": ["a"]},
        {"a": ["a"]},
        {"a": ["elsewhere"]},
        {str(n): [str((n + 1) % 10)] for n in range(10)},
    ],
)
def test_a_plan_whose_steps_wait_for_each_other_is_refused(
    dial: Dial, depends_on: dict[str, list[str]]
) -> None:
    steps = [
        {"id": name, "description": "Do it.", "tool": None, "dependsOn": needed_steps}
        for name, needed_steps in depends_on.items()
    ]

    async def answer(exchange: Exchange) -> None:
        await say(exchange, json.dumps({"steps": steps}))

    with provider(answer) as wire:
        model_agent(wire.url)
        Agent.objects.update(strategy="plan")
        failed(asking(dial), "provider_error")
        # A plan that cannot be carried out is asked for again, twice.
        assert len(wire.exchanges) == 3
    usage = Response.objects.get().usage
    assert usage is not None
    assert usage["output_tokens"] == 3 * 2


# --- Tools ---


@pytest.mark.sampled(2)
@pytest.mark.parametrize("arguments", ['{"how": ', "[]", '"x"', "NaN", '{"how": 7}', "{" * 5000])
def test_malformed_arguments_are_answered_and_the_model_continues(
    dial: Dial, arguments: str
) -> None:
    with provider(calls_once("misbehave", arguments)) as wire:
        model_agent(wire.url, "misbehave")
        text = output_text(done(asking(dial)))
        assert len(wire.exchanges) == 2
    assert text.startswith("The tool said: ")
    assert "well" not in text


def test_a_call_of_an_unknown_tool_is_answered_and_the_model_continues(dial: Dial) -> None:
    with provider(calls_once("teleport")) as wire:
        model_agent(wire.url, "misbehave")
        assert "teleport" in output_text(done(asking(dial)))
        assert len(wire.exchanges) == 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("how", "excerpt"),
    [
        ("raise", "The tool failed inside the server."),
        ("refuse", "Say please."),
        ("hang", "The tool took too long."),
        ("no json", "The tool failed inside the server."),
        ("large", "The result has 52428800 bytes, too many to show. It begins:"),
    ],
)
def test_a_short_tool_that_misbehaves_does_not_end_the_answer(
    dial: Dial, how: str, excerpt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_tools, "SHORT_TOOL_SECONDS", 0.3 if how == "hang" else 30)
    with provider(calls_once("misbehave", json.dumps({"how": how}))) as wire:
        model_agent(wire.url, "misbehave")
        text = output_text(done(asking(dial)))
    assert excerpt in text
    assert len(text) < 3000
    assert "hunter2" not in text


def long_call(tmp_path: Path, name: str) -> tuple[str, dict[str, Any]]:
    """Return the long tool and the arguments of a case."""
    journal = {"journal": str(tmp_path / "j")}
    cases: dict[str, tuple[str, dict[str, Any]]] = {
        "raise": ("break", {}),
        "hang": ("hang", {"how": "c", **journal}),
        "no json": ("odd_result", {"how": "object"}),
        "exit": ("leave", {"how": "exit"}),
        "large": ("repeat", {"text": "x", "times": 20 * 1024 * 1024}),
        "too large": ("repeat", {"text": "x", "times": 50 * 1024 * 1024}),
        "memory": ("eat", {"mb": 4096}),
    }
    return cases[name]


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("celery_worker_thread")
@pytest.mark.parametrize(
    ("name", "excerpt"),
    [
        ("raise", "The tool failed. Its error is in the server's log."),
        ("hang", "The tool took too long and was stopped."),
        ("no json", "The tool failed. Its error is in the server's log."),
        ("exit", "The tool's process ended before the tool did (exit status 3)."),
        ("large", "The result has 20971520 bytes, too many to show here."),
        ("too large", "The file is larger than 26214400 bytes."),
        ("memory", "The tool used too much memory (limit 1024 MB)."),
    ],
)
def test_a_long_tool_that_misbehaves_does_not_end_the_answer(
    dial: Dial, tmp_path: Path, settings: Settings, name: str, excerpt: str
) -> None:
    settings.UAMP_TOOL_SECONDS = 1.5 if name == "hang" else 60
    called, arguments = long_call(tmp_path, name)
    with provider(calls_once(called, json.dumps(arguments))) as wire:
        model_agent(wire.url, called)
        answer = done(asking(dial))
    text = output_text(answer)
    assert excerpt in text
    assert len(text) < 3000
    results = [i for i in answer["response"]["output"] if i["type"] == "tool_result"]
    assert len(results) == 1
    assert bool(results[0]["tool_result"].get("content_items")) is (name == "large")


# --- A new server with a model ---


@pytest.mark.usefixtures("celery_worker_thread")
def test_a_new_server_answers_with_the_model_and_the_tools_of_its_assistant(
    dial: Dial, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)

    async def answer(exchange: Exchange) -> None:
        if exchange.head.startswith("GET /v1/models "):
            await exchange.refuse("200 OK", b'{"data": [{"id": "llama"}]}')
        else:
            await calls_once("search_chat", '{"query": "Hello"}')(exchange)

    with provider(answer) as wire:
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        prepare_agents()
        client = dial()
        client.create_session(agent="assistant")
        client.ask("Hello")
        text = output_text(done(client))
    listed, first, second = wire.exchanges
    assert "authorization" not in listed.head.lower() + first.head.lower()
    assert (first.body["model"], second.body["model"]) == ("llama", "llama")
    offered = {tool["function"]["name"] for tool in first.body["tools"]}
    assert offered >= {"csv_report", "fetch_page", "search_chat"}
    assert text.startswith("The tool said: ")
