"""A daemon calls tools: its agent's, which the server and workers run, and a client's."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.models import Agent, AgentConnection
from sessions_app.models import Response, ToolCall
from tests.client import TERMINAL, WAIT_SECONDS, output_text, wait_until
from tests.sessions_app.billing.paid_agents import pay, rich, wallet
from tests.sessions_app.connected.daemons import Daemon, token_for, wait_for_daemons

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django import Settings

    from tests.client import Frame, UampClient
    from tests.live_server import Dial, Person

TOOLS = [
    "tests.sessions_app.turn.team_tools.STEPS",
    "tests.sessions_app.response.step_tools.note",
]


@pytest.fixture
def daemon(dial: Dial, alice: Person, settings: Settings) -> Daemon:
    """Return a daemon of a public agent whose row has a short and a long tool."""
    settings.UAMP_SERVER_TOOLS = TOOLS
    daemon = Daemon(dial(path="/ws"))
    daemon.register("helper", token_for(alice, "helper"))
    change(tools=["note", "steps"], is_public=True)
    return daemon


def change(**fields: Any) -> None:
    """Change the agent's row."""
    agent = Agent.objects.get(name="helper")
    for name, value in fields.items():
        setattr(agent, name, value)
    agent.save()


def asking_client(dial: Dial, who: Person) -> UampClient:
    """Return a client that asked the agent."""
    client = dial(who)
    client.create_session(agent="helper")
    client.ask("use your tools")
    return client


def call(daemon: Daemon, turn: Frame, name: str, **arguments: Any) -> None:
    """Call a tool."""
    daemon.send(turn, "tool.call", call_id="c1", name=name, arguments=json.dumps(arguments))


def test_a_short_tool_runs_at_the_server_and_is_shown(
    dial: Dial, alice: Person, daemon: Daemon, tmp_path: Path
) -> None:
    client = asking_client(dial, alice)
    turn = daemon.turn()
    names = [tool["function"]["name"] for tool in turn["context"]["tools"]]
    assert names == ["note", "steps"]
    call(daemon, turn, "note", journal=str(tmp_path / "journal"))
    result = daemon.socket.expect("tool.result")
    assert (result["call_id"], result["result"]) == ("c1", "noted")
    assert not result.get("is_error")
    daemon.say(turn, "noted it")
    daemon.end(turn)
    frames = client.until(*TERMINAL)
    # The client runs nothing: it is shown the call and the result.
    assert not [frame for frame in frames if frame["type"] == "tool.call"]
    output = frames[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["tool_call", "tool_result", "text"]
    assert output[1]["tool_result"]["call_id"] == "c1"
    assert output_text(frames[-1]) == "noted it"


@pytest.mark.timeout(400)
@pytest.mark.usefixtures("celery_worker_thread")
def test_a_long_tool_is_a_row_that_a_worker_runs(
    dial: Dial, alice: Person, daemon: Daemon, tmp_path: Path
) -> None:
    client = asking_client(dial, alice)
    turn = daemon.turn()
    call(daemon, turn, "steps", journal=str(tmp_path / "journal"), steps=2, pause=0.01)
    # Its process imports the product at first, which takes long on a busy machine.
    (result,) = daemon.socket.until("tool.result", timeout=4 * WAIT_SECONDS)
    assert (result["result"], result.get("is_error", False)) == ("2 steps", False)
    row = ToolCall.objects.get()
    assert (row.call_id, row.name, row.status) == ("c1", "steps", "done")
    daemon.say(turn, "counted")
    daemon.end(turn)
    assert output_text(client.until(*TERMINAL)[-1]) == "counted"


def test_a_tool_is_paid_before_it_runs(
    dial: Dial, bob: Person, daemon: Daemon, tmp_path: Path
) -> None:
    change(pricing={"per_answer": "0.01", "tools": {"note": "0.05"}})
    client = asking_client(dial, rich(bob))
    pay(client, client.until("payment.required")[-1])
    turn = daemon.turn()
    call(daemon, turn, "note", journal=str(tmp_path / "journal"))
    required = client.until("payment.required")[-1]
    assert required["requirements"]["amount"] == "0.05"
    assert daemon.socket.settle() == []
    assert not (tmp_path / "journal").exists()
    pay(client, required)
    daemon.socket.expect("tool.result")
    assert (tmp_path / "journal").read_text() == "noted\n"
    daemon.say(turn, "noted")
    daemon.end(turn)
    end = client.until(*TERMINAL)[-1]
    assert end["response"]["usage"]["cost"]["total_cost"] == 0.06
    wait_until(lambda: Decimal(str(wallet(bob).posted)) == Decimal("9.94"))


def test_arguments_that_are_not_an_object_are_an_error_for_the_daemon(
    dial: Dial, alice: Person, daemon: Daemon
) -> None:
    client = asking_client(dial, alice)
    turn = daemon.turn()
    for number, arguments in enumerate(["[1]", "{", '"x"', "{}"]):
        daemon.send(turn, "tool.call", call_id=f"c{number}", name="note", arguments=arguments)
        assert daemon.socket.expect("tool.result")["is_error"] is True
    daemon.say(turn, "no luck")
    daemon.end(turn)
    assert output_text(client.until(*TERMINAL)[-1]) == "no luck"


@pytest.mark.usefixtures("celery_worker_thread")
def test_a_daemon_that_is_lost_while_a_tool_runs_ends_the_answer(
    dial: Dial, alice: Person, daemon: Daemon, tmp_path: Path
) -> None:
    client = asking_client(dial, alice)
    turn = daemon.turn()
    call(daemon, turn, "steps", journal=str(tmp_path / "journal"), steps=40, pause=0.2)
    wait_until(ToolCall.objects.exists)
    daemon.socket.cut()
    end = client.until(*TERMINAL)[-1]
    assert (end["type"], end["error"]["code"]) == ("response.error", "interrupted")
    wait_until(lambda: not ToolCall.objects.filter(status__in=ToolCall.OPEN).exists())


def test_tools_of_a_client_are_refused_if_a_daemon_calls_none(dial: Dial, alice: Person) -> None:
    token = token_for(alice, "helper")
    first = Daemon(dial())
    first.register("helper", token, client_capabilities={"tools": {"supports_tools": False}})
    client = dial(alice)
    client.create_session(agent="helper", session={"tools": CLOCK})

    client.ask("what time is it?")
    error = client.until("session.error", "response.error")[-1]["error"]
    assert (error["code"], error["details"]["parameters"]) == ("unsupported_parameter", ["tools"])

    # One that does not announce it may call them.
    second = Daemon(dial())
    second.register("helper", token)
    first.socket.close()
    wait_for_daemons("helper", 1)
    client.ask("what time is it?")
    assert second.turn()["context"]["tools"]


CLOCK = [{"type": "function", "function": {"name": "clock", "parameters": {}}}]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}}


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"response_format": SCHEMA}, ["response_format"]),
        ({"response": {"reasoning_effort": "high", "seed": 1}}, ["reasoning_effort", "seed"]),
        ({"response": {"tool_choice": "required"}}, ["tool_choice"]),
    ],
)
def test_options_that_no_daemon_keeps_to_are_refused(
    dial: Dial, alice: Person, fields: dict[str, Any], refused: list[str]
) -> None:
    token = token_for(alice, "helper")
    first = Daemon(dial())
    first.register("helper", token)
    client = dial(alice)
    client.create_session(agent="helper")

    ask(client, **fields)
    error = client.until("session.error", "response.error")[-1]["error"]
    assert (error["code"], error["details"]["parameters"]) == ("unsupported_parameter", refused)
    assert first.socket.settle() == []
    assert not Response.objects.exists()

    second = Daemon(dial())
    announced = {"extensions": {"options": refused}}
    second.register("helper", token, client_capabilities=announced)
    first.socket.close()
    wait_for_daemons("helper", 1)
    ask(client, **fields)
    context = second.turn()["context"]
    assert {*context, *context.get("params", ())} >= {*refused}


@pytest.mark.parametrize(
    "neutral",
    [
        {"temperature": 0.5, "tool_choice": "auto", "parallel_tool_calls": True},
        {"top_p": 1, "frequency_penalty": 0, "presence_penalty": 0, "stop": [], "logit_bias": {}},
        {"tool_choice": "none"},
    ],
)
def test_options_that_change_nothing_are_taken(
    dial: Dial, alice: Person, neutral: dict[str, Any]
) -> None:
    daemon = Daemon(dial())
    daemon.register("helper", token_for(alice, "helper"))
    client = dial(alice)
    client.create_session(agent="helper")
    ask(client, response=neutral, response_format={"type": "text"})
    assert daemon.turn()["text"] == "hello"


def test_no_tool_may_be_forbidden_to_a_daemon_that_does_not_announce_it(
    dial: Dial, alice: Person
) -> None:
    daemon = Daemon(dial())
    daemon.register("helper", token_for(alice, "helper"))
    client = dial(alice)
    client.create_session(agent="helper", session={"tools": CLOCK})
    ask(client, response={"tool_choice": "none"})
    error = client.until("session.error", "response.error")[-1]["error"]
    assert error["details"]["parameters"] == ["tool_choice"]


def test_options_are_refused_unless_every_daemon_keeps_to_them(dial: Dial, alice: Person) -> None:
    token = token_for(alice, "helper")
    able, other = Daemon(dial()), Daemon(dial())
    announced = {"extensions": {"options": ["response_format", "seed"]}}
    able.register("helper", token, client_capabilities=announced)
    other.register("helper", token, client_capabilities={"tools": {"supports_tools": False}})
    client = dial(alice)
    client.create_session(agent="helper", session={"tools": CLOCK})

    ask(client, response={"seed": 1}, response_format=SCHEMA)
    error = client.until("session.error", "response.error")[-1]["error"]
    assert error["details"]["parameters"] == ["response_format", "seed", "tools"]
    assert other.socket.settle() == []
    assert not Response.objects.exists()

    # A daemon that gets no new responses does not matter.
    AgentConnection.objects.filter(capabilities__tools__supports_tools=False).update(
        is_closing=True
    )
    ask(client, response={"seed": 1}, response_format=SCHEMA)
    assert able.turn()["context"]["params"]["seed"] == 1


def ask(client: UampClient, **fields: Any) -> None:
    """Ask with these members of `response.create`."""
    client.send("input.text", text="hello")
    client.send("response.create", **fields)
