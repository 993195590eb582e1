"""Requests over REST that are repeated, also at once."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

from django.utils import timezone

from chat_app.models import Chat, Message, Participant
from sessions_app.models import InboundEvent, ToolCall
from tests.client import wait_until
from tests.live_server import shared_chat
from tests.sessions_app.rest_turns.programs import SEARCH, Program
from tests.threads import join_threads

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person


def test_the_same_request_at_once_has_one_effect(web: httpx.Client, alice: Person) -> None:
    chat = shared_chat(alice)
    program = Program(web, alice)
    ids: list[str] = []

    def send() -> None:
        body = {"content": "@echo hi"}
        path = f"chats/{chat.pk}/messages"
        sent = program.call("POST", path, body, status=201, Idempotency_Key="once")
        ids.append(sent["message"]["id"])

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
    sent = program.call("POST", say, {"content": "@slow count"}, status=201)
    (response,) = sent["responses"]
    wait_until(lambda: bool(program.call("GET", f"responses/{response['id']}")["text"]))
    cancel = f"responses/{response['id']}/cancel"
    program.call("POST", cancel, status=202, Idempotency_Key="a")
    ended = program.ended(response["id"])
    again = program.call("POST", cancel, status=202, Idempotency_Key="a")
    assert again["text"] == ended["text"] != ""
    body = {"agent": "tool-user", "content": "find it", "chat": chat.pk}
    asked = {**body, "response": {"tools": [SEARCH], "client_tools": "wait"}}
    (other,) = program.call("POST", "responses", asked, status=201)["responses"]
    wait_until(ToolCall.objects.filter(response=other["id"]).exists)
    (call,) = program.call("GET", f"responses/{other['id']}/tool-calls")["data"]
    result = f"tool-calls/{call['id']}/result"
    found = {"result": json.dumps({"found": 3})}
    program.call("POST", result, found, Idempotency_Key="b")
    program.ended(other["id"])
    assert program.call("POST", result, found, Idempotency_Key="b")["result"] == found["result"]

    owner.call("DELETE", f"messages/{ended['message_id']}", status=204)
    again = program.call("POST", cancel, status=202, Idempotency_Key="a")
    assert (again["text"], again["output"]) == ("", [])
    Participant.objects.filter(chat=chat, user=bob.user).update(left_at=timezone.now())
    program.call("POST", cancel, status=404, Idempotency_Key="a")
    program.call("POST", result, found, status=404, Idempotency_Key="b")
