"""A request in a known session ends with its credential, like a connection that opens one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chat_app.models import Participant
from sessions_app.access import keys
from sessions_app.models import ApiKey, Response
from tests.client import wait_until
from tests.live_server import Person, shared_chat
from tests.sessions_app.access.scoped_keys import key_of
from tests.sessions_app.rest_turns.programs import SSE, Program
from tests.threads import thread_pool

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx


WORDS = "word6"
"""Of `@slow`, long after its answer has begun."""


def _of_a_chat(web: httpx.Client, carol: Person, chat_id: str) -> tuple[str, Any]:
    Program(web, carol).call("POST", f"chats/{chat_id}/messages", {"content": "hi"}, status=201)
    return f"/api/v1/chats/{chat_id}/messages", {"content": "@slow hello"}


def _of_an_agent(web: httpx.Client, carol: Person, chat_id: str) -> tuple[str, Any]:
    body = {"agent": "slow", "chat": chat_id, "content": "first"}
    (first,) = Program(web, carol).call("POST", "responses", body, status=201)["responses"]
    Program(web, carol).call("POST", f"responses/{first['id']}/cancel", status=202)
    Program(web, carol).ended(first["id"])
    return "/api/v1/responses", {**body, "content": "second"}


def _of_a_batch(web: httpx.Client, carol: Person, chat_id: str) -> tuple[str, Any]:
    create = {"type": "session.create", "event_id": "c", "uamp_version": "1.0", "session": {}}
    opened = web.post("/uamp", json=[{**create, "chat": chat_id}], headers=carol.headers).json()
    session_id = opened[0]["session_id"]
    says = {"type": "input.text", "event_id": "a", "text": "@slow hello"}
    asks = {"type": "response.create", "event_id": "b"}
    return "/uamp/stream", [{**event, "session_id": session_id} for event in (says, asks)]


@pytest.mark.parametrize("of", [_of_a_chat, _of_an_agent, _of_a_batch])
def test_a_stream_in_a_known_session_ends_with_the_secret_that_opened_it(
    web: httpx.Client, alice: Person, of: Callable[..., tuple[str, Any]]
) -> None:
    chat = shared_chat(alice, agents=("slow",))
    program = key_of(alice)
    path, body = of(web, program, chat.pk)
    with web.stream("POST", path, json=body, headers={**program.headers, **SSE}) as stream:
        lines = stream.iter_lines()
        while "response.delta" not in next(lines):
            pass
        keys.rotate_key(ApiKey.objects.get(name="narrow"), by=alice.user)
        rest = "\n".join(lines)
    # The answer goes on: another credential of the person reads it.
    assert "response.done" not in rest
    running = Response.objects.order_by("created_at").last()
    assert running is not None
    assert running.finished_at is None


def test_a_request_that_waits_ends_with_its_secret(web: httpx.Client, alice: Person) -> None:
    chat = shared_chat(alice, agents=("slow",))
    program = key_of(alice)
    path, body = _of_a_chat(web, program, chat.pk)
    with thread_pool(1) as pool:
        waits = pool.submit(web.post, path, json={**body, "wait": 60}, headers=program.headers)
        wait_until(lambda: Response.objects.filter(text__contains=WORDS).exists())
        keys.rotate_key(ApiKey.objects.get(name="narrow"), by=alice.user)
        answer = waits.result(60)
    assert answer.status_code == 201
    (response,) = answer.json()["responses"]
    assert (response["status"], WORDS in response["text"]) == ("in_progress", False)
    assert Response.objects.get(pk=response["id"]).finished_at is None


def test_a_request_that_waits_ends_when_its_person_leaves_the_chat(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob, agents=("slow",))
    path, body = _of_a_chat(web, bob, chat.pk)
    with thread_pool(1) as pool:
        waits = pool.submit(web.post, path, json={**body, "wait": 60}, headers=bob.headers)
        wait_until(lambda: Response.objects.filter(text__contains=WORDS).exists())
        member = Participant.objects.get(chat=chat, user=bob.user)
        left = f"/api/v1/chats/{chat.pk}/participants/{member.pk}"
        assert web.delete(left, headers=alice.headers).status_code == 204
        answer = waits.result(60)
    (response,) = answer.json()["responses"]
    assert (answer.status_code, WORDS in response["text"]) == (201, False)
