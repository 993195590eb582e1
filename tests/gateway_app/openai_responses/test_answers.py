"""Answers of the Responses API, whole and streamed."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from sessions_app.models import Response, Session
from tests.gateway_app.completions.requests import PIXEL
from tests.gateway_app.openai_responses.requests import (
    PICTURE,
    SEARCH,
    events_of,
    read,
    respond,
    result,
    text_of,
    text_of_deltas,
)
from tests.live_server import shared_chat
from tests.sessions_app.model_server import call_chunks, model_server, text_chunks

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Dial, Person

pytestmark = pytest.mark.any_database


def test_an_agent_answers_as_a_response(web: httpx.Client, alice: Person) -> None:
    answer = respond(web, "echo", {"metadata": {"order": "7"}, "model": "m"}, alice)

    assert answer.status_code == 200, answer.text
    body = answer.json()
    (item,) = body["output"]
    assert (item["type"], item["role"], item["status"]) == ("message", "assistant", "completed")
    assert text_of(body) == "Hello there"
    assert (body["object"], body["status"], body["error"]) == ("response", "completed", None)
    assert (body["model"], body["metadata"]) == ("m", {"order": "7"})
    assert (body["usage"]["input_tokens"], body["usage"]["total_tokens"]) == (2, 4)
    session = Session.objects.get(pk=answer.headers["X-Session-Id"])
    assert (session.transport, session.ephemeral) == ("responses", False)
    assert session.chat_id == answer.headers["X-Chat-Id"]


def test_a_stream_adds_up_to_the_same_answer(web: httpx.Client) -> None:
    whole_response = respond(web, "thinker", {}).json()
    events = events_of(respond(web, "thinker", {"stream": True}))

    kinds = [event["type"] for event in events if not event["type"].endswith("delta")]
    part, thought = "response.content_part", "response.reasoning_summary"
    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        f"{thought}_part.added",
        f"{thought}_text.done",
        f"{thought}_part.done",
        "response.output_item.done",
        "response.output_item.added",
        f"{part}.added",
        "response.output_text.done",
        f"{part}.done",
        "response.output_item.done",
        "response.completed",
    ]
    last = events[-1]["response"]
    reasoning, message = last["output"]
    assert text_of_deltas(events) == text_of(whole_response) == message["content"][0]["text"]
    assert text_of_deltas(events, f"{thought}_text.delta") == reasoning["summary"][0]["text"]
    assert [
        item["summary"] for item in whole_response["output"] if item["type"] == "reasoning"
    ] == [reasoning["summary"]]
    assert last["usage"] == whole_response["usage"]
    done = [e["item"] for e in events if e["type"] == "response.output_item.done"]
    assert done == last["output"]
    assert events[0]["response"]["status"] == "in_progress"


@pytest.mark.parametrize("stream", [False, True])
def test_a_function_call_ends_the_response_and_its_result_continues_it(
    web: httpx.Client, alice: Person, *, stream: bool
) -> None:
    answer = respond(web, "tool-user", {"tools": [SEARCH], "stream": stream}, alice)
    if stream:
        events = events_of(answer)
        kind = "response.function_call_arguments"
        assert text_of_deltas(events, f"{kind}.delta") == '{"query":"Hello there"}'
        assert [e["arguments"] for e in events if e["type"] == f"{kind}.done"] == [
            '{"query":"Hello there"}'
        ]
        body = events[-1]["response"]
    else:
        body = answer.json()

    (call,) = body["output"]
    assert (call["type"], call["name"], call["status"]) == ("function_call", "search", "completed")
    assert (body["status"], body["tools"][0]["name"]) == ("completed", "search")
    more = {"previous_response_id": body["id"], "tools": [SEARCH], "input": [result(call)]}
    again = respond(web, "tool-user", more, alice).json()
    assert text_of(again) == "The tool answered: three cats"
    history = [{"role": "user", "content": "Hello there"}, call, result(call, "two dogs")]
    other = respond(web, "tool-user", {"tools": [SEARCH], "input": history}, alice).json()
    assert text_of(other) == "The tool answered: two dogs"


def test_what_the_servers_tools_said_stays_in_the_conversation(
    web: httpx.Client, alice: Person, settings: Any
) -> None:
    tool = "tests.sessions_app.billing.test_token_payments.weigh"
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, tool]
    mixed = call_chunks(
        ("a", "weigh", '{"query": "words"}'), ("b", "search", "{}"), text="Let me look."
    )
    with model_server(mixed, text_chunks("Sunny")) as model:
        model.agent(tools=["weigh"])
        first = respond(web, "model", {"tools": [SEARCH]}, alice).json()
        message, call = first["output"]
        assert (message["content"][0]["text"], call["name"]) == ("Let me look.", "search")
        more = {"previous_response_id": first["id"], "input": [result(call, "rain")]}
        again = respond(web, "model", {"tools": [SEARCH], **more}, alice).json()

        assert text_of(again) == "Sunny"
        _, reported, *results = model.last["messages"]
    names = {
        reported_call["id"]: reported_call["function"]["name"]
        for reported_call in reported["tool_calls"]
    }
    results_by_name = {
        names[tool_result["tool_call_id"]]: tool_result["content"] for tool_result in results
    }
    assert results_by_name == {"weigh": "5 grams", "search": "rain"}


def test_items_of_all_kinds_reach_the_model(web: httpx.Client, alice: Person) -> None:
    document = {"type": "input_file", "file_data": "aGk=", "filename": "a.txt"}
    items = [
        {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
        {"role": "user", "content": "First"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "refusal", "refusal": "No."}],
        },
        {"type": "function_call", "call_id": "c", "name": "search", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "c",
            "output": [{"type": "input_text", "text": "rain"}],
        },
        {"role": "user", "content": [{"type": "input_text", "text": "Look"}, PICTURE, document]},
    ]
    with model_server(text_chunks("A dot")) as model:
        model.agent()
        answer = respond(web, "model", {"input": items, "tools": [SEARCH]}, alice)

        assert answer.status_code == 200, answer.text
        messages = model.last["messages"]
    assert "Be brief." in messages[0]["content"]
    assert [message["role"] for message in messages[1:]] == ["user", "assistant", "tool", "user"]
    assert (messages[2]["content"], messages[2]["tool_calls"][0]["id"]) == ("No.", "c")
    assert messages[3]["content"] == "rain"
    assert PIXEL in json.dumps(messages[-1])


@pytest.mark.usefixtures("celery_worker_thread")
def test_pictures_of_an_answer_are_links_that_the_client_may_read(
    web: httpx.Client, alice: Person
) -> None:
    content = [{"type": "input_text", "text": "make it black and white"}, PICTURE]
    body = {"input": [{"role": "user", "content": content}]}

    response = respond(web, "studio", body, alice).json()

    url = text_of(response).partition("](")[2].partition(")")[0]
    assert web.get(url).headers["Content-Type"] == "image/png"
    (question,) = read(web, f"{response['id']}/input_items", alice).json()["data"]
    file = web.get(question["content"][1]["image_url"])
    assert (file.status_code, file.headers["Content-Type"]) == (200, "image/png")


def test_a_failure_is_an_error_an_event_and_a_state(web: httpx.Client, alice: Person) -> None:
    refused = respond(web, "fail", {}, alice)
    events = events_of(respond(web, "fail", {"stream": True}, alice))

    assert (refused.status_code, refused.json()["error"]["code"]) == (502, "provider_error")
    last = events[-1]
    assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
    assert last["response"]["error"]["code"] == "server_error"
    stored = read(web, last["response"]["id"], alice).json()
    assert stored == last["response"]


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_was_cut_is_incomplete(web: httpx.Client, *, stream: bool) -> None:
    with model_server(text_chunks("A long", finish="length")) as model:
        model.agent()
        answer = respond(web, "model", {"stream": stream})

    last = events_of(answer)[-1] if stream else {"response": answer.json()}
    assert last["response"]["status"] == "incomplete"
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert last.get("type") in {None, "response.incomplete"}


def test_a_request_may_join_a_chat_and_is_seen_there(
    web: httpx.Client, dial: Dial, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob)
    reader = dial(bob)
    reader.create_session(chat=chat.pk)

    answer = respond(web, "echo", {"conversation": {"id": chat.pk}}, alice).json()

    assert (text_of(answer), answer["conversation"]) == ("Hello there", {"id": chat.pk})
    frames = reader.until("response.done")
    created = next(frame for frame in frames if frame["type"] == "message.created")
    assert created["message"]["content"] == "Hello there"
    assert read(web, answer["id"], alice).json() == answer
    more = respond(web, "echo", {"previous_response_id": answer["id"]}, alice)
    assert (more.status_code, more.json()["error"]["param"]) == (400, "previous_response_id")
    hidden = {"conversation": chat.pk, "store": False}
    for _ in range(2):
        assert text_of(respond(web, "echo", hidden, alice).json()) == "Hello there"
    assert Session.objects.filter(transport="responses").count() == 2


@pytest.mark.parametrize("prefix", ["/agents/echo", ""])
@pytest.mark.parametrize("path", ["/responses", "/v1/responses/"])
def test_every_path_answers_with_and_without_a_slash(
    web: httpx.Client, prefix: str, path: str
) -> None:
    response = web.post(prefix + path, json={"input": "Hello there", "model": "echo"}).json()

    assert text_of(response) == "Hello there"
    assert web.get(f"{prefix}{path.rstrip('/')}/{response['id']}").json() == response


def test_a_price_is_a_402_before_anything_runs(web: httpx.Client) -> None:
    for more in ({}, {"stream": True}, {"background": True}):
        answer = respond(web, "paid-echo", more)

        assert (answer.status_code, answer.json()["error"]) == (402, "Payment required")
        assert answer.headers["PAYMENT-REQUIRED"]
    assert not Response.objects.exists()


def test_the_tokens_of_a_file_are_counted_only_for_who_may_read_it(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    pages = b"%PDF-1.7\n" + b"1 0 obj <</Type /Page>> endobj\n" * 40
    stored = web.post(
        "/api/v1/contents",
        files={"file": ("a.pdf", pages, "application/pdf")},
        headers=alice.headers,
    ).json()["content_id"]

    def count(who: Person, file: str) -> int:
        parts = [{"type": "input_file", "file_id": file}, {"type": "input_text", "text": "Read it"}]
        conversation = [
            {"role": "user", "content": parts},
            {"role": "assistant", "content": "Done"},
            {"role": "user", "content": "Thanks"},
        ]
        answer = web.post(
            "/v1/responses/input_tokens",
            json={"model": "echo", "input": conversation},
            headers=who.headers,
        )
        tokens: int = answer.raise_for_status().json()["input_tokens"]
        return tokens

    unknown = str(uuid.uuid4())
    assert count(alice, stored) > count(alice, unknown) + 5000
    assert count(bob, stored) == count(bob, unknown)


def test_the_tokens_of_an_input_are_counted_without_asking_the_agent(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    first = respond(web, "echo", {"input": "x" * 400}, alice).json()["id"]
    response_count = Response.objects.count()

    def count(who: Person = alice, **body: Any) -> httpx.Response:
        request = {"input": "Hello there", "model": "echo", **body}
        return web.post("/v1/responses/input_tokens", json=request, headers=who.headers)

    plain = count().json()
    assert plain["object"] == "response.input_tokens"
    assert count(instructions="x" * 400).json()["input_tokens"] == plain["input_tokens"] + 100
    # The conversation before it, which is the question and its echo.
    after = count(previous_response_id=first).json()["input_tokens"]
    assert after == plain["input_tokens"] + 200
    for refused in (
        count(bob, previous_response_id=first),
        count(conversation="chat_1"),
        count(model="missing"),
    ):
        assert refused.status_code in {400, 404}
        assert refused.json()["error"]["code"]
    assert Response.objects.count() == response_count
