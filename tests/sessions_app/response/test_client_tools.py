"""Stateless turns that end at the client's tools, as the reference's model proxies ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sessions_app.models import ToolCall
from tests.client import TERMINAL, Frame
from tests.sessions_app.model_server import call_chunks, model_server, text_chunks

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.client import UampClient
    from tests.live_server import Dial, Person

SEARCH = {
    "type": "function",
    "function": {"name": "search", "parameters": {"type": "object", "properties": {}}},
}
TOOL = "tests.sessions_app.billing.test_token_payments.weigh"
ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather?"}]


def turn(client: UampClient, messages: list[dict[str, Any]], **fields: Any) -> list[Frame]:
    """Ask statelessly, as `LLMProxySkill` does, and return the frames up to the end."""
    response = {"model": "auto/balanced", "messages": messages, "tools": [SEARCH], **fields}
    client.send("response.create", response=response)
    return client.until(*TERMINAL)


def answered(call: Frame, result: str) -> list[dict[str, Any]]:
    """Return a call and its result as such a client repeats them."""
    function = {"name": call["name"], "arguments": call["arguments"]}
    tool_call = {"id": call["call_id"], "type": "function", "function": function}
    return [
        {"role": "assistant", "content": "", "tool_calls": [tool_call]},
        {"role": "tool", "tool_call_id": call["call_id"], "content": result},
    ]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_stateless_turn_ends_at_the_clients_tools(
    dial: Dial, alice: Person, *, is_known: bool
) -> None:
    with model_server(call_chunks(("call_1", "search", '{"q": 1}')), text_chunks("Sunny")) as model:
        model.agent()
        client = dial(alice if is_known else None)
        client.create_session(agent="model")
        frames = turn(client, ASKED)
        (call,) = [frame for frame in frames if frame["type"] == "tool.call"]
        done = frames[-1]
        assert (done["type"], done["response"]["status"]) == ("response.done", "completed")
        assert done["response"]["finish_reason"] == "tool_calls"
        assert done["response"]["usage"]["output_tokens"] == 3
        assert [item["type"] for item in done["response"]["output"]] == ["tool_call"]
        assert not [f for f in frames if f["type"] == "response.delta"]
        # The row is no open call: a late result has nothing to answer.
        client.send("tool.result", call_id=call["call_id"], result="1")
        assert client.expect("session.error")["error"]["code"] == "unknown_call"
        again = dial(alice if is_known else None)
        again.create_session(agent="model")
        frames = turn(again, [*ASKED, *answered(call, "22 degrees")])
        assert frames[-1]["response"]["finish_reason"] == "stop"
        messages = model.last["messages"]
        assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool"]
        assert messages[2]["tool_calls"][0]["id"] == messages[3]["tool_call_id"] == call["call_id"]
        assert messages[3]["content"] == "22 degrees"


def test_the_servers_own_calls_are_returned_with_the_history(
    dial: Dial, alice: Person, bob: Person, settings: Settings
) -> None:
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, TOOL]
    mixed = call_chunks(
        ("a", "weigh", '{"query": "words"}'), ("b", "search", "{}"), text="Let me look."
    )
    with model_server(mixed, text_chunks("Sunny")) as model:
        model.agent(tools=["weigh"])
        client = dial(alice)
        client.create_session(agent="model")
        frames = turn(client, ASKED)
        (call,) = [frame for frame in frames if frame["type"] == "tool.call"]
        assert call["name"] == "search"
        history = [*ASKED, *answered(call, "rain")]
        turn(client, history)
        reported, *results = model.last["messages"][2:]
        assert reported["content"] == "Let me look."
        names = {
            tool_call["id"]: tool_call["function"]["name"] for tool_call in reported["tool_calls"]
        }
        result_by_name = {
            names.pop(result["tool_call_id"]): result["content"] for result in results
        }
        assert (result_by_name, names) == ({"weigh": "5 grams", "search": "rain"}, {})
        # No other caller receives what an answer said, even with the ids of its calls.
        stranger = dial(bob)
        stranger.create_session(agent="model")
        turn(stranger, history)
        assert "grams" not in str(model.last["messages"])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("session", "response", "ends"),
    [
        ({}, {"client_tools": "wait", "messages": ASKED}, False),
        ({}, {"client_tools": "end"}, True),
        ({"extensions": {"client_tools": "end"}}, {}, True),
        ({"extensions": {"client_tools": "wait"}}, {"messages": ASKED}, False),
        ({}, {}, False),
    ],
)
def test_a_client_may_say_what_its_tools_do(
    dial: Dial, session: dict[str, Any], response: dict[str, Any], *, ends: bool
) -> None:
    client = dial()
    client.create_session(agent="tool-user", session={**session, "tools": [SEARCH]})
    if "messages" not in response:
        client.send("input.text", text="Weather?")
    client.send("response.create", response=response)
    call = client.until("tool.call")[-1]
    if not ends:
        client.send("tool.result", call_id=call["call_id"], result="1")
    done = client.until(*TERMINAL)[-1]
    assert done["response"]["finish_reason"] == ("tool_calls" if ends else "stop")
    assert ToolCall.objects.get().status == ("cancelled" if ends else "done")


def test_what_its_tools_do_is_one_of_two_words(dial: Dial) -> None:
    client = dial()
    client.create_session(agent="echo")
    client.send("response.create", response={"client_tools": "maybe"})
    assert client.expect("session.error")["error"]["code"] == "invalid_event"
