"""Every field of OpenAI's request: passed on, ignored or refused by name, as the docs say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway_app.completions.requests import HELLO, SEARCH, ask
from tests.sessions_app.model_server import model_server, text_chunks

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person

pytestmark = pytest.mark.any_database

PAGE = Path(__file__).parents[3] / "docs" / "adapters.md"
SCHEMA = {"name": "found", "schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
NAMED = {"type": "function", "function": {"name": "search"}}
# The members of CreateChatCompletionRequest, each with a value that OpenAI's API takes.
FIELDS: dict[str, Any] = {
    "audio": {"voice": "alloy", "format": "wav"},
    "frequency_penalty": 1.0,
    "function_call": "auto",
    "functions": [SEARCH["function"]],
    "logit_bias": {"50256": -100.0},
    "logprobs": True,
    "max_completion_tokens": 70,
    "max_tokens": 60,
    "messages": HELLO["messages"],
    "metadata": {"order": "7"},
    "modalities": ["text", "audio"],
    "model": "model",
    "moderation": {"model": "omni-moderation-latest"},
    "n": 2,
    "parallel_tool_calls": False,
    "prediction": {"type": "content", "content": "Hello"},
    "presence_penalty": -1.0,
    "prompt_cache_key": "a",
    "prompt_cache_options": {"mode": "explicit"},
    "prompt_cache_retention": "24h",
    "reasoning_effort": "high",
    "response_format": {"type": "json_schema", "json_schema": SCHEMA},
    "safety_identifier": "s",
    "seed": 3,
    "service_tier": "flex",
    "stop": ["END", "STOP"],
    "store": True,
    "stream": True,
    "stream_options": {"include_usage": True},
    "temperature": 0.5,
    "tool_choice": NAMED,
    "tools": [SEARCH],
    "top_logprobs": 2,
    "top_p": 0.9,
    "user": "u",
    "verbosity": "low",
    "web_search_options": {},
}
# What a field needs beside it.
BESIDE: dict[str, dict[str, Any]] = {
    "function_call": {"functions": [SEARCH["function"]]},
    "parallel_tool_calls": {"tools": [SEARCH]},
    "stream_options": {"stream": True},
    "tool_choice": {"tools": [SEARCH]},
}
# Fields that the model of the agent gets under another name or in another shape.
SENT: dict[str, dict[str, Any]] = {
    "function_call": {"tools": [SEARCH]},
    "functions": {"tools": [SEARCH]},
    "max_completion_tokens": {"max_tokens": 70},
    "tools": {"tools": [SEARCH]},
}
SHOWN_IN_THE_ANSWER = {"messages", "model", "response_format", "stream", "stream_options"}


def documented() -> dict[str, str]:
    """Return the first word that the page has for each field."""
    table = PAGE.read_text(encoding="utf-8").partition("### Fields of a request")[2]
    rows = re.findall(r"^\| `(\w+)`(.*?) \| (\w+)", table.partition("\n##")[0], re.MULTILINE)
    words = {}
    for name, others, word in rows:
        for each in (name, *re.findall(r"`(\w+)`", others)):
            words[each] = word
    return words


def test_the_page_has_all_fields_of_openai() -> None:
    assert len(FIELDS) == 37
    assert set(FIELDS) <= set(documented())
    assert set(documented().values()) == {"used", "ignored", "refused"}


def of(word: str) -> list[str]:
    """Return the fields of which the page says this."""
    return [name for name in FIELDS if documented()[name] == word]


def test_fields_that_no_agent_can_keep_to_are_refused_by_name(web: httpx.Client) -> None:
    for name in of("refused"):
        answer = ask(web, "echo", {**HELLO, name: FIELDS[name]})

        error = answer.json()["error"]
        assert (answer.status_code, error["param"]) == (400, name)
        assert error["code"] == "unsupported_parameter"
        assert error["type"] == "invalid_request_error"
        assert error["message"]


def test_refused_fields_are_taken_where_they_ask_for_nothing(web: httpx.Client) -> None:
    nothing = {name: None for name in FIELDS if name != "messages"}
    usual = {"n": 1, "modalities": ["text"], "logprobs": False, "service_tier": "auto"}

    answer = ask(web, "echo", {**HELLO, **nothing, **usual})

    assert answer.status_code == 200, answer.text


def test_ignored_fields_change_nothing(web: httpx.Client) -> None:
    with model_server() as model:
        model.agent()
        plain = ask(web, "model", HELLO).json()
        for name in of("ignored"):
            answer = ask(web, "model", {**HELLO, name: FIELDS[name]}).json()

            assert (name, answer["choices"]) == (name, plain["choices"])
            assert (name, model.last) == (name, model.requests[0])


def test_used_fields_reach_the_model_or_shape_the_answer(web: httpx.Client, alice: Person) -> None:
    with model_server(text_chunks('{"n": 1}')) as model:
        model.agent()
        for name in of("used"):
            body = {**HELLO, **BESIDE.get(name, {}), name: FIELDS[name]}
            answer = ask(web, "model", body, alice)

            assert answer.status_code == 200, answer.text
            if name not in SHOWN_IN_THE_ANSWER:
                for member, value in SENT.get(name, {name: FIELDS[name]}).items():
                    assert (name, _essence(model.last[member])) == (name, _essence(value))


def _essence(value: Any) -> Any:
    """Return tools by their names: a server adds what it likes to their schemas."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [tool["function"]["name"] for tool in value]
    return value


def test_the_answer_has_the_form_that_was_asked_for(web: httpx.Client) -> None:
    with model_server(text_chunks("no"), text_chunks('{"n": 1}')) as model:
        model.agent()
        answer = ask(web, "model", {**HELLO, "response_format": FIELDS["response_format"]})

        assert answer.json()["choices"][0]["message"]["content"] == '{"n": 1}'
        assert len(model.requests) == 2


def test_an_option_that_the_vendor_has_no_name_for_is_refused_by_name(web: httpx.Client) -> None:
    with model_server() as model:
        model.agent(provider="anthropic")
        answer = ask(web, "model", {**HELLO, "seed": 3})

        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "seed"
        assert model.requests == []
