"""Every field of OpenAI's request: passed on, ignored or refused by name, as the docs say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway_app.openai_responses.requests import SEARCH, events_of, respond, text_of
from tests.live_server import shared_chat
from tests.sessions_app.model_server import model_server, text_chunks

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person

pytestmark = pytest.mark.any_database

PAGE = Path(__file__).parents[3] / "docs" / "responses.md"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
FORMAT = {"type": "json_schema", "name": "found", "schema": SCHEMA, "strict": True}
# The members of OpenAI's ResponseCreateParams, each with a value that its API takes.
FIELDS: dict[str, Any] = {
    "access_programs": {"cyber": "standard"},
    "background": True,
    "background_options": {"completion_window": "2h"},
    "context_management": [{"type": "compaction", "compact_threshold": 1000}],
    "conversation": "chat_1",
    "image": {"context_compression": "auto"},
    "include": ["reasoning.encrypted_content", "file_search_call.results"],
    "input": "Hello there",
    "instructions": "Be kind.",
    "max_output_tokens": 70,
    "max_tool_calls": 3,
    "metadata": {"order": "7"},
    "model": "model",
    "moderation": {"model": "omni-moderation-latest"},
    "parallel_tool_calls": False,
    "previous_response_id": "resp_1",
    "prompt": {"id": "pmpt_1"},
    "prompt_cache_key": "a",
    "prompt_cache_options": {"mode": "explicit"},
    "prompt_cache_retention": "24h",
    "reasoning": {"effort": "high", "summary": "auto"},
    "safety_identifier": "s",
    "service_tier": "flex",
    "store": False,
    "stream": True,
    "stream_options": {"include_obfuscation": True},
    "temperature": 0.5,
    "text": {"format": FORMAT, "verbosity": "low"},
    "tool_choice": {"type": "function", "name": "search"},
    "tools": [SEARCH],
    "top_logprobs": 2,
    "top_p": 0.9,
    "truncation": "auto",
    "user": "u",
}
# What a field needs beside it.
BESIDE: dict[str, dict[str, Any]] = {
    "parallel_tool_calls": {"tools": [SEARCH]},
    "tool_choice": {"tools": [SEARCH]},
}
# Fields of which the model of the agent has something.
SENT: dict[str, dict[str, Any]] = {
    "max_output_tokens": {"max_tokens": 70},
    "parallel_tool_calls": {"parallel_tool_calls": False},
    "reasoning": {"reasoning_effort": "high"},
    "temperature": {"temperature": 0.5},
    "text": {"verbosity": "low"},
    "tool_choice": {"tool_choice": {"type": "function", "function": {"name": "search"}}},
    "top_p": {"top_p": 0.9},
}
# Fields that tests beside this one have, or that the next one has.
SHOWN_IN_THE_ANSWER = {
    "background",
    "conversation",
    "input",
    "instructions",
    "metadata",
    "model",
    "previous_response_id",
    "store",
    "stream",
    "tools",
}


def documented() -> dict[str, str]:
    """Return the first word that the page has for each field."""
    table = PAGE.read_text(encoding="utf-8").partition("## Fields of a request")[2]
    rows = re.findall(r"^\| (`[^|]+`) \| (\w+)", table.partition("| item of")[0], re.MULTILINE)
    return {name: word for names, word in rows for name in re.findall(r"`(\w+)`", names)}


def of(word: str) -> list[str]:
    """Return the fields of which the page says this."""
    return [name for name in FIELDS if documented()[name] == word]


def test_the_page_has_all_fields_of_openai() -> None:
    assert len(FIELDS) == 34
    assert set(FIELDS) == set(documented())
    assert set(documented().values()) == {"used", "ignored", "refused"}
    assert set(of("used")) == set(SENT) | SHOWN_IN_THE_ANSWER


def test_fields_that_no_agent_can_keep_to_are_refused_by_name(web: httpx.Client) -> None:
    for name in of("refused"):
        error = respond(web, "echo", {name: FIELDS[name]}).json()["error"]

        assert (error["param"], error["code"]) == (name, "unsupported_parameter")
        assert error["type"] == "invalid_request_error"
        assert error["message"]


def test_refused_fields_are_taken_where_they_ask_for_nothing(web: httpx.Client) -> None:
    nothing = {name: None for name in FIELDS if name != "input"}
    usual = {
        "background_options": {"completion_window": "soonest"},
        "context_management": [],
        "reasoning": {"mode": "standard", "context": "auto"},
        "service_tier": "auto",
        "top_logprobs": 0,
        "truncation": "disabled",
    }

    answer = respond(web, "echo", {**nothing, **usual})

    assert answer.status_code == 200, answer.text


def test_ignored_fields_change_nothing(web: httpx.Client) -> None:
    with model_server() as model:
        model.agent()
        plain = text_of(respond(web, "model", {}).json())
        for name in of("ignored"):
            answer = respond(web, "model", {name: FIELDS[name]}).json()

            assert (name, text_of(answer)) == (name, plain)
            assert (name, model.last) == (name, model.requests[0])


def test_used_fields_reach_the_model(web: httpx.Client, alice: Person) -> None:
    with model_server(text_chunks('{"n": 1}')) as model:
        model.agent()
        for name, members in SENT.items():
            answer = respond(web, "model", {**BESIDE.get(name, {}), name: FIELDS[name]}, alice)

            assert answer.status_code == 200, answer.text
            for member, value in members.items():
                assert (name, model.last[member]) == (name, value)


def test_used_fields_are_repeated_in_the_answer(web: httpx.Client, alice: Person) -> None:
    chat = shared_chat(alice)
    repeated = "instructions max_output_tokens metadata parallel_tool_calls store temperature text"
    names = [*repeated.split(), "tool_choice", "top_p"]
    body = {name: FIELDS[name] for name in names}
    with model_server(text_chunks('{"n": 1}')) as model:
        model.agent()
        response = respond(web, "model", {**body, "tools": [SEARCH]}, alice).json()
        assert "Be kind." in str(model.last["messages"][0])
        assert [tool["function"]["name"] for tool in model.last["tools"]] == ["search"]
    stream = events_of(respond(web, "echo", {"stream": True, "conversation": chat.pk}, alice))

    text = response.pop("text")
    assert {name: response[name] for name in names if name != "text"} == {
        name: value for name, value in body.items() if name != "text"
    }
    assert (text["format"]["schema"], text["verbosity"]) == (SCHEMA, "low")
    assert (text["format"]["name"], text["format"]["strict"]) == ("found", True)
    assert response["tools"][0]["parameters"] == SEARCH["parameters"]
    assert stream[0]["response"]["conversation"] == {"id": chat.pk}


def test_the_answer_has_the_form_that_was_asked_for(web: httpx.Client) -> None:
    with model_server(text_chunks("no"), text_chunks('{"n": 1}')) as model:
        model.agent()
        answer = respond(web, "model", {"text": {"format": FORMAT}}).json()

        assert text_of(answer) == '{"n": 1}'
        assert len(model.requests) == 2


def test_parts_of_fields_are_refused_by_name(web: httpx.Client) -> None:
    for body, param in (
        ({"include": ["message.output_text.logprobs"]}, "include"),
        ({"prompt_cache_options": {"prewarm": True}}, "prompt_cache_options"),
        ({"reasoning": {"mode": "pro"}}, "reasoning"),
        ({"reasoning": {"context": "all_turns"}}, "reasoning"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"type": "mcp", "server_label": "x"}]}, "tools[0].type"),
        ({"tool_choice": {"type": "allowed_tools", "tools": []}}, "tool_choice.type"),
        ({"tool_choice": {"type": "file_search"}}, "tool_choice.type"),
    ):
        answer = respond(web, "echo", body)

        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
        assert answer.json()["error"]["code"] == "unsupported_parameter"
