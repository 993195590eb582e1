"""The description of an agent at its address, and the admin's page that shows it."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db.backends.signals import connection_created
from django.urls import reverse
from django.utils import timezone

from agents_app.models import Agent
from agents_app.outbound.rules import Unreachable
from agents_app.remote import discovery, health, probes
from agents_app.remote.discovery import discover, facts_of
from agents_app.remote.probes import claim, probe_due
from tests.agents_app.remote.pages import pages
from tests.agents_app.remote.remote_agents import remote_agent
from tests.http_server import LocalServer, serving
from tests.threads import thread_pool

if TYPE_CHECKING:
    from django.test import Client
    from pytest_django import Settings

    from tests.conftest import ServerAddress
    from tests.live_server import Person


def test_an_agent_of_a_server_like_this_one_says_everything(
    demo: ServerAddress, alice: Person
) -> None:
    facts = discover(f"{demo.http}/agents/paid-echo", alice.key)
    assert facts.name == "paid-echo"
    assert facts.pricing["per_answer"] == "0.02"
    assert {way.protocol for way in facts.ways} == {
        "a2a", "a2a_03", "acp", "ag_ui", "completions", "responses", "uamp", "uamp_http",
    }  # fmt: skip
    assert {way.url for way in facts.ways if way.protocol == "a2a"} == {
        f"{demo.http}/agents/paid-echo/a2a"
    }


def test_a_card_and_a_list_of_models_are_read() -> None:
    card = {
        "name": "Weather",
        "description": "Knows the weather.",
        "url": "http://127.0.0.1:1/rpc",
        "protocolVersion": "0.3.0",
        "capabilities": {"streaming": False},
    }
    models = {"object": "list", "data": [{"id": "a"}, {"id": 7}, "x", {"id": "b"}]}
    with serving(
        LocalServer(pages({"/.well-known/agent-card.json": card, "/v1/models": models}))
    ) as other:
        facts = discover(other.origin)
        api = discover(f"{other.origin}/v1")
    assert (facts.name, facts.description) == ("Weather", "Knows the weather.")
    ways = {(way.protocol, way.url, way.model, way.streams) for way in facts.ways}
    assert ways == {
        ("a2a_03", "http://127.0.0.1:1/rpc", "", False),
        ("completions", f"{other.origin}/v1", "a", True),
        ("completions", f"{other.origin}/v1", "b", True),
    }
    assert {way.model for way in api.ways} == {"a", "b"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "card",
    [
        b"<html>",
        b"[" * 5000,
        b"x" * 2 * 1024 * 1024,
        {"name": 7, "url": {"a": 1}, "capabilities": []},
        {"name": "n", "url": "http://10.0.0.1/rpc"},
        {"supportedInterfaces": [7, {"protocolBinding": "JSONRPC", "url": None}]},
    ],
)
def test_an_invalid_card_is_not_an_agent(card: Any) -> None:
    with (
        serving(LocalServer(pages({"/.well-known/agent-card.json": card}))) as other,
        pytest.raises(Unreachable),
    ):
        discover(other.origin)


def test_json_too_deep_to_store_is_not_an_agent() -> None:
    deep = b'{"object":"agent","url":"http://a.example","pricing":{"a":' + b"[" * 900 + b"]" * 900
    with (
        serving(LocalServer(pages({"/agents/n": deep + b"}}"}))) as other,
        pytest.raises(Unreachable),
    ):
        discover(f"{other.origin}/agents/n")


def test_an_inside_host_is_not_asked(settings: Settings) -> None:
    settings.UAMP_REMOTE_ALLOW_HOSTS = []
    with pytest.raises(Unreachable):
        discover("http://127.0.0.1:9/")


@pytest.mark.django_db
@pytest.mark.parametrize("protocol", ["envelope", "envelope_http", "envelope_grpc"])
def test_the_token_of_an_agent_of_a_peer_reaches_no_place_of_discovery(protocol: str) -> None:
    keys: list[str | None] = []
    card = {"name": "Weather", "url": "http://127.0.0.1:1/rpc"}
    handler: Any = pages({"/.well-known/agent-card.json": card})

    class Noting(handler):  # type: ignore[misc]  # it is made for these pages
        def do_GET(self) -> None:  # noqa: N802 the base class calls it
            keys.append(self.headers["Authorization"])
            super().do_GET()

    with serving(LocalServer(Noting)) as other:
        row = remote_agent(other.origin, key="token", protocol=protocol, found={"name": "Weather"})
        assert facts_of(row) == {}
        probes.probe(row)
        assert (row.found, row.failures) == ({}, 0)
        Agent.objects.update(
            found={"name": "Weather"}, failures=health.FAILURES, retry_at=timezone.now()
        )
        assert claim() == [], "its next call tries it"
        assert keys == []
        Agent.objects.update(protocol="completions")
        assert facts_of(Agent.objects.get())["name"] == "Weather"
        assert set(keys) == {"Bearer token"}


def test_an_operator_pastes_an_address_and_saves_what_was_found(
    demo: ServerAddress, alice: Person, admin_client: Client
) -> None:
    page = admin_client.post(
        reverse("admin:agents_app_agent_remote"),
        {"url": f"{demo.http}/agents/paid-echo", "key": alice.key},
    )
    text = page.content.decode()
    assert "paid-echo" in text
    assert "UAMP (WebSocket)" in text
    way = next(
        offered_way for offered_way in page.context["ways"] if offered_way["protocol"] == "A2A 1.0"
    )
    form = admin_client.get(way["add"]).context["adminform"].form
    values = {name: form[name].value() for name in ("name", "kind", "url", "protocol", "model")}
    assert values["protocol"] == "a2a"
    saved = admin_client.post(
        reverse("admin:agents_app_agent_add"),
        {
            **values,
            "name": "far-echo",
            "key": alice.key,
            "trigger": "mention",
            "provider": "scripted",
            "options": "{}",
            "strategy": "loop",
            "strategy_options": "{}",
            "max_steps": "10",
        },
    )
    assert saved.status_code == 302
    agent = Agent.objects.get(name="far-echo")
    assert agent.found["name"] == "paid-echo"
    assert agent.found["pricing"]["per_answer"] == "0.02"


def test_what_an_address_says_can_be_stored(admin_client: Client) -> None:
    """PostgreSQL takes no NUL, and an agent of this server may be one of the other's names."""
    prices = {"per_answer": "0.02", "tools": {"a\0": "0.01"}}
    agent_data = {"object": "agent", "name": "n\0", "tools": ["a\0b"], "pricing": prices}
    with serving(LocalServer(pages({"/agents/n": agent_data}))) as other:
        agent_data["url"] = f"{other.origin}/agents/n"
        agent = remote_agent(f"{other.origin}/agents/n/v1", name="there")
        agent.found = facts_of(agent)
        agent.save()
    agent.refresh_from_db()
    assert agent.found["tools"] == ["a\ufffdb"]
    assert agent.found["pricing"]["tools"] == {"a\ufffd": "0.01"}


@pytest.mark.parametrize("key", ["schlüssel", "a b", "a\u200b"])
def test_a_key_that_cannot_be_sent_is_refused(admin_client: Client, key: str) -> None:
    page = admin_client.post(
        reverse("admin:agents_app_agent_remote"), {"url": "http://127.0.0.1:9/", "key": key}
    )
    assert "printable ASCII" in page.content.decode()


def test_the_page_says_where_no_agent_is(admin_client: Client) -> None:
    page = admin_client.post(
        reverse("admin:agents_app_agent_remote"), {"url": "http://127.0.0.1:9/"}
    )
    assert "No agent was found there" in page.content.decode()


def test_the_page_opens_no_connection_that_stays_open(admin_client: Client) -> None:
    """A thread that is not that of the request keeps its own until the server ends."""
    opened: list[str] = []

    def note(**_: object) -> None:
        opened.append(threading.current_thread().name)

    connection_created.connect(note)
    try:
        page = admin_client.get(reverse("admin:agents_app_agent_remote"))
    finally:
        connection_created.disconnect(note)
    assert page.status_code == 200
    assert opened == []


@pytest.mark.usefixtures("database_threads")
def test_two_processes_do_not_look_at_one_agent_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both read the same rows before one of them claims: each agent is looked at once."""
    for number in range(3):
        remote_agent("http://127.0.0.1:9", protocol="a2a_03", name=f"far{number}")
    was = timezone.now() - timedelta(seconds=1)
    Agent.objects.update(failures=health.FAILURES, retry_at=was, found={"name": "W"})
    claimed_by_other: list[str] = []
    pause_after = health.pause_after

    def claim_in_between(failures: int) -> int:
        # The pause of an agent that was read is computed before it is claimed.
        monkeypatch.setattr(health, "pause_after", pause_after)
        claimed_by_other.extend(agent.pk for agent in claim())
        return pause_after(failures)

    monkeypatch.setattr(health, "pause_after", claim_in_between)
    claimed = [agent.pk for agent in claim()]
    assert len(claimed_by_other) == 3
    assert claimed == []
    assert claim() == []
    assert not Agent.objects.filter(probed_at=None).exists()


@pytest.mark.usefixtures("database_threads")
def test_a_probe_finds_an_agent_that_is_there_again() -> None:
    card = {"name": "W", "url": "http://127.0.0.1:1/rpc"}
    was = timezone.now() - timedelta(seconds=1)
    with serving(LocalServer(pages({"/.well-known/agent-card.json": card}))) as other:
        there = remote_agent(other.origin, protocol="a2a_03", name="there")
        gone = remote_agent("http://127.0.0.1:9", protocol="a2a_03", name="gone")
        Agent.objects.update(failures=health.FAILURES, retry_at=was, found={"name": "W"})
        asyncio.run(probe_due())
        asyncio.run(probe_due())
    there.refresh_from_db()
    gone.refresh_from_db()
    assert (there.failures, there.retry_at) == (0, None)
    assert gone.failures == health.FAILURES + 1, "one probe for each pause"
    assert gone.retry_at is not None
    assert gone.retry_at > timezone.now() + timedelta(seconds=health.FIRST_PAUSE)


@pytest.mark.usefixtures("database_threads")
def test_a_probe_that_raises_leaves_the_others_of_its_round(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = (remote_agent("http://127.0.0.1:9", name=name) for name in ("bad", "good"))
    was = timezone.now() - timedelta(seconds=1)
    Agent.objects.update(failures=health.FAILURES, retry_at=was, found={"name": "W"})

    def facts(agent: Agent) -> dict[str, Any]:
        if agent.pk == bad.pk:
            raise RecursionError
        return {"name": "W"}

    monkeypatch.setattr(discovery, "facts_of", facts)
    asyncio.run(probe_due())
    bad.refresh_from_db()
    good.refresh_from_db()
    assert (bad.failures, good.failures) == (health.FAILURES + 1, 0)
    assert f"the probe of agent {bad.pk} failed" in caplog.text


@pytest.mark.usefixtures("database_threads")
def test_probes_that_hang_leave_the_threads_of_the_loop_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(probes.THREADS + 2):
        remote_agent("http://127.0.0.1:9", name=f"agent{number}")
    was = timezone.now() - timedelta(seconds=1)
    Agent.objects.update(failures=health.FAILURES, retry_at=was, found={"name": "W"})
    may_end = threading.Event()
    probed_ids: list[str] = []

    async def probed() -> int:
        loop = asyncio.get_running_loop()
        reached = {1: asyncio.Event(), probes.THREADS: asyncio.Event()}

        def facts(agent: Agent) -> dict[str, Any]:
            probed_ids.append(str(agent.pk))
            if (event := reached.get(len(probed_ids))) is not None:
                loop.call_soon_threadsafe(event.set)
            may_end.wait(60)
            return {"name": "W"}

        monkeypatch.setattr(discovery, "facts_of", facts)
        with thread_pool(1) as pool:
            loop.set_default_executor(pool)
            probing = asyncio.ensure_future(probe_due())
            try:
                async with asyncio.timeout(30):
                    await reached[1].wait()
                    # Another part of the server needs a thread of the loop.
                    await asyncio.to_thread(int)
                    await reached[probes.THREADS].wait()
                at_a_time = len(probed_ids)
            finally:
                may_end.set()
                await asyncio.wait_for(probing, 60)
        return at_a_time

    assert asyncio.run(probed()) == probes.THREADS
    assert not Agent.objects.exclude(failures=0).exists()
