"""Anthropic's Messages API by HTTP: answers, tools, thoughts, media, errors and payment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from chat_app.models import ChatEvent
from gateway_app.anthropic.write import MessagesWriter
from sessions_app.models import Response, Session
from tests.client import wait_until
from tests.gateway_app.anthropic.requests import (
    HELLO,
    SEARCH,
    VERSION,
    ask,
    frames_of,
    message_of,
)
from tests.gateway_app.completions.requests import PIXEL
from tests.live_server import shared_chat
from tests.sessions_app.model_server import call_chunks, model_server, text_chunks
from uamp import events as ev
from uamp.digital_source import AI_MADE

if TYPE_CHECKING:
    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

pytestmark = pytest.mark.any_database

IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
}
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 2048}}


def test_an_agent_answers_as_a_message(web: httpx.Client, alice: Person) -> None:
    answer = ask(web, "echo", HELLO, alice)

    assert answer.status_code == 200
    body = answer.json()
    assert body["id"].startswith("msg_")
    assert body.pop("signature") == ChatEvent.objects.get(type="response.done").payload["signature"]
    assert answer.headers["AI-Disclosure"] == "mode=machine-generated"
    assert body == {
        "id": body["id"],
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "Hello there"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 2,
            "output_tokens": 2,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
        "digital_source_type": AI_MADE,
    }
    session = Session.objects.get(pk=answer.headers["X-Session-Id"])
    assert (session.transport, session.chat_id) == ("anthropic", answer.headers["X-Chat-Id"])


@pytest.mark.parametrize(
    ("agent", "more"),
    [("echo", {}), ("thinker", {}), ("thinker", THINKING), ("tool-user", {"tools": [SEARCH]})],
)
def test_a_stream_adds_up_to_the_same_message(
    web: httpx.Client, agent: str, more: dict[str, Any]
) -> None:
    whole_message = ask(web, agent, {**HELLO, **more}).json()
    streamed = message_of(frames_of(ask(web, agent, {**HELLO, **more, "stream": True})))

    for message in (whole_message, streamed):
        message.pop("id")
        assert message.pop("signature")
        for block in message["content"]:
            block.pop("id", None)
    assert whole_message == streamed
    assert whole_message["content"]


def test_thoughts_are_for_clients_that_ask_for_them(web: httpx.Client) -> None:
    plain = ask(web, "thinker", HELLO).json()["content"]
    hidden = {"thinking": {"type": "adaptive", "display": "omitted"}}
    thought, text = ask(web, "thinker", {**HELLO, **THINKING}).json()["content"]

    assert plain == [text] == ask(web, "thinker", {**HELLO, **hidden}).json()["content"]
    assert thought["type"] == "thinking"
    assert thought["thinking"].startswith("The question has 2 words.")
    assert text["text"] == "I thought about it. You asked: Hello there"
    # A client sends thoughts back with its next question.
    history = [
        *HELLO["messages"],
        {"role": "assistant", "content": [thought, text]},
        {"role": "user", "content": "Again"},
    ]
    again = ask(web, "echo", {**HELLO, **THINKING, "messages": history})
    assert again.json()["content"] == [{"type": "text", "text": "Again"}]


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_of_a_client_tool_ends_the_answer_and_comes_back_with_its_result(
    web: httpx.Client, *, stream: bool
) -> None:
    body = {**HELLO, "tools": [SEARCH], "stream": stream}
    answer = ask(web, "tool-user", body)
    message = message_of(frames_of(answer)) if stream else answer.json()

    assert message["stop_reason"] == "tool_use"
    (call,) = message["content"]
    assert (call["name"], call["input"]) == ("search", {"query": "Hello there"})
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "three cats"}
    history = [
        *HELLO["messages"],
        {"role": "assistant", "content": message["content"]},
        {"role": "user", "content": [result]},
    ]
    again = ask(web, "tool-user", {**body, "messages": history, "stream": False}).json()
    assert again["content"] == [{"type": "text", "text": "The tool answered: three cats"}]


def test_everything_that_a_request_says_reaches_the_model(web: httpx.Client, alice: Person) -> None:
    number = 2**64 + 1
    calls = [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"n": number}},
    ]
    results = [
        {
            "type": "tool_result",
            "tool_use_id": "toolu_1",
            "content": [{"type": "text", "text": "seen"}, IMAGE],
            "cache_control": {"type": "ephemeral"},
        },
        {"type": "text", "text": "And this:"},
        {"type": "document", "title": "Notes", "source": {"type": "text", "data": "Buy milk."}},
    ]
    body = {
        **HELLO,
        "system": [{"type": "text", "text": "Be kind."}, {"type": "text", "text": "Be brief."}],
        "messages": [
            *HELLO["messages"],
            {"role": "assistant", "content": calls},
            {"role": "user", "content": results},
        ],
        "tools": [{**SEARCH, "input_schema": {"type": "object", "maximum": number}}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "temperature": 0.5,
        "stop_sequences": ["END"],
        "metadata": {"user_id": "u"},
        "max_tokens": 77,
    }
    with model_server(text_chunks("Done")) as model:
        model.agent()
        answer = ask(web, "model", body, alice)
        assert answer.status_code == 200, answer.text
        request = model.last

    system, hello, assistant, tool, user = request["messages"]
    assert "Be kind.\n\nBe brief." in system["content"]
    assert hello["content"] == "Hello there"
    assert assistant["content"] == "Let me look."
    (call,) = assistant["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"n": number}
    assert (tool["role"], tool["tool_call_id"]) == ("tool", call["id"])
    assert "seen" in tool["content"]
    text = json.dumps(user)
    assert PIXEL in text
    assert "And this:" in text
    assert "Buy milk." in text
    assert request["tools"][0]["function"]["parameters"]["maximum"] == number
    assert (request["tool_choice"], request["parallel_tool_calls"]) == ("required", False)
    assert (request["temperature"], request["stop"], request["max_tokens"]) == (0.5, ["END"], 77)


def test_a_number_in_a_call_keeps_its_digits(web: httpx.Client) -> None:
    arguments = '{"n": 123456789012345678901234567890, "m": 9007199254740993}'
    with model_server(call_chunks(("a", "search", arguments))) as model:
        model.agent()
        block = ask(web, "model", {**HELLO, "tools": [SEARCH]}).json()["content"][0]
        frames = frames_of(ask(web, "model", {**HELLO, "tools": [SEARCH], "stream": True}))
    assert block["input"] == json.loads(arguments)
    assert message_of(frames)["content"][0]["input"] == json.loads(arguments)


@pytest.mark.parametrize("arguments", ["", "[1]", "{", "7", "[" * 5000])
def test_arguments_that_are_not_an_object_are_left_empty(arguments: str) -> None:
    writer = MessagesWriter(response_id="resp_1", model="m", link=str)
    event = ev.ToolCall(call_id="c", name="f", arguments=arguments)
    assert [frame["delta"]["partial_json"] for frame in writer.feed(event) if "delta" in frame] == [
        "{}"
    ]


@pytest.mark.parametrize("limit", [1, 2**31 - 1, 2**63 - 1])
def test_any_limit_of_tokens_is_taken(web: httpx.Client, limit: int) -> None:
    assert ask(web, "echo", {**HELLO, "max_tokens": limit}).status_code == 200


def test_a_failure_is_an_error_in_either_form(web: httpx.Client) -> None:
    refused = ask(web, "fail", HELLO)
    frames = frames_of(ask(web, "fail", {**HELLO, "stream": True}))

    assert refused.status_code == 502
    assert refused.json()["error"]["type"] == "api_error"
    assert refused.json()["request_id"] == refused.headers["X-Request-ID"]
    assert (frames[-1]["type"], frames[-1]["error"]) == ("error", refused.json()["error"])
    assert (frames[-1]["charged"], refused.json()["charged"]) == ([], [])


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "king", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": [{"type": "smell"}]}]}, "content[0].type"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"model": None}, "model"),
        ({"top_k": 5}, "top_k"),
        ({"mcp_servers": [{"url": "https://x.example"}]}, "mcp_servers"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools.0.type"),
        ({"tools": [{"name": "x"}]}, "tools.0.input_schema"),
        ({"tools": [SEARCH], "tool_choice": {"type": "tool"}}, "tool_choice.name"),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}
                ]
            },
            "messages.0.content.0.tool_use_id",
        ),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}],
                    }
                ]
            },
            "messages.0.content.0.source.file_id",
        ),
        (
            {"messages": [{"role": "assistant", "content": [IMAGE]}]},
            "messages.0.content.0.type",
        ),
    ],
)
def test_a_mistake_is_refused_with_its_place(
    web: httpx.Client, alice: Person, more: dict[str, Any], place: str
) -> None:
    answer = ask(web, "echo", {**HELLO, **more}, alice)

    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert (answer.json()["type"], error["type"]) == ("error", "invalid_request_error")
    assert place in error["message"]
    assert not Response.objects.exists()


def test_other_refusals_have_the_types_of_anthropic(web: httpx.Client, alice: Person) -> None:
    wrong = {**VERSION, "X-API-Key": "uak_00000000_wrong"}
    for path, headers, status, kind in (
        ("/agents/echo/v1/messages", wrong, 401, "authentication_error"),
        ("/agents/missing/v1/messages", alice.headers, 404, "not_found_error"),
        ("/v1/messages/count_tokens", alice.headers, 404, "not_found_error"),
        ("/agents/paid-echo/v1/messages", {}, 402, "billing_error"),
    ):
        answer = web.post(path, json=HELLO, headers=headers)
        assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind)
    assert web.get("/agents/echo/v1/messages").status_code == 405
    assert not Response.objects.exists()


def test_the_root_path_is_shared_with_envelopes_by_the_header(web: httpx.Client) -> None:
    body = {**HELLO, "model": "echo"}
    answer = web.post("/v1/messages?beta=true", json=body, headers=VERSION)
    envelope = web.post("/v1/messages", json=body)

    assert answer.json()["content"] == [{"type": "text", "text": "Hello there"}]
    assert envelope.headers["Content-Type"] == "application/problem+json"


def test_a_price_is_a_402_before_anything_runs(web: httpx.Client) -> None:
    answer = ask(web, "paid-echo", HELLO)

    assert answer.headers["PAYMENT-REQUIRED"]
    assert answer.json()["context"]["accepts"]
    assert not Response.objects.exists()


def test_a_call_may_join_a_chat_and_is_seen_there(
    web: httpx.Client, dial: Dial, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob)
    reader = dial(bob)
    reader.create_session(chat=chat.pk)

    answer = ask(web, "echo", HELLO, alice, **{"X-Chat-Id": chat.pk})

    assert answer.json()["content"][0]["text"] == "Hello there"
    frames = reader.until("response.done")
    created = next(frame for frame in frames if frame["type"] == "message.created")
    assert (created["message"]["content"], created["message"]["transport"]) == (
        "Hello there",
        "anthropic",
    )


def test_a_client_that_leaves_ends_its_own_answer(demo: ServerAddress, alice: Person) -> None:
    with (
        httpx.Client(base_url=demo.http, timeout=15, trust_env=False) as client,
        client.stream(
            "POST",
            "/agents/slow/v1/messages",
            json={**HELLO, "stream": True},
            headers=alice.headers,
        ) as stream,
    ):
        next(stream.iter_lines())

    wait_until(lambda: Response.objects.get().status == "cancelled")


def test_tokens_are_counted_without_asking_the_agent(web: httpx.Client, alice: Person) -> None:
    def count(**more: Any) -> int:
        body = {name: value for name, value in HELLO.items() if name != "max_tokens"} | more
        path = "/agents/echo/v1/messages/count_tokens"
        answer = web.post(path, json=body, headers={**VERSION, "X-API-Key": alice.key})
        assert answer.status_code == 200, answer.text
        assert list(answer.json()) == ["input_tokens"]
        tokens: int = answer.json()["input_tokens"]
        return tokens

    plain = count()
    assert plain >= 3
    assert count(system="x" * 4000) == plain + 1000
    assert count(tools=[SEARCH]) > plain
    assert count(messages=[{"role": "user", "content": [IMAGE]}]) > plain
    assert not Response.objects.exists()
    assert not Session.objects.exists()
    private = web.post("/v1/messages/count_tokens", json={**HELLO, "model": "no"}, headers=VERSION)
    assert private.status_code == 404


def test_models_are_listed_for_both_kinds_of_sdk(web: httpx.Client) -> None:
    listed = web.get("/v1/models", headers=VERSION).json()

    assert listed["has_more"] is False
    assert (listed["first_id"], listed["last_id"]) == (
        listed["data"][0]["id"],
        listed["data"][-1]["id"],
    )
    echo = next(model for model in listed["data"] if model["id"] == "echo")
    assert (echo["type"], echo["object"], echo["display_name"]) == ("model", "model", "echo")
