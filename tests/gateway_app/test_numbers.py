"""Numbers are the dialect's: what is carried keeps its digits, limits protect what they name."""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest

import gateway_app
import uamp
from chat_app.log.verification import check_log
from chat_app.models import Chat, SharedState
from sessions_app.models import Response, Session
from tests.client import TERMINAL
from tests.gateway_app.a2a.calls import call, old_message, text_message
from tests.gateway_app.acp.test_one_shot import call as call_acp
from tests.gateway_app.ag_ui.runs import run, run_input, the
from tests.gateway_app.anthropic.requests import HELLO as MESSAGE
from tests.gateway_app.anthropic.requests import ask as ask_for_message
from tests.gateway_app.completions.requests import HELLO, SEARCH, ask
from tests.gateway_app.openai_responses.requests import respond
from tests.gateway_app.realtime.client import END, realtime
from tests.sessions_app.model_server import model_server
from tests.uamp.types.test_bounds import numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.gateway_app.realtime.client import Realtime
    from tests.live_server import Dial, Person
    from tests.sessions_app.model_server import ModelServer

__all__ = ["realtime"]

CARRIED: Final = [
    2**31,
    2**53 - 1,
    2**53,
    2**53 + 1,
    -(2**53) - 1,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    2**64,
    10**40 + 1,
    10**100 + 1,
    int(sys.float_info.max),
    -int(sys.float_info.max),
]
TOO_LONG: Final = ["1" + "0" * 309, "9" * 4_300, "-" + "9" * 4_301, "9" * 100_000]
SCHEMA: Final = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "minimum": min(CARRIED), "maximum": max(CARRIED), "enum": CARRIED}
    },
}


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """Run a provider that keeps what it is asked."""
    with model_server() as running:
        running.agent()
        yield running


def schemas_of(model: ModelServer) -> list[Any]:
    """Return the schemas of the tools that the model was shown last."""
    return [tool["function"]["parameters"] for tool in model.last["tools"]]


def test_schemas_of_tools_reach_the_model_whole(
    web: httpx.Client, realtime: Realtime, dial: Dial, alice: Person, model: ModelServer
) -> None:
    function = {"name": "search", "parameters": SCHEMA}
    tool = {"type": "function", "function": function}

    ask(web, "model", {**HELLO, "tools": [tool]}, alice)
    assert schemas_of(model) == [SCHEMA]
    respond(web, "model", {"tools": [{"type": "function", **function}]}, alice)
    assert schemas_of(model) == [SCHEMA]
    run(web, "model", run_input("Hi", tools=[{"description": "", **function}]), alice)
    assert schemas_of(model) == [SCHEMA]
    own = {"name": "search", "input_schema": SCHEMA}
    ask_for_message(web, "model", {**MESSAGE, "tools": [own]}, alice)
    assert schemas_of(model) == [SCHEMA]
    message = text_message("Hi", metadata={"uamp_tools": [tool]})
    call(web, "model", "SendMessage", {"message": message}, who=alice)
    assert schemas_of(model) == [SCHEMA]
    client = realtime("v1/realtime?model=model", alice)
    updated = client.ask(
        "session.update",
        session={"type": "realtime", "tools": [{"type": "function", **function}]},
    )
    assert updated["session"]["tools"][0]["parameters"] == SCHEMA
    client.say("Hi")
    client.send("response.create")
    client.until("response.done")
    assert schemas_of(model) == [SCHEMA]
    socket = dial(alice)
    socket.create_session(agent="model", session={"tools": [tool]})
    socket.ask("Hi")
    socket.until(*TERMINAL)
    assert schemas_of(model) == [SCHEMA]


def test_a_state_keeps_its_numbers_in_the_log_too(web: httpx.Client, alice: Person) -> None:
    state = {"numbers": CARRIED, "by": dict(zip("abcdefghijklm", CARRIED, strict=True))}

    events = run(web, "echo", run_input("Hi", state=state), alice)

    assert the(events, "STATE_SNAPSHOT")["snapshot"] == state
    assert SharedState.objects.get().value == state
    joined = run(web, "echo", run_input("", messages=[]), alice, path="/connect")
    assert the(joined, "STATE_SNAPSHOT")["snapshot"] == state
    chat = Chat.objects.get()
    checked = check_log(chat.pk)
    assert checked is not None
    assert checked.problems == ()
    export = web.get(f"/api/v1/chats/{chat.pk}/export?format=json", headers=alice.headers)
    assert export.status_code == 200


def test_values_of_a2a_are_read_by_the_agent_whole(web: httpx.Client, alice: Person) -> None:
    metadata = {"mine": CARRIED}
    new = text_message("", parts=[{"data": {"n": CARRIED}}], metadata=metadata)
    old = old_message("", parts=[{"kind": "data", "data": {"n": CARRIED}}], metadata=metadata)

    params = {"message": new, "metadata": metadata}
    new_task = call(web, "echo", "SendMessage", params, who=alice)["result"]["task"]
    old_task = call(web, "echo", "message/send", {"message": old}, who=alice)["result"]
    for task in (new_task, old_task):
        (part,) = task["artifacts"][0]["parts"]
        assert part["data"] == {"n": CARRIED}


def test_extensions_of_a_session_keep_their_numbers(dial: Dial, alice: Person) -> None:
    client = dial(alice)
    mine = {"mine": {"n": CARRIED}}
    created = client.create_session(agent="echo", session={"extensions": mine})
    assert Session.objects.get(pk=created["session"]["id"]).config["extensions"] == mine
    assert client.answer("Hi")[-1]["type"] == "response.done"


def test_what_a_request_of_acp_carries_is_read(web: httpx.Client, alice: Person) -> None:
    messages = [{"role": "user", "content": "Hi"}]
    answer = call_acp(
        web, "echo", "prompt/submit", alice, messages=messages, _meta={"mine": CARRIED}
    )
    assert answer["result"]["content"] == "Hi"
    for number in CARRIED:
        body = {"jsonrpc": "2.0", "id": number, "method": "initialize", "params": {}}
        for path in ("acp", "a2a"):
            reply = web.post(f"/agents/echo/{path}", json=body, headers=alice.headers).json()
            assert reply["id"] == number


BODIES: Final[dict[str, tuple[str, Any]]] = {
    "anthropic": ("v1/messages", {**MESSAGE, "metadata": "N"}),
    "completions": ("chat/completions", {**HELLO, "metadata": "N"}),
    "responses": ("responses", {"input": "Hi", "metadata": "N"}),
    "ag-ui": ("agui", run_input("Hi", state={"n": "N"})),
    "a2a": (
        "a2a",
        {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"metadata": "N"}},
    ),
    "acp": ("acp", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"_meta": "N"}}),
}


@pytest.mark.sampled
@pytest.mark.parametrize("digits", TOO_LONG, ids=lambda digits: str(len(digits)))
@pytest.mark.parametrize("dialect", BODIES)
def test_a_number_beyond_a_double_is_refused(
    web: httpx.Client, alice: Person, dialect: str, digits: str
) -> None:
    path, body = BODIES[dialect]
    text = json.dumps(body).replace('"N"', digits)
    headers = {**alice.headers, "Content-Type": "application/json"}

    answer = web.post(f"/agents/echo/{path}", content=text, headers=headers)

    assert "a number is too large for a double" in answer.text
    assert answer.status_code in {200, 400}
    assert answer.status_code == 400 or "error" in answer.json()
    assert not Response.objects.exists()


# --- Limits ---


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [2**31, 2**32, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63)])
def test_any_seed_of_64_bits_reaches_the_model(
    web: httpx.Client, alice: Person, model: ModelServer, seed: int
) -> None:
    assert ask(web, "model", {**HELLO, "seed": seed}, alice).status_code == 200
    assert model.last["seed"] == seed


@pytest.mark.sampled(2)
@pytest.mark.parametrize("limit", [uamp.MAX_TOKENS + 1, 2**31 - 1, 2**32, 2**53, 2**63 - 1])
def test_a_limit_of_tokens_beyond_any_answer_is_the_agents_own(
    web: httpx.Client, alice: Person, model: ModelServer, limit: int
) -> None:
    model.agent("short", max_output_tokens=64)
    for agent, agent_limit in (("model", None), ("short", 64)):
        for name in ("max_tokens", "max_completion_tokens"):
            answer = ask(web, agent, {**HELLO, name: limit}, alice)
            assert answer.status_code == 200, answer.text
            assert model.last.get("max_tokens") == agent_limit
        assert respond(web, agent, {"max_output_tokens": limit}, alice).status_code == 200
        assert model.last.get("max_tokens") == agent_limit


@pytest.mark.sampled(2)
@pytest.mark.parametrize("limit", [0, -1, 1.5, "9", True, 2**63])
def test_an_invalid_limit_of_tokens_is_refused(
    web: httpx.Client, alice: Person, limit: Any
) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        assert ask(web, "echo", {**HELLO, name: limit}, alice).status_code == 400
    assert respond(web, "echo", {"max_output_tokens": limit}, alice).status_code == 400
    assert not Response.objects.exists()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("length", [0, 1, 1001, 2**31 - 1, 2**53 - 1])
def test_any_length_of_a_history_is_taken(web: httpx.Client, alice: Person, length: int) -> None:
    for method, message in (("SendMessage", text_message), ("message/send", old_message)):
        params: dict[str, Any] = {
            "message": message("Hi"),
            "configuration": {"historyLength": length},
        }
        result = call(web, "echo", method, params, who=alice)["result"]
        task = result.get("task", result)
        assert len(task.get("history", ())) == min(length, 1)
        get = "GetTask" if "task" in result else "tasks/get"
        params = {"id": task["id"], "historyLength": length}
        assert "result" in call(web, "echo", get, params, who=alice)
    path = f"/agents/echo/a2a/rest/tasks/{task['id']}?historyLength={length}"
    assert web.get(path, headers=alice.headers).status_code == 200


@pytest.mark.parametrize("length", [129, 200, 1024])
def test_long_ids_of_calls_are_taken(
    web: httpx.Client, realtime: Realtime, alice: Person, model: ModelServer, length: int
) -> None:
    call_id = "c" * length
    called = {"type": "function_call", "call_id": call_id, "name": "search", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": call_id, "output": "three"}
    hello = {"role": "user", "content": "Hi"}
    answer = respond(web, "model", {"input": [hello, called, result]}, alice)
    assert answer.status_code == 200, answer.text
    assert model.last["messages"][-1]["tool_call_id"] == call_id
    client = realtime("v1/realtime?model=model", alice)
    client.say("Hi")
    for item in (called, result):
        client.send("conversation.item.create", item=item)
        client.until("conversation.item.done")
    client.send("response.create")
    client.until(END)
    assert model.last["messages"][-1]["tool_call_id"] == call_id
    calls = [{"id": call_id, "type": "function", "function": {"name": "search", "arguments": "{}"}}]
    messages = [
        *HELLO["messages"],
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": call_id, "content": "three"},
    ]
    assert ask(web, "model", {"messages": messages, "tools": [SEARCH]}, alice).status_code == 200
    assert model.last["messages"][-1]["tool_call_id"] == call_id


@pytest.mark.sampled(3)
@pytest.mark.parametrize("version", [-1, 2**53, 2**63, 10**40, 1.5, "1", True])
def test_the_version_of_a_state_has_bounds(web: httpx.Client, alice: Person, version: Any) -> None:
    body = run_input("Hi", state={"a": 1}, forwardedProps={"stateVersion": version})
    answer = web.post("/agents/echo/agui", json=body, headers=alice.headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_event")
    assert not SharedState.objects.exists()


# The id of a call comes back in its answer; the version of ACP is looked at, and goes nowhere.
ECHOED: Final = {"Rpc.id", "InitializeParams.protocolVersion"}


def types_of_requests(base: type = msgspec.Struct) -> Iterator[type]:
    """Yield the types of the gateway, except those of answers."""
    for module in pkgutil.walk_packages(gateway_app.__path__, "gateway_app."):
        importlib.import_module(module.name)
    for cls in base.__subclasses__():
        if cls.__module__.startswith("gateway_app.") and not cls.__module__.endswith(".write"):
            yield cls
        yield from types_of_requests(cls)


def test_every_number_of_every_dialect_has_both_bounds() -> None:
    types = set(types_of_requests())
    assert {cls.__name__ for cls in types} >= {
        "CompletionRequest",
        "CountRequest",
        "ListParams",
        "MessagesRequest",
        "NewConversation",
        "ResponsesRequest",
        "RetrieveQuery",
        "RunInput",
        "SecretRequest",
        "SubmitParams",
        "TaskRequest",
    }
    numbers = [
        number
        for cls in types
        for number in numbers_of(msgspec.inspect.type_info(cls), cls.__name__, set())
    ]
    assert len(numbers) > 40
    unbounded = {
        at
        for at, number in numbers
        if (number.ge is None and number.gt is None) or (number.le is None and number.lt is None)
    }
    assert unbounded == ECHOED
