"""Remote agents that are agents of this server, through a chat, to a receipt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from asgiref.sync import async_to_sync

from agents_app.models import Agent
from agents_app.remote import tasks
from agents_app.remote.addresses import close_remotes
from agents_app.remote.hops import read_hops
from agents_app.remote.models import stop_orphaned
from agents_app.selectors import get_spec
from sessions_app.models import Response
from tests.agents_app.remote.remote_agents import remote_agent
from tests.client import Frame, wait_until
from tests.live_server import shared_chat
from tests.sessions_app.billing.paid_agents import clean, earned, pay, rich, wallet
from tests.sessions_app.turn.delegation import answer_text

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

PROTOCOLS = {
    "a2a": "/agents/{}/a2a",
    "a2a_03": "/agents/{}/a2a",
    "acp": "/agents/{}/acp",
    "ag_ui": "/agents/{}/agui",
    "completions": "/agents/{}/v1",
    "responses": "/agents/{}/v1",
    "uamp": "/agents/{}",
    "uamp_http": "/agents/{}",
}
WITH_TOOLS = ("ag_ui", "completions", "responses", "uamp", "uamp_http")


WEATHER = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object"}},
}


def far(demo: ServerAddress, who: Person, protocol: str, target: str, **fields: object) -> Agent:
    """Make a remote agent that is an agent of this server, called with the key of a person."""
    path = PROTOCOLS[protocol].format(target)
    return remote_agent(
        demo.http + path, protocol=protocol, key=who.key, model=target, **{"name": "far", **fields}
    )


def types(frames: list[Frame]) -> list[str]:
    """Return the types of frames, each once."""
    return list(dict.fromkeys(frame["type"] for frame in frames))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_streams_to_the_members_of_a_chat(
    demo: ServerAddress, dial: Dial, alice: Person, bob: Person, protocol: str
) -> None:
    far(demo, bob, protocol, "slow")
    chat = shared_chat(alice, bob, agents=("far",), trigger="always")
    asker, reader = dial(alice), dial(bob)
    asker.create_session(chat=chat.pk)
    reader.create_session(chat=chat.pk)
    asker.ask("count to 5")
    frames = asker.until("response.done")
    assert len([f for f in frames if f["type"] == "response.delta"]) > 1, "it streams"
    assert "5" in answer_text(frames)
    assert answer_text(reader.until("response.done")) == answer_text(frames)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_of_a_remote_agent_is_paid(
    demo: ServerAddress, dial: Dial, alice: Person, bob: Person, protocol: str
) -> None:
    row = far(demo, bob, protocol, "echo", pricing={"per_answer": "0.25"})
    rich(alice)
    client = dial(alice)
    client.create_session(agent="far")
    client.ask("hello there")
    pay(client, client.until("payment.required")[-1])
    frames = client.until("response.done")
    assert answer_text(frames) == "hello there"
    wait_until(lambda: earned(row) == "0.25")
    assert str(wallet(alice).available) == "9.75"
    assert clean()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_cancelling_the_answer_cancels_it_over_there(
    demo: ServerAddress, dial: Dial, alice: Person, bob: Person, protocol: str
) -> None:
    far(demo, bob, protocol, "slow")
    client = dial(alice)
    client.create_session(agent="far")
    client.ask("count to 500")
    delta = client.until("response.delta")[-1]
    client.send("response.cancel", response_id=delta["response_id"])
    client.until("response.cancelled")
    slow = Agent.objects.get(name="slow")
    wait_until(lambda: set(states_of(slow)) == {"cancelled"})


def test_an_answer_over_http_is_recorded_for_another_process_to_stop(
    demo: ServerAddress, dial: Dial, alice: Person, bob: Person
) -> None:
    row = far(demo, bob, "uamp_http", "slow")
    client = dial(alice)
    client.create_session(agent="far")
    client.ask("count to 500")
    response_id = client.until("response.delta")[-1]["response_id"]
    wait_until(lambda: tasks.load(response_id) is not None)
    handle = tasks.load(response_id)

    async def stop() -> None:
        await stop_orphaned(get_spec(row.pk), response_id, handle)
        await close_remotes()

    get_spec(row.pk)
    async_to_sync(stop)()
    assert client.until("response.error", "response.cancelled")
    slow = Agent.objects.get(name="slow")
    wait_until(lambda: states_of(slow) == ["cancelled"])
    wait_until(lambda: tasks.load(response_id) is None)


def states_of(agent: Agent) -> list[str]:
    """Return the states of an agent's answers."""
    return list(Response.objects.filter(agent=agent).values_list("status", flat=True))


def test_two_remote_agents_that_lead_to_each_other_do_not_ask_without_an_end(
    demo: ServerAddress, dial: Dial, alice: Person, bob: Person, settings: Settings
) -> None:
    settings.UAMP_REMOTE_HOPS = 3
    ping = far(demo, bob, "completions", "pong", name="ping")
    pong = far(demo, bob, "completions", "ping", name="pong")
    client = dial(alice)
    client.create_session(agent="ping")
    client.ask("hello")
    error = client.until("response.error")[-1]["error"]
    assert error["code"] == "provider_error"
    wait_until(lambda: set(states_of(ping) + states_of(pong)) == {"failed"})
    assert len(states_of(ping) + states_of(pong)) == settings.UAMP_REMOTE_HOPS + 1
    assert "too_many_hops" in str([r.error for r in Response.objects.all()])


@pytest.mark.parametrize(
    ("header", "servers"), [(None, 0), ("0", 0), ("7", 7), ("-1", 999), ("x", 999), ("1e3", 999)]
)
def test_the_header_of_hops_is_read(header: str | None, servers: int) -> None:
    assert read_hops(header) == servers


@pytest.mark.sampled(3)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_refused_key_and_a_missing_agent_are_typed_errors(
    demo: ServerAddress, dial: Dial, alice: Person, bob: Person, protocol: str
) -> None:
    path = PROTOCOLS[protocol]
    remote_agent(
        demo.http + path.format("echo"),
        protocol=protocol,
        key="uak_wrong",
        name="far",
        model="echo",
    )
    remote_agent(
        demo.http + path.format("absent"),
        protocol=protocol,
        key=bob.key,
        name="gone",
        model="absent",
    )
    for name in ("far", "gone"):
        client = dial(alice)
        client.create_session(agent=name)
        client.ask("hello")
        error = client.until("response.error")[-1]["error"]
        assert error["code"] in {"provider_error", "agent_offline"}, error
        assert name in error["message"]
    assert list(Agent.objects.filter(kind="remote").values_list("failures", flat=True)) == [1, 1]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("protocol", WITH_TOOLS)
def test_a_tool_of_the_client_is_called_from_over_there(
    demo: ServerAddress, dial: Dial, alice: Person, bob: Person, protocol: str
) -> None:
    far(demo, bob, protocol, "tool-user")
    client = dial(alice)
    client.create_session(agent="far", session={"tools": [WEATHER]})
    client.ask("Oslo")
    call = client.until("tool.call")[-1]
    assert call["name"] == "weather"
    client.send("tool.result", call_id=call["call_id"], result='"4 degrees"')
    assert "4 degrees" in answer_text(client.until("response.done"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("protocol", [*WITH_TOOLS, "acp"])
def test_thoughts_are_thoughts(
    demo: ServerAddress, dial: Dial, alice: Person, bob: Person, protocol: str
) -> None:
    far(demo, bob, protocol, "thinker")
    client = dial(alice)
    client.create_session(agent="far")
    client.ask("why")
    frames = client.until("response.done")
    thoughts = "".join(f["content"] for f in frames if f["type"] == "thinking")
    assert "The question" in thoughts
    assert "The question" not in answer_text(frames)
