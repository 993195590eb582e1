"""Agents of `python -m uap serve`: the server takes the options that their models declare."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.client import TERMINAL, output_text
from tests.journeys.product import ROOT
from tests.journeys.served_agents import ServedAgent
from tests.sessions_app.connected.daemons import token_for, wait_for_daemons

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.client import Frame, UampClient
    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

AGENTS = """
import json
from dataclasses import dataclass, field

import uap
from upp import LLMCapabilities
from upp.providers.scripted import ScriptedModel, Text


async def script(request):
    yield Text(json.dumps([sorted(request.params.items()), [tool.name for tool in request.tools]]))


class Seeded(ScriptedModel):
    def options(self, params):
        return frozenset({"seed", "temperature"})

    def adjusted(self, params, options):
        return {**params, **options}


able = uap.agent(model=Seeded(script=script), params={"own": 1})
plain = uap.agent(model=ScriptedModel(script=script, capabilities=LLMCapabilities(tools=False)))
"""
CLOCK = [{"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}]


@pytest.fixture
def served(demo: ServerAddress, alice: Person, tmp_path: Path) -> Iterator[ServedAgent]:
    """Serve two agents of alice: one takes options and tools, the other neither."""
    (tmp_path / "my_agents.py").write_text(AGENTS)
    token = " ".join(token_for(alice, name) for name in ("able", "plain"))
    address = demo.http.replace("http", "ws", 1)
    command = f"python -m uap serve my_agents:able my_agents:plain --connect {address}"
    python = Path(sys.executable)
    with ServedAgent(
        tmp_path, python, command, UAMP_CONNECT_TOKEN=token, PYTHONPATH=str(ROOT)
    ) as daemon:
        wait_for_daemons("able", 1)
        wait_for_daemons("plain", 1)
        yield daemon


def asked(client: UampClient, agent: str, **response: object) -> Frame:
    """Ask with these options and a tool of the client; return the end, or the refusal."""
    client.create_session(agent=agent, session={"tools": CLOCK})
    client.send("input.text", text="hello")
    client.send("response.create", response=response)
    return client.until(*TERMINAL, "session.error")[-1]


@pytest.mark.usefixtures("served")
def test_a_served_agent_is_sent_what_its_model_declares_and_nothing_else(
    dial: Dial, alice: Person
) -> None:
    done = asked(dial(alice), "able", seed=7, temperature=0.5)
    assert output_text(done) == '[[["own", 1], ["seed", 7], ["temperature", 0.5]], ["clock"]]'

    refused = asked(dial(alice), "able", seed=7, top_p=0.5)["error"]
    assert (refused["code"], refused["details"]["parameters"]) == (
        "unsupported_parameter",
        ["top_p"],
    )
    refused = asked(dial(alice), "plain", seed=7)["error"]
    assert (refused["code"], refused["details"]["parameters"]) == (
        "unsupported_parameter",
        ["seed", "tools"],
    )
