"""The ids of calls that daemons make of one client's tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.client import TERMINAL
from tests.live_server import shared_chat
from tests.sessions_app.connected.daemons import Daemon, token_for

if TYPE_CHECKING:
    from tests.live_server import Dial, Person


@pytest.mark.parametrize("first", [0, 1])
def test_results_reach_the_calls_of_two_agents_that_chose_one_id(
    dial: Dial, alice: Person, first: int
) -> None:
    names = ("helper", "other")
    daemons = {name: Daemon(dial(path="/ws")) for name in names}
    for name, daemon in daemons.items():
        daemon.register(name, token_for(alice, name))
    chat = shared_chat(alice, agents=names, trigger="always")
    tools = [{"type": "function", "function": {"name": "clock", "parameters": {}}}]
    client = dial(alice)
    client.create_session(chat=chat.pk, session={"tools": tools})
    client.ask("what time is it?")
    turns = {name: daemon.turn() for name, daemon in daemons.items()}
    calls = []
    for name in names:
        arguments = json.dumps({"for": name})
        daemons[name].send(
            turns[name], "tool.call", call_id="t1", name="clock", arguments=arguments
        )
        calls.append(client.until("tool.call")[-1])
    assert calls[0]["call_id"] == "t1" != calls[1]["call_id"]
    for call in (calls[first], calls[1 - first]):
        client.send("tool.result", call_id=call["call_id"], result=call["arguments"])
    for name in names:
        # Each daemon knows its call by the id that it chose.
        result = daemons[name].socket.expect("tool.result")
        assert (result["call_id"], json.loads(result["result"])) == ("t1", {"for": name})
        daemons[name].say(turns[name], "It is noon.")
        daemons[name].end(turns[name])
        output = client.until(*TERMINAL)[-1]["response"]["output"]
        call_id = calls[names.index(name)]["call_id"]
        assert output[0]["tool_call"]["id"] == output[1]["tool_result"]["call_id"] == call_id
