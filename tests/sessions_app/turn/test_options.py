"""The options of a response on their way to the model that answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chat_app.models import Message
from sessions_app.models import Response
from tests.client import TERMINAL, Frame
from tests.sessions_app.model_server import call_chunks, model_server, text_chunks

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.client import UampClient
    from tests.live_server import Dial

SEARCH = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
NAMED: dict[str, Any] = {"type": "function", "function": {"name": "search"}}
TOOL = "tests.sessions_app.billing.test_token_payments.weigh"
EVERY: dict[str, Any] = {
    "temperature": 0.5,
    "max_tokens": 70,
    "top_p": 0.9,
    "stop": ["END", "STOP"],
    "seed": 3,
    "frequency_penalty": 1.0,
    "presence_penalty": -1.0,
    "logit_bias": {"50256": -100.0},
    "reasoning_effort": "high",
    "verbosity": "low",
}


def ask_with_options(client: UampClient, **response: Any) -> Frame:
    """Ask with these options and return the last frame."""
    client.send("input.text", text="Hello")
    client.send("response.create", response=response)
    return client.until("session.error", *TERMINAL)[-1]


def test_every_option_reaches_the_provider(dial: Dial) -> None:
    with model_server() as model:
        model.agent()
        client = dial()
        client.create_session(agent="model")
        assert ask_with_options(client, **EVERY, tools=[SEARCH], parallel_tool_calls=False)[
            "type"
        ] == ("response.done")
        options = {name: model.last.get(name) for name in (*EVERY, "parallel_tool_calls")}
        assert options == {**EVERY, "parallel_tool_calls": False}


def test_a_session_has_options_and_its_responses_have_others(dial: Dial) -> None:
    with model_server() as model:
        model.agent()
        client = dial()
        extensions = {"top_p": 0.1, "seed": 9, "stop": "END"}
        client.create_session(agent="model", session={"extensions": extensions})
        ask_with_options(client, seed=0)
        assert (model.last["top_p"], model.last["seed"], model.last["stop"]) == (0.1, 0, "END")


def test_options_about_tools_are_not_sent_without_tools(dial: Dial) -> None:
    with model_server() as model:
        model.agent()
        client = dial()
        client.create_session(agent="model")
        ask_with_options(client, tool_choice="none", parallel_tool_calls=False)
        assert not {"tool_choice", "parallel_tool_calls"} & model.last.keys()


@pytest.mark.parametrize("choice", ["required", NAMED])
def test_a_model_is_made_to_call_a_tool_once(dial: Dial, choice: Any) -> None:
    with model_server(call_chunks(("c1", "search", "{}")), text_chunks("Found")) as model:
        model.agent()
        client = dial()
        client.create_session(agent="model")
        client.send("input.text", text="Hello")
        client.send("response.create", response={"tools": [SEARCH], "tool_choice": choice})
        call = client.until("tool.call")[-1]
        client.send("tool.result", call_id=call["call_id"], result="1")
        assert client.until(*TERMINAL)[-1]["type"] == "response.done"
        assert [request.get("tool_choice") for request in model.requests] == [choice, None]


def test_a_demand_for_a_tool_is_not_made_where_a_strategy_asks_for_a_thought(dial: Dial) -> None:
    answers = [
        text_chunks("I look."),
        call_chunks(("c1", "search", "{}")),
        text_chunks("I know."),
        text_chunks("Found"),
    ]
    with model_server(*answers) as model:
        model.agent(strategy="react")
        client = dial()
        client.create_session(agent="model")
        client.send("input.text", text="Hello")
        options = {"tools": [SEARCH], "tool_choice": "required", "parallel_tool_calls": False}
        client.send("response.create", response=options)
        call = client.until("tool.call")[-1]
        client.send("tool.result", call_id=call["call_id"], result="1")
        assert client.until(*TERMINAL)[-1]["type"] == "response.done"
        choices = [request.get("tool_choice") for request in model.requests]
        assert choices == [None, "required", None, None]
        assert [request.get("parallel_tool_calls") for request in model.requests] == [
            None,
            False,
            None,
            False,
        ]


def test_a_model_may_be_kept_from_calling_tools(dial: Dial, settings: Settings) -> None:
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, TOOL]
    with model_server() as model:
        model.agent(tools=["weigh"])
        client = dial()
        client.create_session(agent="model")
        ask_with_options(client, tool_choice="none")
        assert model.last["tool_choice"] == "none"


@pytest.mark.parametrize(
    ("provider", "response", "refused"),
    [
        ("anthropic", {"seed": 3, "logit_bias": {"1": 1}}, ["logit_bias", "seed"]),
        ("google", {"verbosity": "low"}, ["verbosity"]),
        ("openai_compat", {"tool_choice": "required"}, ["tool_choice"]),
        ("openai_compat", {"tool_choice": NAMED}, ["tool_choice"]),
        (
            "anthropic",
            {"tools": [SEARCH], "tool_choice": NAMED, "reasoning_effort": "low"},
            ["tool_choice"],
        ),
    ],
)
def test_an_option_that_the_model_cannot_keep_to_is_refused_by_name(
    dial: Dial,
    provider: str,
    response: dict[str, Any],
    refused: list[str],
) -> None:
    with model_server() as model:
        model.agent(provider=provider)
        client = dial()
        client.create_session(agent="model")
        error = ask_with_options(client, **response)["error"]
        assert error["code"] == "unsupported_parameter"
        assert (error["details"]["parameters"], error["details"]["agent"]) == (refused, "model")
        assert model.requests == []
        # Nothing was written.
        assert not Message.objects.exists()
        assert not Response.objects.exists()


def test_a_script_takes_every_option(dial: Dial) -> None:
    client = dial()
    client.create_session(agent="echo")
    assert ask_with_options(client, **EVERY, tool_choice="required")["type"] == "response.done"
