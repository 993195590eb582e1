"""A remote agent over Chat Completions, and what every remote agent may do wrong."""

from __future__ import annotations

import asyncio
import ssl
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agents_app.models import Agent
from agents_app.providers import addresses
from agents_app.remote import health
from agents_app.selectors import get_spec
from agents_app.tools.registry import ToolOutcome
from tests.agents_app.remote.remote_agents import failure, remote_spec, request_of, run, text_of
from tests.agents_app.run_context import Broker
from tests.agents_app.web_server import write_certificate
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from uamp.events import Thinking, UsageDelta
from uamp.types.session import FunctionDefinition, ToolDefinition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from pytest_django import Settings

pytestmark = pytest.mark.usefixtures("database_threads")

WEATHER = ToolDefinition(function=FunctionDefinition(name="weather", description="d"))


async def answer(exchange: Exchange) -> None:
    """Answer as a well-behaved agent does."""
    await exchange.send(STREAM_HEAD)
    await exchange.delta(reasoning_content="hm")
    await exchange.delta(content="Hello ")
    await exchange.delta(content="there")
    await exchange.chunk(
        choices=[], usage={"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    )
    await exchange.finish()


async def test_it_is_asked_with_its_key_and_its_answer_is_shown() -> None:
    async with serve(answer) as wire:
        spec = await remote_spec(wire.url, key="sesame-open", model="their-agent")
        events, end = await run(spec, request_of(instructions="Be brief."))

    (exchange,) = wire.exchanges
    assert "POST /v1/chat/completions" in exchange.head
    assert "Authorization: Bearer sesame-open" in exchange.head
    assert "X-UAMP-Hops: 1" in exchange.head
    assert exchange.body["model"] == "their-agent"
    assert [m["role"] for m in exchange.body["messages"]] == ["system", "user"]
    assert text_of(events) == "Hello there"
    assert [e.content for e in events if isinstance(e, Thinking)] == ["hm"]
    (used,) = [e.delta for e in events if isinstance(e, UsageDelta)]
    assert (used.input_tokens, used.output_tokens) == (7, 3)
    assert (end.finish_reason, end.model) == ("stop", "their-agent")


async def test_a_tool_of_the_client_is_called_and_its_result_goes_back() -> None:
    async def calls(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        if exchange.body["messages"][-1]["role"] == "tool":
            await exchange.delta(content="It is cold.")
            await exchange.finish()
            return
        call = {"index": 0, "id": "c1", "function": {"name": "weather", "arguments": "{}"}}
        await exchange.delta(tool_calls=[call])
        await exchange.finish("tool_calls")

    broker = Broker(answer=lambda _call: ToolOutcome(result="4 degrees"))
    async with serve(calls) as wire:
        spec = await remote_spec(wire.url)
        events, _ = await run(spec, request_of(tools=[WEATHER]), broker=broker)
    assert [call.name for call in broker.calls] == ["weather"]
    assert wire.exchanges[1].body["messages"][-1]["content"] == "4 degrees"
    assert text_of(events) == "It is cold."


async def test_tokens_that_were_neither_sent_nor_said_are_not_believed() -> None:
    async def lies(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="Hi")
        much = {"prompt_tokens": 10**9, "completion_tokens": 10**9, "total_tokens": 2 * 10**9}
        await exchange.chunk(choices=[], usage=much)
        await exchange.finish()

    async with serve(lies) as wire:
        events, _ = await run(await remote_spec(wire.url), request_of())
    (used,) = [e.delta for e in events if isinstance(e, UsageDelta)]
    assert 0 < (used.input_tokens or 0) < 1000
    assert 0 < (used.output_tokens or 0) < 1000


async def nothing(exchange: Exchange) -> None:
    """Disconnect."""


async def half(exchange: Exchange) -> None:
    """Disconnect in the middle."""
    await exchange.send(STREAM_HEAD)
    await exchange.delta(content="Hel")


async def silent(exchange: Exchange) -> None:
    """Say nothing after the first word."""
    await exchange.send(STREAM_HEAD)
    await exchange.delta(content="Hel")
    await asyncio.wait_for(exchange.gone.wait(), 60)


async def garbage(exchange: Exchange) -> None:
    """Send what is no JSON."""
    await exchange.send(STREAM_HEAD + b"data: \xff\xfe{]\n\n")


async def a_page(exchange: Exchange) -> None:
    """Send a page instead of a stream."""
    await exchange.refuse("200 OK", b"<html>Hello</html>", "Content-Type: text/html")


async def a_redirect(exchange: Exchange) -> None:
    """Lead somewhere else."""
    await exchange.refuse("307 Temporary Redirect", b"", "Location: http://169.254.169.254/")


async def a_flood(exchange: Exchange) -> None:
    """Send comments without an end."""
    await exchange.send(STREAM_HEAD)
    while not exchange.gone.is_set():
        await exchange.send(b":" + b"x" * 65536 + b"\n\n")


async def one_event(exchange: Exchange) -> None:
    """Send an event without an end."""
    await exchange.send(STREAM_HEAD + b"data: ")
    while not exchange.gone.is_set():
        await exchange.send(b"x" * 65536)


async def many_events(exchange: Exchange) -> None:
    """Send events that say nothing, without an end."""
    await exchange.send(STREAM_HEAD)
    while not exchange.gone.is_set():
        await exchange.send(b'data: {"choices": []}\n\n' * 100)


async def refused(exchange: Exchange) -> None:
    """Refuse the key, and quote it."""
    body = b'{"error": {"message": "sesame-open is no key", "code": "invalid_api_key"}}'
    await exchange.refuse("401 Unauthorized", body)


@pytest.mark.parametrize(
    ("misbehave", "code", "text"),
    [
        (nothing, "agent_offline", ""),
        (half, "agent_offline", "Hel"),
        (silent, "timeout", "Hel"),
        (garbage, "provider_error", ""),
        (a_page, "provider_error", ""),
        (a_redirect, "provider_error", ""),
        (a_flood, "provider_error", ""),
        (one_event, "provider_error", ""),
        (many_events, "provider_error", ""),
        (refused, "provider_error", ""),
    ],
)
async def test_what_goes_wrong_over_there_is_a_typed_error_here(
    settings: Settings, misbehave: Callable[[Exchange], Awaitable[None]], code: str, text: str
) -> None:
    settings.UAMP_REMOTE_ANSWER_BYTES = 2 * 1024 * 1024
    settings.UAMP_REMOTE_EVENTS = 1000
    async with serve(misbehave) as wire:
        spec = await remote_spec(wire.url, key="sesame-open", options={"timeout": 1})
        events, error = await failure(spec, request_of())
    assert error.code == code
    assert text_of(events) == text
    assert "far" in error.message
    assert "127.0.0.1" not in error.message
    row = await Agent.objects.aget(pk=spec.id)
    assert (row.failures, row.retry_at) == (1, None)
    assert row.last_error
    assert "sesame" not in row.last_error
    assert len(wire.exchanges) == 1, "nothing is sent twice"


async def test_a_second_answer_is_not_read() -> None:
    async def twice(exchange: Exchange) -> None:
        await answer(exchange)
        await exchange.delta(content=" again")
        await exchange.finish()

    async with serve(twice) as wire:
        events, _ = await run(await remote_spec(wire.url), request_of())
    assert text_of(events) == "Hello there"


async def test_cancelling_the_run_closes_the_request() -> None:
    asked_for, closed = asyncio.Event(), asyncio.Event()

    async def never(exchange: Exchange) -> None:
        asked_for.set()
        await silent(exchange)
        closed.set()

    async with serve(never) as wire:
        task = asyncio.create_task(run(await remote_spec(wire.url), request_of()))
        await asyncio.wait_for(asked_for.wait(), 30)
        task.cancel()
        await asyncio.wait([task], timeout=30)
        await asyncio.wait_for(closed.wait(), 30)


@pytest.mark.parametrize("ends_in", [timedelta(days=1), timedelta(minutes=-1)])
async def test_a_certificate_has_an_authority_and_is_good_today(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_in: timedelta
) -> None:
    file = tmp_path / "certificate.pem"
    trust = write_certificate(file, "127.0.0.1", ends_in=ends_in)
    if ends_in < timedelta():
        monkeypatch.setattr(addresses, "certified", lambda: trust)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(file)
    async with serve(answer, tls=tls) as wire:
        _, error = await failure(await remote_spec(wire.url), request_of())
    assert error.code == "agent_offline"
    reason = "expired" if ends_in < timedelta() else "self-signed"
    assert reason in error.cause.replace("self signed", "self-signed")
    assert not wire.exchanges


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/v1", "https://localhost/v1", "https://10.0.0.1/v1"]
)
async def test_an_inside_host_is_not_called(settings: Settings, url: str) -> None:
    settings.UAMP_REMOTE_ALLOW_HOSTS = []
    spec = await sync_to_async(_row)(url)
    _, error = await failure(await sync_to_async(get_spec)(spec.pk), request_of())
    assert error.code in {"provider_error", "agent_offline"}
    assert "reach" not in error.message


def _row(url: str) -> Agent:
    return Agent.objects.create(
        name="inside", kind="remote", url=url, protocol="completions", model="m"
    )


async def test_an_agent_that_fails_again_and_again_is_left_alone_until_it_answers() -> None:
    is_well = False

    async def moody(exchange: Exchange) -> None:
        await (answer if is_well else nothing)(exchange)

    async with serve(moody) as wire:
        spec = await remote_spec(wire.url)
        for _ in range(health.FAILURES):
            await failure(await sync_to_async(get_spec)(spec.id), request_of())
        row = await Agent.objects.aget(pk=spec.id)
        assert (row.failures, row.is_online) == (health.FAILURES, False)

        _, error = await failure(await sync_to_async(get_spec)(spec.id), request_of())
        assert (error.code, len(wire.exchanges)) == ("agent_offline", health.FAILURES)
        assert 0 < (error.retry_after or 0) <= health.FIRST_PAUSE

        await sync_to_async(_end_pause)(row)
        is_well = True
        await run(await sync_to_async(get_spec)(spec.id), request_of())
    row = await Agent.objects.aget(pk=spec.id)
    assert (row.failures, row.retry_at, row.is_online) == (0, None, True)
    assert row.last_error, "the last error stays to be read"


def test_calls_that_fail_together_begin_one_pause() -> None:
    agent = Agent.objects.get(pk=_row("https://far.example").pk)
    for number in range(health.FAILURES + 5):
        health.failed(agent.pk, f"Failure {number}.")
    agent.refresh_from_db()
    assert agent.failures == health.FAILURES
    assert agent.last_error == f"Failure {health.FAILURES + 4}."
    assert agent.retry_at is not None
    assert agent.retry_at <= timezone.now() + timedelta(seconds=health.FIRST_PAUSE)
    health.failed(agent.pk, "A probe.", is_probe=True)
    agent.refresh_from_db()
    assert agent.failures == health.FAILURES + 1
    assert agent.retry_at > timezone.now() + timedelta(seconds=health.FIRST_PAUSE)


async def test_an_answer_ends_the_failures_of_calls_beside_it() -> None:
    async with serve(answer) as wire:
        spec = await remote_spec(wire.url)
        for _ in range(health.FAILURES - 1):
            await health.run_sync(health.failed, spec.id, "It failed.")
        await run(spec, request_of())
    assert (await Agent.objects.aget(pk=spec.id)).failures == 0


def _end_pause(row: Agent) -> None:
    row.retry_at = row.failed_at
    row.save()


def test_pauses_double_up_to_a_bound() -> None:
    pauses = [health.pause_after(n) for n in (0, 2, 3, 4, 5, 8, 100_000)]
    assert pauses == [0, 0, 30, 60, 120, 900, 900]


async def test_a_request_that_passed_many_servers_is_passed_on_no_further(
    settings: Settings,
) -> None:
    settings.UAMP_REMOTE_HOPS = 2
    async with serve(answer) as wire:
        spec = await remote_spec(wire.url)
        await run(spec, request_of(servers=1))
        _, error = await failure(spec, request_of(servers=2))
    assert error.code == "too_many_hops"
    assert ["X-UAMP-Hops: 2" in exchange.head for exchange in wire.exchanges] == [True]


async def test_a_key_does_not_follow_to_another_place() -> None:
    async with serve(answer) as wire, serve(answer) as other:
        spec = await remote_spec(wire.url, key="sesame-open")
        await Agent.objects.filter(pk=spec.id).aupdate(url=other.url)
        await sync_to_async(_forget)(spec.id)
        await run(await sync_to_async(get_spec)(spec.id), request_of())
    assert "Authorization" not in other.exchanges[0].head


def _forget(agent_id: str) -> None:
    Agent.objects.get(pk=agent_id).save()
