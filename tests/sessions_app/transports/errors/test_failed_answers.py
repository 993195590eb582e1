"""Responses that fail after they have started."""

import json
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from agents_app.models import Agent, AgentKind
from chat_app.models import ChatEvent, Message
from sessions_app.models import Response
from tests import factories
from tests.client import TERMINAL, UampClient, text_of
from tests.live_server import counted_rows, quick_agent
from tests.sessions_app.billing.paid_agents import pay, rich, wallet
from tests.sessions_app.model_server import model_server, text_chunks
from tests.sessions_app.transports.errors.model_provider import (
    PROVIDER_FAILURES,
    model_agent,
    provider_that_answers,
)
from tests.sessions_app.transports.errors.scenes import Scene
from uamp import ErrorCode


def test_unavailable_storage_is_reported_and_keeps_nothing(scene: Scene) -> None:
    before = counted_rows()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE sessions_app_inboundevent RENAME TO put_away")
        try:
            scene.client.ask("Hello")
            error = scene.client.expect("session.error")["error"]
        finally:
            cursor.execute("ALTER TABLE put_away RENAME TO sessions_app_inboundevent")
    assert error["code"] == "unavailable"
    assert error["details"]["retry_after"] == 5
    assert counted_rows() == before
    assert text_of(scene.client.answer("Hello again")) == "Hello again"


@pytest.mark.parametrize("code", PROVIDER_FAILURES)
def test_what_a_provider_refuses_has_its_code(
    code: ErrorCode, scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    status, name = PROVIDER_FAILURES[code]
    key = f"sk-secret{'0' * 20}"
    body = {"error": {"message": f"{key} at 10.0.0.1", "code": name, "type": name}}
    with provider_that_answers(status, json.dumps(body).encode()) as base_url:
        model_agent(base_url)
        session_id = scene.client.create_session(agent="model")["session_id"]
        error = assert_response_fails(scene.client, session_id)
    assert error["code"] == code
    assert "secret" not in json.dumps(error)
    # Operators read the provider's own words at the response that the line of the log names.
    response = Response.objects.get()
    cause = response.error_cause or ""
    assert f"(HTTP {status}, request req_at_the_provider): " in cause
    assert "10.0.0.1" in cause
    assert key not in cause
    assert f"response {response.pk}, agent model: " in caplog.text
    if code == ErrorCode.RATE_LIMIT_EXCEEDED:
        assert error["details"]["retry_after"] == 7


def test_operators_read_what_each_attempt_failed_with(scene: Scene) -> None:
    body = b'{"error": {"message": "upstream cluster eu-3 is down"}}'
    with provider_that_answers(503, body, retry_after="0") as base_url:
        model_agent(base_url)
        session_id = scene.client.create_session(agent="model")["session_id"]
        error = assert_response_fails(scene.client, session_id)
    assert "eu-3" not in json.dumps(error)
    last, *earlier = (Response.objects.get().error_cause or "").splitlines()
    words = "openai_compat PROVIDER_ERROR (HTTP 503, request req_at_the_provider): HTTP 503: "
    assert last == f"{words}upstream cluster eu-3 is down"
    assert earlier == [f"Attempt {number} failed: {last}" for number in (1, 2)]
    inferences: list[dict[str, Any]] = Response.objects.get().inferences or []
    (inference,) = inferences
    assert (inference["end"], inference["model"]) == ("failed", "m")
    attempt = {
        "code": "PROVIDER_ERROR",
        "status": 503,
        "request_id": "req_at_the_provider",
        "words": "HTTP 503: upstream cluster eu-3 is down",
    }
    assert inference["attempts"] == [attempt] * 3


def test_an_answer_that_is_filtered_after_it_began_keeps_its_text(scene: Scene) -> None:
    with model_server(text_chunks("Half an answer", "content_filter")) as model:
        model.agent()
        scene.client = scene.dial(scene.alice)
        scene.client.create_session(agent="model")
        scene.client.ask("Hello")
        frames = scene.client.until(*TERMINAL)
    failed = frames[-1]
    assert (failed["type"], failed["error"]["code"]) == ("response.error", "content_filtered")
    assert text_of(frames) == "Half an answer"
    assert (failed["usage"]["input_tokens"], failed["usage"]["output_tokens"]) == (7, 3)
    message = Message.objects.get(role="assistant")
    assert (message.status, message.content) == ("failed", "Half an answer")


def test_a_cancelled_answer_says_what_it_used(scene: Scene) -> None:
    quick_agent("counter", "slow")
    client = scene.dial(scene.alice)
    client.create_session(agent="counter")
    client.ask("Count")
    client.until("response.delta")
    client.send("response.cancel")
    cancelled = client.until("response.cancelled")[-1]
    assert cancelled["usage"]["output_tokens"] > 0


def assert_response_fails(client: UampClient, session_id: str) -> dict[str, Any]:
    """Ask, and return the error of the one terminal event; the row says the same."""
    client.ask("Hello", session_id=session_id)
    frames = client.until("response.error")
    created, failed = frames[0], frames[-1]
    assert created["type"] == "response.created"
    assert failed["response_id"] == created["response_id"]
    assert [f["type"] for f in client.settle()] == []
    response = Response.objects.get()
    error: dict[str, Any] = failed["error"]
    assert (response.pk, response.status) == (created["response_id"], "failed")
    assert response.error == error
    return error


def test_an_agent_whose_daemon_is_not_connected_is_offline(scene: Scene) -> None:
    Agent.objects.create(name="away", is_public=True, kind=AgentKind.CONNECTED)
    session_id = scene.client.create_session(agent="away")["session_id"]
    assert assert_response_fails(scene.client, session_id)["code"] == "agent_offline"


def test_an_answer_that_takes_too_long_ends(scene: Scene) -> None:
    quick_agent("counter", "slow")
    session_id = scene.client.create_session(agent="counter")["session_id"]
    scene.settings.UAMP_RESPONSE_SECONDS = 0.2
    error = assert_response_fails(scene.client, session_id)
    assert error["code"] == "timeout"
    # What was said until then is kept.
    message = Message.objects.get(role="assistant")
    assert message.status == "failed"
    assert message.content.startswith("word1 word2")


def test_an_answer_takes_no_longer_than_its_agent_may(scene: Scene) -> None:
    agent = quick_agent("counter", "slow")
    Agent.objects.filter(pk=agent.pk).update(max_seconds=1)
    session_id = scene.client.create_session(agent="counter")["session_id"]
    assert assert_response_fails(scene.client, session_id)["code"] == "timeout"
    assert Message.objects.get(role="assistant").content.startswith("word1 word2")


def test_an_agent_that_uses_all_its_steps_ends(scene: Scene) -> None:
    function = {"name": "search", "arguments": "{}"}
    calls = [{"index": 0, "id": "call_1", "type": "function", "function": function}]
    chunks = [
        {"id": "1", "choices": [{"index": 0, "delta": {"tool_calls": calls}}]},
        {"id": "1", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]
    stream = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    tool = {"type": "function", "function": {"name": "search"}}
    with provider_that_answers(200, stream.encode()) as base_url:
        model_agent(base_url, max_steps=2)
        client = scene.dial(scene.alice)
        client.create_session(agent="model", session={"tools": [tool]})
        client.ask("Hello")
        client.expect("response.created")
        for _ in range(2):
            call = client.expect("tool.call")
            client.send("tool.result", call_id=call["call_id"], result="1")
        assert client.expect("response.error")["error"]["code"] == "too_many_steps"


def test_a_request_that_too_many_servers_passed_on_ends(scene: Scene, settings: Settings) -> None:
    url = "https://agents.example/v1"
    remote = factories.agent("far", kind="remote", url=url, protocol="completions", model="far")
    remote.pricing = {"per_answer": "0.25"}
    remote.is_public = True
    remote.save()
    rich(scene.alice)
    hops = {"X-UAMP-Hops": str(settings.UAMP_REMOTE_HOPS)}
    client = scene.dial(headers={**scene.alice.headers, **hops})
    client.create_session(agent="far")
    client.ask("Hello")
    pay(client, client.until("payment.required")[-1])
    assert client.until("response.error")[-1]["error"]["code"] == "too_many_hops"
    assert str(wallet(scene.alice).available) == "10", "a loop costs the asker nothing"


@pytest.mark.parametrize("agent", ["echo", "model"])
def test_an_answer_that_does_not_fit_its_schema_ends_in_an_error(scene: Scene, agent: str) -> None:
    chunk = {"id": "1", "choices": [{"delta": {"content": "Hello"}, "finish_reason": "stop"}]}
    stream = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    json_schema = {"name": "city", "schema": schema, "strict": True}
    with provider_that_answers(200, stream.encode()) as base_url:
        model_agent(base_url)
        session_id = scene.client.create_session(
            agent=agent,
            session={"response_format": {"type": "json_schema", "json_schema": json_schema}},
        )["session_id"]
        error = assert_response_fails(scene.client, session_id)
    assert error["code"] == "invalid_output"
    assert "does not match the response_format" in error["message"]
    # The text is kept.
    message = Message.objects.get(role="assistant")
    assert (message.status, message.content) == ("failed", "Hello")


def test_a_provider_that_fails_in_mid_answer_leaves_one_error_and_its_text(scene: Scene) -> None:
    session_id = scene.client.create_session(agent="fail")["session_id"]
    error = assert_response_fails(scene.client, session_id)
    assert error["code"] == "provider_error"
    message = Message.objects.get(role="assistant")
    assert message.status == "failed"
    assert message.content.startswith("This answer to 'Hello'")
    types = list(ChatEvent.objects.order_by("seq").values_list("type", flat=True))
    assert types == ["message.created", "response.created", "response.error", "message.created"]
