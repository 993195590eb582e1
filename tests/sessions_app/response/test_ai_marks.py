"""Answers are marked as made by AI in every form in which they leave the server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jwt
import pytest

from chat_app.contents import quota, reading_rights, storage
from chat_app.models import ChatEvent, Message
from sessions_app.tools.contents import chat_owner
from tests.client import wait_until
from tests.gateway_app.a2a.calls import call, send
from tests.live_server import quick_agent
from tests.sessions_app.webhooks.chat_webhooks import PATH
from tests.webhook_receiver import receiver
from uamp.digital_source import AI_HEADERS, AI_MADE

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Dial, Person
    from tests.webhook_receiver import Receiver

__all__ = ["receiver"]

DISCLOSURE = "AI-Disclosure"
SCHEMA = "https://schema.org/TrainedAlgorithmicMediaDigitalSource"


@pytest.fixture
def chat_id(dial: Dial, alice: Person) -> str:
    """Return a chat in which an agent has answered a person."""
    quick_agent("signer", "echo")
    client = dial(alice)
    client.create_session(agent="signer")
    client.answer("Hello")
    return Message.objects.all()[0].chat_id


def marks(messages: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    return [(message["sender_kind"], message.get("digital_source_type")) for message in messages]


MARKED = [("user", None), ("agent", AI_MADE)]


def test_the_mark_is_the_term_of_iptc() -> None:
    assert AI_MADE.startswith("http://cv.iptc.org/newscodes/digitalsourcetype/")
    assert dict(AI_HEADERS) == {DISCLOSURE: "mode=machine-generated"}


def test_events_and_their_signature_are_marked(chat_id: str) -> None:
    created = ChatEvent.objects.filter(chat_id=chat_id, type="message.created").order_by("seq")
    assert marks([entry.payload["message"] for entry in created]) == MARKED
    done = ChatEvent.objects.get(type="response.done").payload
    assert done["digital_source_type"] == AI_MADE
    claims = jwt.decode(done["signature"], options={"verify_signature": False})
    assert claims["digital_source_type"] == AI_MADE


def test_rest_and_exports_mark_messages(web: httpx.Client, alice: Person, chat_id: str) -> None:
    path = f"/api/v1/chats/{chat_id}"
    listed = web.get(f"{path}/messages", params={"order": "asc"}, headers=alice.headers).json()
    assert marks(listed["data"]) == MARKED
    export = web.get(f"{path}/export", params={"format": "json"}, headers=alice.headers).json()
    assert marks(export["messages"]) == MARKED
    lines = web.get(f"{path}/export", params={"format": "ndjson"}, headers=alice.headers).text
    records = [json.loads(line) for line in lines.splitlines()]
    assert marks([line for line in records if line["type"] == "message"]) == MARKED
    text = web.get(f"{path}/export", params={"format": "markdown"}, headers=alice.headers).text
    heads = [line for line in text.splitlines() if line.startswith("## ")]
    assert ["(made by AI, " in head for head in heads] == [False, True]


def test_a_shared_page_marks_answers(web: httpx.Client, alice: Person, chat_id: str) -> None:
    response = web.post(f"/api/v1/chats/{chat_id}/share-links", json={}, headers=alice.headers)
    page = web.get(response.json()["url"]).text
    question, answer = page.split("<article")[1:]
    assert SCHEMA not in question
    assert f'<link itemprop="digitalSourceType" href="{SCHEMA}">' in answer
    assert "itemscope" in answer.partition(">")[0]
    badge = '<span class="badge">agent</span>'
    assert (badge in question, badge in answer) == (False, True)
    page = web.get(response.json()["url"], params={"format": "json"}).json()["shared"]
    kinds = [(message["is_agent"], message["digital_source_type"]) for message in page["messages"]]
    assert kinds == [(False, None), (True, AI_MADE)]


def test_a_file_that_an_agent_made_is_marked(
    web: httpx.Client, alice: Person, chat_id: str
) -> None:
    mine = quota.ContentOwner(user_id=alice.user.pk)
    for owner, expected in ((chat_owner(chat_id), "mode=machine-generated"), (mine, None)):
        content = storage.store(b"a,b\n", filename="a.csv", mime_type="text/csv", owner=owner)
        reading_rights.use(chat_id, [str(content.pk)])
        answer = web.get(f"/api/content/{content.pk}", headers=alice.headers)
        assert (answer.status_code, answer.headers.get(DISCLOSURE)) == (200, expected)


def test_other_protocols_mark_answers(web: httpx.Client, alice: Person) -> None:
    quick_agent("signer", "echo")
    base, question = "/agents/signer", [{"role": "user", "content": "Hi"}]

    def posted(path: str, body: Any, **headers: str) -> httpx.Response:
        answer = web.post(f"{base}{path}", json=body, headers={**alice.headers, **headers})
        assert answer.status_code == 200, answer.text
        return answer

    completion_request = {"model": "signer", "messages": question}
    completion = posted("/chat/completions", {**completion_request, "stream": False})
    stream = posted("/chat/completions", {**completion_request, "stream": True})
    response = posted("/responses", {"model": "signer", "input": "Hi"})
    run = {"threadId": "t1", "runId": "r1", "messages": [{"id": "m1", **question[0]}]}
    ag_ui = posted("/agui", run)
    message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "Hi"}]}
    send = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    a2a = posted("/a2a", send, **{"A2A-Version": "1.0"})
    prompt = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "prompt/submit",
        "params": {"messages": question},
    }
    acp = posted("/acp", prompt)
    assert completion.json()["digital_source_type"] == AI_MADE
    assert completion.json()["signature"]
    last = stream.text.partition("event: response_signature\ndata: ")[2]
    assert json.loads(last)["digital_source_type"] == AI_MADE
    assert response.json()["digital_source_type"] == AI_MADE
    finished = json.loads(ag_ui.text.strip().rpartition("data: ")[2])
    assert finished["metadata"]["digitalSourceType"] == AI_MADE
    assert a2a.json()["result"]["task"]["metadata"]["digitalSourceType"] == AI_MADE
    assert acp.json()["result"]["_meta"]["digitalSourceType"] == AI_MADE
    messages = {"model": "signer", "max_tokens": 99, "messages": question}
    anthropic = posted("/v1/messages", messages, **{"anthropic-version": "2023-06-01"})
    assert anthropic.json()["digital_source_type"] == AI_MADE
    for answer in (completion, stream, response, ag_ui, a2a, acp, anthropic):
        assert answer.headers[DISCLOSURE] == "mode=machine-generated", answer.url


def test_batches_are_marked(web: httpx.Client, alice: Person) -> None:
    quick_agent("signer", "echo")
    events = [
        {"type": "session.create", "uamp_version": "1.0", "session": {"modalities": ["text"]}},
        {"type": "input.text", "text": "Hi"},
        {"type": "response.create"},
    ]
    answer = web.post("/agents/signer/uamp", json=events, headers=alice.headers)
    assert answer.headers[DISCLOSURE] == "mode=machine-generated"
    done = next(event for event in answer.json() if event["type"] == "response.done")
    assert done["digital_source_type"] == AI_MADE


@pytest.mark.parametrize("is_older", [False, True])
def test_webhooks_mark_answers(
    web: httpx.Client, alice: Person, chat_id: str, receiver: Receiver, *, is_older: bool
) -> None:
    if is_older:
        # As a server of an earlier release wrote them.
        for entry in ChatEvent.objects.filter(chat_id=chat_id):
            for body in (entry.payload, entry.payload.get("message") or {}):
                body.pop("digital_source_type", None)
            entry.save()
    types = ["message.created", "response.created", "response.done"]
    body = {"chat": chat_id, "url": receiver.url, "types": types, "after": 0}
    assert web.post(PATH, json=body, headers=alice.headers).status_code == 201
    wait_until(lambda: len(receiver.bodies) == 4)
    data = [(body["type"], body["data"]) for body in receiver.bodies]
    assert marks([event["message"] for kind, event in data if kind == types[0]]) == MARKED
    others = [(kind, event.get("digital_source_type")) for kind, event in data if kind != types[0]]
    assert others == [("response.created", None), ("response.done", AI_MADE)]


@pytest.mark.usefixtures("brisk")
def test_a_stopped_task_is_marked(web: httpx.Client, alice: Person) -> None:
    """It has no signature, because it was free; its artifacts are what the agent wrote."""
    now = {"returnImmediately": True}
    task_id = {"id": send(web, "slow", "Count", who=alice, configuration=now)["id"]}

    def task(method: str) -> dict[str, Any]:
        answer: dict[str, Any] = call(web, "slow", method, task_id, who=alice)["result"]
        return answer

    assert "metadata" not in send(web, "slow", "Count", who=alice, configuration=now)
    wait_until(lambda: bool(task("GetTask").get("artifacts")))
    assert task("CancelTask")["metadata"] == {"digitalSourceType": AI_MADE}
