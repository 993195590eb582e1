"""Chat Completions by HTTP: the first protocol that enters through the exchange."""

from typing import Any

import httpx
import pytest

from sessions_app.models import Response, Session
from tests.client import wait_until
from tests.conftest import ServerAddress
from tests.gateway_app.completions.requests import HELLO, chunks_of
from tests.live_server import Dial, Person, shared_chat

pytestmark = pytest.mark.any_database


def test_an_agent_answers_as_a_completion(web: httpx.Client, alice: Person) -> None:
    answer = web.post("/agents/echo/chat/completions", json=HELLO, headers=alice.headers)

    assert answer.status_code == 200
    body = answer.json()
    assert body["choices"][0]["message"] == {
        "role": "assistant",
        "content": "Hello there",
        "refusal": None,
    }
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["usage"]["total_tokens"] == 4
    session = Session.objects.get(pk=answer.headers["X-Session-Id"])
    assert session.transport == "completions"
    assert session.chat_id == answer.headers["X-Chat-Id"]


def test_a_stream_adds_up_to_the_same_answer(web: httpx.Client) -> None:
    body = {**HELLO, "model": "echo", "stream": True, "stream_options": {"include_usage": True}}

    chunks = chunks_of(web.post("/v1/chat/completions", json=body))

    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert "".join(delta.get("content", "") for delta in deltas) == "Hello there"
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["usage"]["completion_tokens"] == 2


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/agents/missing/chat/completions", HELLO, 404, "agent_not_found"),
        ("/agents/echo/chat/completions", {"messages": []}, 400, "invalid_event"),
        ("/agents/echo/chat/completions", {**HELLO, "temperature": 9}, 400, "invalid_event"),
        ("/agents/echo/chat/completions", {**HELLO, "conversation": "x"}, 404, "chat_not_found"),
    ],
)
def test_an_error_has_the_shape_of_openai(
    web: httpx.Client, alice: Person, path: str, body: dict[str, Any], status: int, code: str
) -> None:
    answer = web.post(path, json=body, headers=alice.headers)

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert answer.json()["error"]["type"].endswith("_error")


def test_a_price_is_a_402_before_anything_runs(web: httpx.Client) -> None:
    answer = web.post("/agents/paid-echo/chat/completions", json=HELLO)

    assert answer.status_code == 402
    assert answer.headers["PAYMENT-REQUIRED"]
    assert answer.json()["context"]["accepts"]
    assert not Response.objects.exists()


def test_a_call_may_join_a_chat_and_is_seen_there(
    web: httpx.Client, dial: Dial, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob)
    reader = dial(bob)
    reader.create_session(chat=chat.pk)

    answer = web.post(
        "/agents/echo/chat/completions",
        json={**HELLO, "conversation": chat.pk},
        headers=alice.headers,
    )

    assert answer.json()["choices"][0]["message"]["content"] == "Hello there"
    frames = reader.until("response.done")
    created = next(frame for frame in frames if frame["type"] == "message.created")
    assert created["message"]["content"] == "Hello there"
    assert frames[-1]["response"]["output"][0]["text"] == "Hello there"


def test_a_client_that_leaves_ends_its_own_answer(demo: ServerAddress, alice: Person) -> None:
    body = {**HELLO, "stream": True}
    with (
        httpx.Client(base_url=demo.http, timeout=15, trust_env=False) as client,
        client.stream(
            "POST", "/agents/slow/chat/completions", json=body, headers=alice.headers
        ) as stream,
    ):
        next(stream.iter_lines())

    wait_until(lambda: Response.objects.get().status == "cancelled")
