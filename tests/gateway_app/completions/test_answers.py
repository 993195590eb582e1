"""Contents of answers: thoughts, calls of the client's tools, media, and finish reasons."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway_app.completions.requests import (
    HELLO,
    PICTURE,
    PIXEL,
    SEARCH,
    ask,
    chunks_of,
    deltas_of,
    text_of,
)
from tests.sessions_app.model_server import call_chunks, model_server, text_chunks

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person

pytestmark = pytest.mark.any_database


def streamed(answer: httpx.Response) -> tuple[list[dict[str, Any]], str]:
    """Return the deltas of a stream and its finish reason."""
    chunks = chunks_of(answer)
    ends = [c["choices"][0]["finish_reason"] for c in chunks if c["choices"]]
    return deltas_of(chunks), next(reason for reason in ends if reason)


def test_thoughts_are_reasoning_content(web: httpx.Client) -> None:
    message = ask(web, "thinker", HELLO).json()["choices"][0]["message"]
    deltas, _ = streamed(ask(web, "thinker", {**HELLO, "stream": True}))

    assert message["reasoning_content"].startswith("The question has 2 words.")
    assert message["content"] == "I thought about it. You asked: Hello there"
    thought = "".join(delta.get("reasoning_content", "") for delta in deltas)
    assert thought == message["reasoning_content"]
    assert "".join(delta.get("content", "") for delta in deltas) == message["content"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_of_a_client_tool_ends_the_answer_and_comes_back_with_its_result(
    web: httpx.Client, *, stream: bool
) -> None:
    body = {**HELLO, "tools": [SEARCH], "stream": stream}
    answer = ask(web, "tool-user", body)
    if stream:
        deltas, reason = streamed(answer)
        (call,) = next(delta["tool_calls"] for delta in deltas if "tool_calls" in delta)
        assert call.pop("index") == 0
    else:
        (choice,) = answer.json()["choices"]
        reason, (call,) = choice["finish_reason"], choice["message"]["tool_calls"]
        assert choice["message"]["content"] is None

    assert reason == "tool_calls"
    assert call["function"] == {"name": "search", "arguments": '{"query":"Hello there"}'}
    history = [
        *HELLO["messages"],
        {"role": "assistant", "content": None, "tool_calls": [{**call, "type": "function"}]},
        {"role": "tool", "tool_call_id": call["id"], "content": "three cats"},
    ]
    again = ask(web, "tool-user", {**body, "messages": history, "stream": False}).json()
    assert again["choices"][0]["message"]["content"] == "The tool answered: three cats"
    assert again["choices"][0]["finish_reason"] == "stop"


def test_several_calls_have_their_places(web: httpx.Client) -> None:
    with model_server(call_chunks(("a", "search", "{}"), ("b", "search", '{"n": 1}'))) as model:
        model.agent()
        deltas, _ = streamed(ask(web, "model", {**HELLO, "tools": [SEARCH], "stream": True}))

    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert [call["index"] for call in calls] == [0, 1]
    assert [json.loads(call["function"]["arguments"]) for call in calls] == [{}, {"n": 1}]


def test_older_functions_are_called_in_the_older_form(web: httpx.Client) -> None:
    body = {**HELLO, "functions": [SEARCH["function"]]}
    (choice,) = ask(web, "tool-user", body).json()["choices"]

    assert choice["finish_reason"] == "function_call"
    assert choice["message"]["function_call"]["name"] == "search"
    assert "tool_calls" not in choice["message"]
    history = [
        *HELLO["messages"],
        {"role": "assistant", "content": None, "function_call": choice["message"]["function_call"]},
        {"role": "function", "name": "search", "content": "three cats"},
    ]
    again = ask(web, "tool-user", {**body, "messages": history}).json()["choices"][0]
    assert again["message"]["content"] == "The tool answered: three cats"


def test_all_roles_and_parts_reach_the_model(web: httpx.Client, alice: Person) -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": "First", "name": "ann"},
        {"role": "assistant", "content": None, "refusal": "No."},
        {"role": "user", "content": [{"type": "text", "text": "Look"}, PICTURE]},
    ]
    with model_server(text_chunks("A dot")) as model:
        model.agent()
        answer = ask(web, "model", {"messages": messages}, alice)

        assert answer.status_code == 200, answer.text
        prompt = model.last["messages"]
    assert "Be kind." in prompt[0]["content"]
    assert "Be brief." in prompt[0]["content"]
    assert prompt[2] == {"role": "assistant", "content": "No."}
    kinds = [part["type"] for part in prompt[-1]["content"]]
    assert kinds.count("image_url") == 1
    assert PIXEL in json.dumps(prompt[-1])


@pytest.mark.usefixtures("celery_worker_thread")
def test_pictures_of_an_answer_are_links_that_the_client_may_read(
    web: httpx.Client, alice: Person
) -> None:
    content = [{"type": "text", "text": "make it black and white"}, PICTURE]
    body = {"messages": [{"role": "user", "content": content}]}

    whole_text = ask(web, "studio", body, alice).json()["choices"][0]["message"]["content"]
    stream = text_of(chunks_of(ask(web, "studio", {**body, "stream": True}, alice)))

    for text in (whole_text, stream):
        url = text.partition("](")[2].partition(")")[0]
        assert "![" in text
        file = web.get(url)
        assert (file.status_code, file.headers["Content-Type"]) == (200, "image/png")


def test_a_failure_is_an_error_in_either_form(web: httpx.Client) -> None:
    refused = ask(web, "fail", HELLO)
    chunks = chunks_of(ask(web, "fail", {**HELLO, "stream": True}))

    assert refused.status_code == 502
    assert refused.json()["error"]["code"] == "provider_error"
    assert refused.json()["error"]["type"] == "server_error"
    assert chunks[-1]["error"] == refused.json()["error"]
    assert text_of(chunks).startswith("This answer to")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("prefix", ["/agents/echo", ""])
@pytest.mark.parametrize("path", ["/chat/completions", "/v1/chat/completions/"])
def test_every_path_answers_with_and_without_a_slash(
    web: httpx.Client, prefix: str, path: str
) -> None:
    answer = web.post(prefix + path, json={**HELLO, "model": "echo"})

    assert answer.json()["choices"][0]["message"]["content"] == "Hello there"
    assert answer.json()["model"] == "echo"


def test_agents_are_models(web: httpx.Client) -> None:
    listed = web.get("/v1/models").json()
    echo = web.get("/v1/models/echo").json()

    assert echo in listed["data"]
    assert (echo["id"], echo["object"]) == ("echo", "model")
    assert web.get("/agents/echo/v1/models").json()["data"] == [echo]
    (short,) = web.get("/agents/echo/models").json()["data"]
    assert short.items() <= echo.items()
    missing = web.get("/v1/models/missing")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "agent_not_found")
    assert web.post("/v1/models").status_code == 405
