"""A message of a chat as frames of each protocol: whose, made by whom, and how much of it."""

import json
import shutil
import subprocess
from typing import Any

import httpx
import pytest
from django.utils import timezone

from chat_app.models import Chat, Message, Participant
from gateway_app.protocols.console import FRAMES_BYTES
from tests.client import wait_until
from tests.gateway_app.anthropic.requests import message_of
from tests.gateway_app.protocols.browsers import signed_in
from tests.live_server import Person, quick_agent, shared_chat

pytestmark = pytest.mark.any_database

PROTOCOLS = ["uamp", "completions", "responses", "anthropic", "ag-ui", "a2a", "acp"]
Frames = list[dict[str, Any]]


def ask(
    web: httpx.Client, who: Person, chat: Chat, text: str, agent: str
) -> tuple[Message, Message]:
    """Ask an agent in a chat; return the question and the answer."""
    body = {"messages": [{"role": "user", "content": text}]}
    headers = {**who.headers, "X-Chat-ID": chat.pk}
    web.post(f"/agents/{agent}/chat/completions", json=body, headers=headers)
    wait_until(lambda: Message.objects.filter(chat=chat, role="assistant").exists())
    question, answer = Message.objects.filter(chat=chat).order_by("-seq")[:2][::-1]
    return question, answer


def protocols_of(web: httpx.Client, message: Message, who: Person) -> dict[str, dict[str, Any]]:
    """Return a message in each protocol, by its key."""
    answer = web.get(f"/api/v1/messages/{message.pk}/frames", headers=who.headers)
    assert answer.status_code == 200, answer.text
    protocols = {protocol["key"]: protocol for protocol in answer.json()["protocols"]}
    assert list(protocols) == PROTOCOLS
    return protocols


def streamed(text: str) -> Frames:
    """Return the data of an event stream."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def test_an_answer_is_shown_as_each_protocol_sends_it(web: httpx.Client, alice: Person) -> None:
    chat = shared_chat(alice, agents=("thinker",))
    _, answer = ask(web, alice, chat, "@thinker hello", "thinker")
    frames_by_key = {
        key: protocol["frames"] for key, protocol in protocols_of(web, answer, alice).items()
    }

    types = [frame["type"] for frame in frames_by_key["uamp"]]
    assert types[0] == "response.created"
    assert types[-2:] == ["response.done", "message.created"]
    assert frames_by_key["uamp"][0]["transport"] == "completions"
    assert frames_by_key["uamp"][-1]["message"]["id"] == answer.pk
    text = "".join(
        frame["delta"]["text"]
        for frame in frames_by_key["uamp"]
        if frame["type"] == "response.delta"
    )
    assert text == answer.content

    *chunks, signed = frames_by_key["completions"]
    assert signed["signature"] == frames_by_key["uamp"][-2]["signature"]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("content", "") for delta in deltas) == answer.content
    assert "".join(delta.get("reasoning_content", "") for delta in deltas)
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"

    ends = frames_by_key["responses"][-1]
    assert ends["type"] == "response.completed"
    assert ends["response"]["output"][-1]["content"][0]["text"] == answer.content

    message = message_of(frames_by_key["anthropic"])
    assert [block["type"] for block in message["content"]] == ["thinking", "text"]
    assert message["content"][1]["text"] == answer.content

    assert (frames_by_key["ag-ui"][0]["type"], frames_by_key["ag-ui"][-1]["type"]) == (
        "RUN_STARTED",
        "RUN_FINISHED",
    )
    pieces = [
        event["delta"]
        for event in frames_by_key["ag-ui"]
        if event["type"] == "TEXT_MESSAGE_CONTENT"
    ]
    assert "".join(pieces) == answer.content

    results = [frame["result"] for frame in frames_by_key["a2a"]]
    assert results[0]["task"]["id"] == answer.response_id
    assert results[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"

    assert frames_by_key["acp"][-1]["result"]["stopReason"] == "end_turn"
    kinds = [f["params"]["update"]["sessionUpdate"] for f in frames_by_key["acp"] if "method" in f]
    assert kinds == ["agent_thought_chunk", "agent_message_chunk"]


def test_a_question_is_shown_as_a_client_sends_it_and_its_call_works(
    web: httpx.Client, alice: Person
) -> None:
    chat = shared_chat(alice)
    question, answer = ask(web, alice, chat, "@echo it's 5 o'clock", "echo")
    protocols = protocols_of(web, question, alice)

    assert protocols["completions"]["frames"][0]["messages"][0]["content"] == "@echo it's 5 o'clock"
    assert protocols["ag-ui"]["frames"][0]["messages"][0]["content"] == "@echo it's 5 o'clock"
    assert protocols["a2a"]["frames"][0]["method"] == "SendStreamingMessage"
    assert [frame["method"] for frame in protocols["acp"]["frames"]] == [
        "initialize",
        "session/new",
        "session/prompt",
    ]
    assert [frame["type"] for frame in protocols["uamp"]["frames"]] == [
        "session.create",
        "input.text",
        "response.create",
        "message.created",
    ]
    calls = {key: protocol["call"] for key, protocol in protocols.items()}
    assert [key for key, call in calls.items() if call["in_chat"]] == PROTOCOLS[:5]
    assert {
        key: protocol["call"] for key, protocol in protocols_of(web, answer, alice).items()
    } == calls
    assert alice.key not in json.dumps(protocols)

    bash = shutil.which("bash")
    if bash is None or shutil.which("curl") is None:
        pytest.skip("no bash or no curl")
    before = Message.objects.filter(chat=chat).count()
    for key in PROTOCOLS[:5]:
        done = subprocess.run(  # noqa: S603 our own code
            [bash, "-c", calls[key]["curl"]],
            env={"PATH": "/usr/bin:/bin", "KEY": alice.key, "no_proxy": "*"},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert streamed(done.stdout), key
    # It asks the same in the same chat.
    wait_until(lambda: Message.objects.filter(chat=chat).count() == before + 10)
    again = Message.objects.filter(chat=chat, role="user").values_list("content", flat=True)
    assert set(again) == {"@echo it's 5 o'clock"}


def test_frames_are_for_members(
    web: httpx.Client, alice: Person, bob: Person, mallory: Person
) -> None:
    chat = shared_chat(alice, bob)
    _, answer = ask(web, alice, chat, "@echo hello", "echo")
    path = f"/api/v1/messages/{answer.pk}/frames"

    assert protocols_of(web, answer, bob)
    assert web.get(path, headers=signed_in(bob)).status_code == 200
    for headers in ({}, mallory.headers, signed_in(mallory)):
        foreign = web.get(path, headers=headers)
        absent = web.get("/api/v1/messages/msg_0/frames", headers=headers)
        assert foreign.status_code == absent.status_code == 404
        assert foreign.json()["detail"] == absent.json()["detail"]
    assert web.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert web.post(path, headers=alice.headers).status_code == 405
    web.delete(f"/api/v1/messages/{answer.pk}", headers=alice.headers)
    assert "hello" not in json.dumps(protocols_of(web, answer, bob)["responses"]["frames"])
    Participant.objects.filter(chat=chat, user=bob.user).update(left_at=timezone.now())
    assert web.get(path, headers=bob.headers).status_code == 404


def test_another_member_sees_no_payment_and_no_session_of_the_person_who_asked(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob)
    _, answer = ask(web, alice, chat, "@echo hello", "echo")
    response = answer.chat.responses.get(pk=answer.response_id)
    text = json.dumps(protocols_of(web, answer, bob))

    assert response.session is not None
    assert response.session.wire_id not in text


def test_a_long_answer_is_cut(web: httpx.Client, alice: Person) -> None:
    quick_agent("long", "echo")
    chat = shared_chat(alice, agents=("long",))
    _, answer = ask(web, alice, chat, "@long " + "wörd " * 30_000, "long")

    for protocol in protocols_of(web, answer, alice).values():
        assert protocol["is_cut"]
        assert protocol["frames"]
        assert len(json.dumps(protocol["frames"], ensure_ascii=False).encode()) < FRAMES_BYTES * 1.2
