"""Requests over REST that are repeated, also at once."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

import httpx
from django.utils import timezone

from chat_app.models import Chat, Message, Participant
from sessions_app.models import InboundEvent, Session, ToolCall
from tests.client import wait_until
from tests.live_server import quick_agent, shared_chat
from tests.sessions_app.rest_turns.programs import SEARCH, SSE, Program
from tests.threads import join_threads

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.live_server import Person


def test_the_same_request_at_once_has_one_effect(web: httpx.Client, alice: Person) -> None:
    chat = shared_chat(alice)
    program = Program(web, alice)
    ids: list[str] = []

    def send() -> None:
        body = {"content": "@echo hi"}
        path = f"chats/{chat.pk}/messages"
        turn = program.call("POST", path, body, status=201, Idempotency_Key="once")
        ids.append(turn["message"]["id"])

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    join_threads(threads)
    assert len(ids) == 4
    assert len(set(ids)) == 1
    assert Message.objects.filter(chat=chat, role="user").count() == 1
    assert InboundEvent.objects.count() == 1


def test_the_same_post_at_once_has_one_effect(web: httpx.Client, alice: Person) -> None:
    statuses: list[int] = []

    def send() -> None:
        headers = {**alice.headers, "Idempotency-Key": "once"}
        answer = web.post("/api/v1/chats", json={"title": "Plans"}, headers=headers)
        statuses.append(answer.status_code)

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    join_threads(threads)
    assert set(statuses) <= {201, 409}
    assert 201 in statuses
    assert Chat.objects.filter(title="Plans").count() == 1


def test_a_repeated_write_shows_what_may_still_be_read(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob, agents=("slow", "tool-user"), trigger="mention")
    owner, program = Program(web, alice), Program(web, bob)
    say = f"chats/{chat.pk}/messages"
    turn = program.call("POST", say, {"content": "@slow count"}, status=201)
    (response,) = turn["responses"]
    wait_until(lambda: bool(program.call("GET", f"responses/{response['id']}")["text"]))
    cancel = f"responses/{response['id']}/cancel"
    program.call("POST", cancel, status=202, Idempotency_Key="a")
    ended = program.ended(response["id"])
    again = program.call("POST", cancel, status=202, Idempotency_Key="a")
    assert again["text"] == ended["text"] != ""
    body = {"agent": "tool-user", "content": "find it", "chat": chat.pk}
    request = {**body, "response": {"tools": [SEARCH], "client_tools": "wait"}}
    (other,) = program.call("POST", "responses", request, status=201)["responses"]
    wait_until(ToolCall.objects.filter(response=other["id"]).exists)
    (call,) = program.call("GET", f"responses/{other['id']}/tool-calls")["data"]
    result = f"tool-calls/{call['id']}/result"
    tool_result = {"result": json.dumps({"found": 3})}
    program.call("POST", result, tool_result, Idempotency_Key="b")
    program.ended(other["id"])
    assert (
        program.call("POST", result, tool_result, Idempotency_Key="b")["result"]
        == tool_result["result"]
    )

    owner.call("DELETE", f"messages/{ended['message_id']}", status=204)
    again = program.call("POST", cancel, status=202, Idempotency_Key="a")
    assert (again["text"], again["output"]) == ("", [])
    Participant.objects.filter(chat=chat, user=bob.user).update(left_at=timezone.now())
    program.call("POST", cancel, status=404, Idempotency_Key="a")
    program.call("POST", result, tool_result, status=404, Idempotency_Key="b")


def test_repeats_that_wait_are_open_connections(
    web: httpx.Client, alice: Person, settings: Settings
) -> None:
    settings.UAMP_CONNECTIONS_PER_USER = 2
    quick_agent("endless", "slow", words=2000)
    chat = shared_chat(alice, agents=("endless",), trigger="always")
    program, path = Program(web, alice), f"chats/{chat.pk}/messages"
    body, key = {"content": "talk"}, {"Idempotency_Key": "once"}
    turn = program.call("POST", path, body, status=201, **key)
    headers = {**alice.headers, **SSE, "Idempotency-Key": "once"}

    def wait(opened: ExitStack) -> int:
        client = opened.enter_context(httpx.Client(timeout=60, trust_env=False))
        address = f"{web.base_url}/api/v1/{path}"
        request = client.build_request("POST", address, json={**body, "wait": 300}, headers=headers)
        return client.send(request, stream=True).status_code

    with ExitStack() as opened:
        assert [wait(opened) for _ in range(3)] == [201, 201, 429]
        refused = program.call("POST", path, {**body, "wait": 300}, status=429, **key)
        assert refused["code"] == "rate_limit_exceeded"
        batch = [{"type": "ping", "session_id": Session.objects.get().wire_id}]
        assert web.post("/uamp", json=batch, headers=alice.headers).status_code == 429
        # A repeat that does not wait holds nothing.
        again = program.call("POST", path, body, status=201, **key)
        assert again["message"]["id"] == turn["message"]["id"]
    with ExitStack() as opened:
        # Those were closed, and have left room.
        wait_until(lambda: wait(opened) == httpx.codes.CREATED)
    program.call("POST", f"responses/{turn['responses'][0]['id']}/cancel", status=202)
