"""Remote agents on official server kits: found by their address, asked, and stopped."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from agents_app.models import Agent
from agents_app.remote.discovery import discover
from tests.agents_app.remote.remote_agents import remote_agent
from tests.agents_app.remote.test_loopback import WEATHER
from tests.client import WAIT_SECONDS, wait_until
from tests.interop.installation import python_of
from tests.services import free_port
from tests.sessions_app.turn.delegation import answer_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

# The first test may have to install the kit.
pytestmark = pytest.mark.timeout(900)

START_SECONDS = 300
SERVERS = Path(__file__).parent / "servers"


@contextmanager
def running(lock: str, program: str) -> Iterator[str]:
    """Run a server of `servers` with what a lock installs; give its origin."""
    try:
        python = python_of(lock)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"{lock} cannot be installed: {error}")
    port = free_port()
    command = [str(python), str(SERVERS / program), str(port)]
    with subprocess.Popen(command) as process:  # noqa: S603 our own program
        try:
            origin = f"http://127.0.0.1:{port}"
            wait_until(lambda: _is_up(origin, process), START_SECONDS)
            yield origin
        finally:
            process.kill()


def _is_up(origin: str, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "the server ended"
    try:
        httpx.get(origin, timeout=WAIT_SECONDS)
    except httpx.TransportError:
        return False
    return True


def _text_at(url: str) -> str:
    return httpx.get(url, timeout=WAIT_SECONDS).text


def task_states(origin: str, text: str) -> list[Any]:
    """Return the states of the tasks whose first message has a text."""
    listed = httpx.post(
        f"{origin}/rpc",
        json={"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"pageSize": 100}},
        headers={"A2A-Version": "1.0"},
        timeout=WAIT_SECONDS,
    ).json()["result"]["tasks"]
    return [task["status"]["state"] for task in listed if text in str(task)]


@pytest.mark.parametrize("protocol", ["a2a", "a2a_03"])
def test_an_agent_on_a2a_sdk(demo: ServerAddress, dial: Dial, alice: Person, protocol: str) -> None:
    with running("a2a-server", "a2a_server.py") as origin:
        facts = discover(origin)
        assert (facts.name, facts.description) == ("parrot", "Repeats what it is sent.")
        way = next(entry for entry in facts.ways if entry.protocol == protocol)
        Agent.objects.create(
            name="far", kind="remote", url=way.url, protocol=protocol, is_public=True
        )
        client = dial(alice)
        client.create_session(agent="far")
        client.ask("Hello there")
        frames = client.until("response.done", "response.error")
        assert answer_text(frames).split() == ["Hello", "there"]
        assert len([frame for frame in frames if frame["type"] == "response.delta"]) > 1

        client.ask("please stay")
        delta = client.until("response.delta")[-1]
        client.send("response.cancel", response_id=delta["response_id"])
        client.until("response.cancelled")
        wait_until(lambda: "TASK_STATE_CANCELED" in task_states(origin, "stay"))


@pytest.mark.parametrize("protocol", ["a2a", "a2a_03"])
def test_an_agent_on_fasta2a(demo: ServerAddress, dial: Dial, alice: Person, protocol: str) -> None:
    with running("remote-servers", "fasta2a_server.py") as origin:
        facts = discover(origin)
        assert (facts.name, [way.protocol for way in facts.ways]) == ("parrot", ["a2a"])
        remote_agent(facts.ways[0].url, protocol=protocol)
        client = dial(alice)
        client.create_session(agent="far")
        client.ask("Hello there")
        frames = client.until("response.done", "response.error")
        # The kit sends the whole artifact once more at the end.
        assert answer_text(frames).split() == ["Hello", "there"]
        assert len([frame for frame in frames if frame["type"] == "response.delta"]) > 1


def test_an_agent_on_the_server_package_of_ag_ui(
    demo: ServerAddress, dial: Dial, alice: Person
) -> None:
    with running("remote-servers", "ag_ui_server.py") as origin:
        remote_agent(origin, protocol="ag_ui")
        client = dial(alice)
        client.create_session(agent="far")
        client.ask("Hello there")
        frames = client.until("response.done", "response.error")
        assert answer_text(frames).split() == ["Hello", "there"]
        thoughts = "".join(frame["content"] for frame in frames if frame["type"] == "thinking")
        assert thoughts == "The question is short."

        asker = dial(alice)
        asker.create_session(agent="far", session={"tools": [WEATHER]})
        asker.ask("Oslo")
        call = asker.until("tool.call")[-1]
        assert (call["name"], json.loads(call["arguments"])) == ("weather", {"city": "Oslo"})
        asker.send("tool.result", call_id=call["call_id"], result="4 degrees")
        assert answer_text(asker.until("response.done", "response.error")).split() == [
            "4",
            "degrees",
        ]


def test_an_agent_on_the_sdk_of_acp(demo: ServerAddress, dial: Dial, alice: Person) -> None:
    with running("remote-servers", "acp_server.py") as origin:
        remote_agent(f"{origin}/acp/", protocol="acp")
        client = dial(alice)
        client.create_session(agent="far")
        client.ask("Hello there")
        frames = client.until("response.done", "response.error")
        assert answer_text(frames).split() == ["Hello", "there"]
        assert "Words." in "".join(
            frame["content"] for frame in frames if frame["type"] == "thinking"
        )

        client.ask("please stay")
        delta = client.until("response.delta")[-1]
        client.send("response.cancel", response_id=delta["response_id"])
        client.until("response.cancelled")
        wait_until(lambda: _text_at(f"{origin}/cancelled") == "1")


@pytest.mark.parametrize("protocol", ["completions", "responses"])
def test_a_model_behind_litellm(
    demo: ServerAddress, dial: Dial, alice: Person, protocol: str
) -> None:
    with running("litellm-server", "litellm_server.py") as origin:
        remote_agent(f"{origin}/v1", protocol=protocol, model="parrot", key="sk-parrot")
        client = dial(alice)
        client.create_session(agent="far")
        client.ask("Hello there")
        frames = client.until("response.done", "response.error")
        assert answer_text(frames).split() == ["Hello", "there"]
        assert len([frame for frame in frames if frame["type"] == "response.delta"]) > 1
        usage = frames[-1]["response"]["usage"]
        assert (usage["input_tokens"], usage["output_tokens"]) == (7, 3)

        client.ask("please stay")
        delta = client.until("response.delta")[-1]
        client.send("response.cancel", response_id=delta["response_id"])
        client.until("response.cancelled")
        wait_until(lambda: _text_at(f"{origin}/left") == "1")

        Agent.objects.get(name="far").delete()
        remote_agent(f"{origin}/v1", protocol=protocol, model="parrot", key="sk-wrong")
        refused = dial(alice)
        refused.create_session(agent="far")
        refused.ask("Hello")
        assert refused.until("response.error")[-1]["error"]["code"] == "provider_error"
