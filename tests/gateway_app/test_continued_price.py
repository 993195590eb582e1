"""An answer that stops for a client tool and continues with the result keeps one price."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

import httpx
import pytest

from payments_app.spending import approvals
from sessions_app.models import Response
from tests.client import wait_until
from tests.sessions_app.billing.paid_agents import clean, earned, priced, rich, token_of, usd
from tests.threads import thread_pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_app.models import Agent
    from tests.conftest import ServerAddress
    from tests.live_server import Person

    Turns = Callable[[dict[str, Any] | None, str], dict[str, Any]]

SAID: Final = "the weather"
SCHEMA: Final = {"type": "object", "properties": {"query": {"type": "string"}}}
FUNCTION: Final = {"name": "look", "description": "Look.", "parameters": SCHEMA}


def _completions(call: dict[str, Any] | None, after: str) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": SAID}]
    if call:
        (tool_call,) = call["choices"][0]["message"]["tool_calls"]
        messages.append({"role": "assistant", "content": None, "tool_calls": [tool_call]})
        messages.append({"role": "tool", "tool_call_id": tool_call["id"], "content": "sunny"})
    if after:
        messages.append({"role": "user", "content": after})
    return {"messages": messages, "tools": [{"type": "function", "function": FUNCTION}]}


def _responses(call: dict[str, Any] | None, after: str) -> dict[str, Any]:
    items: list[dict[str, Any]] = [{"role": "user", "content": SAID}]
    if call:
        (function_call,) = (item for item in call["output"] if item["type"] == "function_call")
        result = {
            "type": "function_call_output",
            "call_id": function_call["call_id"],
            "output": "sunny",
        }
        items += [function_call, result]
    if after:
        items.append({"role": "user", "content": after})
    return {"input": items, "tools": [{"type": "function", **FUNCTION}]}


def _follows(call: dict[str, Any] | None, after: str) -> dict[str, Any]:
    body = _responses(call, after)
    if call:
        body |= {"input": body["input"][2:], "previous_response_id": call["id"]}
    return body


def _anthropic(call: dict[str, Any] | None, after: str) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": SAID}]
    if call:
        (tool_use,) = (block for block in call["content"] if block["type"] == "tool_use")
        result = {"type": "tool_result", "tool_use_id": tool_use["id"], "content": "sunny"}
        messages.append({"role": "assistant", "content": [tool_use]})
        more = [{"type": "text", "text": after}] if after else []
        messages.append({"role": "user", "content": [result, *more]})
    tool = {"name": "look", "input_schema": SCHEMA}
    return {"model": "dear", "max_tokens": 99, "messages": messages, "tools": [tool]}


DIALECTS: Final[dict[str, tuple[str, Turns]]] = {
    "completions": ("chat/completions", _completions),
    "responses": ("responses", _responses),
    "responses that follow": ("responses", _follows),
    "anthropic": ("v1/messages", _anthropic),
}


@pytest.fixture
def agent() -> Agent:
    return priced("dear", "tool-user", per_answer="0.25")


@pytest.fixture
def headers(alice: Person, agent: Agent, who: str) -> dict[str, str]:
    """Return the headers of the asker and of their payment."""
    if who == "visitor":
        return {"X-Payment-Token": token_of(alice)}
    approvals.approve(rich(alice).user.pk, agent.pk, usd("1"))
    return alice.headers


@pytest.mark.sampled(3)
@pytest.mark.parametrize("who", ["person", "visitor"])
@pytest.mark.parametrize(("path", "turn"), DIALECTS.values(), ids=DIALECTS)
def test_a_result_continues_an_answer_at_its_price(
    web: httpx.Client, agent: Agent, headers: dict[str, str], path: str, turn: Turns
) -> None:
    def ask(call: dict[str, Any] | None, after: str = "") -> dict[str, Any]:
        answer = web.post(f"/agents/dear/{path}", json=turn(call, after), headers=headers)
        assert answer.status_code == httpx.codes.OK, answer.text
        reply: dict[str, Any] = answer.json()
        return reply

    first = ask(None)
    assert earned(agent) == "0.25"
    assert "sunny" in str(ask(first))
    assert earned(agent) == "0.25"
    # A second answer to the same call, and new words of the asker, are answers of their own.
    ask(first)
    assert earned(agent) == "0.5"
    ask(first, "And tomorrow?")
    assert earned(agent) == "0.75"
    assert clean()


def _messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = body.get("messages") or body["input"]
    return messages


def _other_question(body: dict[str, Any]) -> None:
    _messages(body)[0]["content"] = "the news"


def _more_before(body: dict[str, Any]) -> None:
    _messages(body).insert(0, {"role": "user", "content": "the news"})


def _other_instructions(body: dict[str, Any]) -> None:
    if "input" in body:
        body["instructions"] = "Say the news."
    elif body.get("model"):
        body["system"] = "Say the news."
    else:
        body["messages"].insert(0, {"role": "system", "content": "Say the news."})


def _words_of_the_agent(body: dict[str, Any]) -> None:
    _messages(body).insert(1, {"role": "assistant", "content": "You asked for the news."})


def _other_tool(body: dict[str, Any]) -> None:
    (tool,) = body["tools"] = deepcopy(body["tools"])
    tool.get("function", tool)["description"] = "Say the news."


@pytest.mark.sampled(2)
@pytest.mark.parametrize("who", ["person", "visitor"])
@pytest.mark.parametrize("dialect", ["completions", "responses", "anthropic"])
def test_a_result_with_another_conversation_is_an_answer_of_its_own(
    web: httpx.Client, agent: Agent, headers: dict[str, str], dialect: str
) -> None:
    path, turn = DIALECTS[dialect]

    def ask(body: dict[str, Any]) -> dict[str, Any]:
        answer = web.post(f"/agents/dear/{path}", json=body, headers=headers)
        assert answer.status_code == httpx.codes.OK, answer.text
        reply: dict[str, Any] = answer.json()
        return reply

    first, paid = ask(turn(None, "")), 1
    changes = (_other_question, _more_before, _other_instructions, _words_of_the_agent, _other_tool)
    # A visitor's token is a dollar.
    for change in changes[: 3 if "X-Payment-Token" in headers else None]:
        body = turn(first, "")
        change(body)
        ask(body)
        paid += 1
        assert earned(agent) == str(usd("0.25").share(paid, 1)), change
    # What repeats it does continue it, also without the tools.
    body = turn(first, "")
    del body["tools"]
    ask(body)
    assert earned(agent) == str(usd("0.25").share(paid, 1))
    assert clean()


@pytest.mark.parametrize("who", ["person"])
def test_two_results_at_once_continue_an_answer_once(
    demo: ServerAddress, web: httpx.Client, agent: Agent, headers: dict[str, str]
) -> None:
    path = "/agents/dear/chat/completions"
    call = web.post(path, json=_completions(None, ""), headers=headers).json()

    def ask(_: int) -> int:
        body, url = _completions(call, ""), f"{demo.http}{path}"
        return httpx.post(url, json=body, headers=headers, timeout=30, trust_env=False).status_code

    with thread_pool(4) as threads:
        codes = list(threads.map(ask, range(4)))
    assert set(codes) <= {httpx.codes.OK, httpx.codes.SERVICE_UNAVAILABLE}
    wait_until(lambda: not Response.objects.filter(status__in=Response.LIVE).exists())
    priced_ones = codes.count(httpx.codes.OK) - 1
    assert earned(agent) == str(usd("0.25") + usd("0.25").share(priced_ones, 1))
    assert clean()


@pytest.mark.parametrize("who", ["person"])
def test_an_answer_has_no_more_rounds_than_its_agent_has_steps(
    web: httpx.Client, agent: Agent, headers: dict[str, str]
) -> None:
    agent.max_steps = 2
    agent.save()
    path = "/agents/dear/chat/completions"
    call = web.post(path, json=_completions(None, ""), headers=headers).json()
    web.post(path, json=_completions(call, ""), headers=headers)
    rounds = Response.objects.order_by("created_at").values_list("request__rounds", flat=True)
    assert list(rounds) == [None, 1]
    Response.objects.filter(request__rounds=None).update(
        request={"ends_at_tools": True, "rounds": 1}
    )
    web.post(path, json=_completions(call, ""), headers=headers)
    assert earned(agent) == "0.5"
