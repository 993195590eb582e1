"""Messages over REST: who may send them, their limits, and their answers."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.models import Agent
from chat_app.models import Message, Participant
from sessions_app.models import Response, Session
from tests.client import open_stream, output_text, text_of
from tests.live_server import shared_chat
from tests.sessions_app.access.scoped_keys import key_of
from tests.sessions_app.rest_turns.programs import SSE, Program

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Dial, Person


def test_a_message_is_sent_once_and_seen_live(
    web: httpx.Client, dial: Dial, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob)
    path = f"chats/{chat.pk}/messages"
    bobs = dial(bob)
    bobs.create_session(chat=chat.pk)
    program = Program(web, alice)
    with open_stream(
        web, "GET", f"/api/v1/chats/{chat.pk}/events", headers={**alice.headers, **SSE}
    ) as tail:
        assert "RateLimit-Remaining" in tail.response.headers
        turn = program.call(
            "POST", path, {"content": "@echo one two"}, status=201, Idempotency_Key="a"
        )
        streamed = tail.until("response.done")
    message, (response,) = turn["message"], turn["responses"]
    assert (message["content"], message["name"], message["transport"]) == (
        "@echo one two",
        "alice",
        "rest",
    )
    assert (response["agent"], response["question_id"], turn["queued"]) == (
        "echo",
        message["id"],
        False,
    )
    frames = [event.data for event in streamed]
    assert text_of(frames, response["id"]) == "one two"
    created = next(frame for frame in frames if frame["type"] == "message.created")
    assert created["message"]["id"] == message["id"]
    assert output_text(bobs.until("response.done")[-1]) == "one two"
    # The same request again changes nothing; another body under its key is refused.
    done = program.ended(response["id"])
    assert (done["status"], done["text"]) == ("completed", "one two")
    again = program.call(
        "POST", path, {"content": "@echo one two"}, status=201, Idempotency_Key="a"
    )
    assert (again["message"]["id"], again["responses"]) == (message["id"], [done])
    problem = program.call("POST", path, {"content": "other"}, status=409, Idempotency_Key="a")
    assert problem["code"] == "idempotency_conflict"
    assert problem["detail"] == "Use a new Idempotency-Key."
    # A retry may wait for another time, or not at all.
    waited = program.call(
        "POST", path, {"content": "@echo one two", "wait": 5}, status=201, Idempotency_Key="a"
    )
    assert waited["message"]["id"] == message["id"]
    # A message that addresses no agent starts none. It is one more session of no one.
    quiet = program.call("POST", path, {"content": "hello all"}, status=201)
    assert quiet["responses"] == []
    assert Session.objects.filter(transport="rest").count() == 1
    # The stream goes on where it was left.
    last = [event.id for event in streamed if event.id][-1]
    with open_stream(
        web,
        "GET",
        f"/api/v1/chats/{chat.pk}/events",
        headers={**alice.headers, **SSE, "Last-Event-ID": last},
    ) as tail:
        missed = tail.until("message.created")
        while missed[-1].data["message"]["id"] != quiet["message"]["id"]:
            missed += tail.until("message.created")
    seqs = [int(event.id.partition(":")[2]) for event in missed if event.id]
    assert seqs == list(range(int(last.partition(":")[2]) + 1, seqs[-1] + 1))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", ["nonsense", ":5", "{epoch}", "{epoch}:abc", "{epoch}:-1"])
def test_a_stream_after_an_invalid_place_says_that_it_cannot_resume(
    web: httpx.Client, alice: Person, place: str
) -> None:
    chat = shared_chat(alice)
    headers = {**alice.headers, **SSE, "Last-Event-ID": place.format(epoch=chat.epoch)}
    with open_stream(web, "GET", f"/api/v1/chats/{chat.pk}/events", headers=headers) as tail:
        assert tail.until("session.error")[-1].data["error"]["code"] == "resync"


@pytest.mark.parametrize(
    ("more", "accept"), [({"wait": 60}, "application/json"), ({}, "text/event-stream")]
)
def test_only_who_may_read_waits_for_an_answer(
    web: httpx.Client, alice: Person, more: dict[str, int], accept: str
) -> None:
    chat = shared_chat(alice, agents=("echo",))
    writer = key_of(alice, "messages:write")
    refused = web.post(
        f"/api/v1/chats/{chat.pk}/messages",
        json={"content": "@echo hello", **more},
        headers={**writer.headers, "Accept": accept},
    )
    assert refused.status_code == 403
    assert refused.json()["code"] == "forbidden"
    assert not Response.objects.exists()
    assert not chat.messages.exists()


def test_a_request_waits_for_the_end_of_its_answers(web: httpx.Client, alice: Person) -> None:
    chat = shared_chat(alice, agents=("echo", "thinker", "slow"))
    program = Program(web, alice)
    path = f"chats/{chat.pk}/messages"
    body = {"content": "@echo one @thinker two", "wait": 60}
    turn = program.call("POST", path, body, status=201, Idempotency_Key="w")
    assert [response["status"] for response in turn["responses"]] == ["completed"] * 2
    assert all(response["text"] and response["message_id"] for response in turn["responses"])
    again = program.call("POST", path, body, status=201, Idempotency_Key="w")
    assert again["responses"] == turn["responses"]
    # No agent answers: there is nothing to wait for.
    assert program.call("POST", path, {**body, "content": "hi"}, status=201)["responses"] == []
    for wrong in (-1, 301, "x"):
        program.call("POST", path, {**body, "wait": wrong}, status=400)
    # An answer that takes longer goes on.
    (slow,) = program.call("POST", path, {"content": "@slow a", "wait": 1}, status=201)["responses"]
    assert slow["status"] == "in_progress"
    program.call("POST", f"responses/{slow['id']}/cancel", status=202)
    program.ended(slow["id"])
    second_turn = program.call(
        "POST", "responses", {"agent": "echo", "content": "hi", "wait": 60}, status=201
    )
    (answer,) = second_turn["responses"]
    assert answer["text"] == "hi"
    retried = program.call("POST", f"responses/{answer['id']}/retry", {"wait": 60}, status=201)
    assert retried["responses"][0]["status"] == "completed"
    assert retried["responses"][0]["id"] != answer["id"]


def test_a_request_may_be_answered_with_the_events_of_its_turn(
    web: httpx.Client, alice: Person
) -> None:
    chat = shared_chat(alice, agents=("echo", "thinker"))
    path = f"/api/v1/chats/{chat.pk}/messages"
    headers = {**alice.headers, **SSE, "Idempotency-Key": "s"}
    body = {"content": "@echo one @thinker two"}
    first, again = (web.post(path, json=body, headers=headers) for _ in range(2))

    assert (first.status_code, first.headers["Content-Type"]) == (201, "text/event-stream")
    assert first.headers["Location"].startswith("/api/v1/messages/msg_")
    assert again.headers["Idempotency-Replayed"] == "true"
    ends = {}
    for answer in (first, again):
        lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
        assert lines.pop() == "[DONE]"
        frames = [json.loads(line) for line in lines]
        assert not {"session.created", "capabilities"} & {frame["type"] for frame in frames}
        ends[answer] = {
            frame["response_id"] for frame in frames if frame["type"] == "response.done"
        }
    assert len(ends[first]) == 2
    assert Message.objects.filter(chat=chat, role="user").count() == 1
    refused = web.post(path, json={"content": ""}, headers=headers)
    assert refused.headers["Content-Type"] == "application/problem+json"


def test_every_answer_has_its_limits_and_an_id(web: httpx.Client, alice: Person) -> None:
    chat = shared_chat(alice)
    path = f"/api/v1/chats/{chat.pk}"
    good, wrong = alice.headers, {"Authorization": "Bearer uak_00000000_wrong"}
    answers = [
        web.get(path, headers=good),
        web.get(path),
        web.get(path, headers=wrong),
        web.get("/api/v1/chats/missing", headers=good),
        web.get("/api/v1/missing", headers=good),
        web.put(path, headers=good),
        web.post("/api/v1/chats", content=b"{", headers=good),
        web.get("/api/schema"),
        web.post("/v1/chat/completions", json={}, headers=wrong),
    ]
    statuses = [answer.status_code for answer in answers]
    assert statuses == [200, 401, 401, 404, 404, 405, 415, 200, 401]
    for answer in answers:
        assert int(answer.headers["RateLimit-Remaining"]) >= 0, answer.url
        assert answer.headers["X-Request-ID"]
    head = web.head(path, headers=good)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["ETag"] == answers[0].headers["ETag"]
    same = web.get(path, headers={**good, "If-None-Match": head.headers["ETag"]})
    assert same.status_code == 304
    assert "RateLimit-Remaining" in same.headers


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/content"),
        ({"content": " \n"}, "/content"),
        ({"content": "a", "attachments": ["x"]}, "/attachments/0"),
        ({"content": "a", "attachments": [str(uuid.uuid4())]}, "/attachments/0"),
        ({"content": "a", "thread": "no"}, "/thread"),
        ({"content": "a", "role": "system"}, "/role"),
        ({"content": "a", "agents": ["echo"] * 51}, "/agents"),
    ],
)
def test_a_message_that_cannot_be_sent_is_refused(
    web: httpx.Client, alice: Person, body: Any, pointer: str
) -> None:
    chat = shared_chat(alice)
    problem = Program(web, alice).call("POST", f"chats/{chat.pk}/messages", body, status=400)
    assert [error["pointer"] for error in problem["errors"]] == [pointer]
    assert not Message.objects.exists()


def test_a_message_names_the_agents_that_answer(web: httpx.Client, alice: Person) -> None:
    chat = shared_chat(alice, agents=("echo", "slow", "thinker", "careful"))
    Agent.objects.filter(name="careful").update(is_public=False, owner=None)
    off = Participant.objects.get(chat=chat, agent__name="thinker").agent
    assert off is not None
    off.is_enabled = False
    off.save()
    program, path = Program(web, alice), f"chats/{chat.pk}/messages"
    slow = str(Participant.objects.get(chat=chat, agent__name="slow").agent_id)
    limited = Program(web, key_of(alice, agents=[slow]))
    for who, agents, code, status in (
        (program, ["echo", "absent"], "agent_not_found", 404),
        (program, ["thinker"], "agent_disabled", 404),
        (program, ["careful"], "forbidden", 403),
        (limited, ["Echo"], "forbidden", 403),
    ):
        body = {"content": "hello", "agents": agents, "queue": agents == ["thinker"]}
        assert who.call("POST", path, body, status=status)["code"] == code
    assert not Message.objects.exists()

    def answered_by(text: str, **fields: Any) -> list[str]:
        turn = program.call("POST", path, {"content": text, **fields}, status=201)
        assert turn["unanswered"] is None
        return [response["agent"] for response in turn["responses"]]

    assert answered_by("hello") == []
    assert answered_by("@echo hello", agents=[]) == []
    assert answered_by("@echo hello", agents=["SLOW"]) == ["slow"]
    echo = str(Participant.objects.get(chat=chat, agent__name="echo").agent_id)
    assert answered_by("hello", agents=["echo", echo]) == ["echo"]
    program.call("POST", "responses", {"agent": "echo", "content": "a", "agents": []}, status=400)
