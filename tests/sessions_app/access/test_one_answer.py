"""Missing and foreign objects get the same answer, on every route and event.

Each probe is sent twice by a stranger: with an id that exists for others and with one that no row
has. Status, headers and body are the same but for the ids that they were sent and those that are
new with every answer.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from websockets.exceptions import InvalidStatus

from tests import factories
from tests.sessions_app.access.known_ids import KnownIds, absent, known_ids, normal

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Dial

__all__ = ["known_ids"]

REST = [
    ("chat", "GET", "/api/v1/chats/ONE", None),
    ("chat", "PATCH", "/api/v1/chats/ONE", {"title": "mine"}),
    ("chat", "GET", "/api/v1/chats/ONE/participants", None),
    ("chat", "POST", "/api/v1/chats/ONE/participants", {"user": "alice"}),
    ("chat", "POST", "/api/v1/chats/ONE/participants", {"nonsense": 1}),
    ("chat", "GET", "/api/v1/chats/ONE/participants/1", None),
    ("chat", "DELETE", "/api/v1/chats/ONE/participants/1", None),
    ("chat", "PATCH", "/api/v1/chats/ONE/participants/1", {"role": "owner"}),
    ("chat", "PUT", "/api/v1/chats/ONE/mute", {"muted": True}),
    ("chat", "PUT", "/api/v1/chats/ONE/place", {"pinned": True}),
    ("chat", "GET", "/api/v1/chats/ONE/budgets", None),
    ("chat", "POST", "/api/v1/chats/ONE/forks", {"message_id": "msg_none"}),
    ("chat", "POST", "/api/v1/chats/ONE/forks", {"nonsense": 1}),
    ("chat", "GET", "/api/v1/chats/ONE/share-links", None),
    ("chat", "POST", "/api/v1/chats/ONE/share-links", {"title": "mine"}),
    ("chat", "DELETE", "/api/v1/chats/ONE/share-links/1", None),
    ("chat", "GET", "/api/v1/chats/ONE/invite-links", None),
    ("chat", "POST", "/api/v1/chats/ONE/invite-links", {"nonsense": 1}),
    ("chat", "DELETE", "/api/v1/chats/ONE/invite-links/1", None),
    ("chat", "GET", "/api/v1/chats/ONE/messages", None),
    ("chat", "GET", "/api/v1/chats/ONE/messages?around=1&render=html", None),
    ("chat", "GET", "/api/v1/chats/ONE/messages?around=999999", None),
    ("chat", "POST", "/api/v1/chats/ONE/messages", {"content": "mine"}),
    ("chat", "POST", "/api/v1/chats/ONE/messages", {"nonsense": 1}),
    ("chat", "GET", "/api/v1/chats/ONE/responses", None),
    ("chat", "GET", "/api/v1/chats/ONE/approvals", None),
    ("chat", "POST", "/api/v1/responses", {"agent": "echo", "chat": "ONE", "content": "a"}),
    ("agent", "POST", "/api/v1/responses", {"agent": "ONE", "content": "a"}),
    ("response", "GET", "/api/v1/responses/ONE", None),
    ("response", "POST", "/api/v1/responses/ONE/cancel", None),
    ("response", "POST", "/api/v1/responses/ONE/retry", {}),
    ("response", "POST", "/api/v1/responses/ONE/payment", {}),
    ("response", "GET", "/api/v1/responses/ONE/tool-calls", None),
    ("call row", "GET", "/api/v1/tool-calls/ONE", None),
    ("call row", "POST", "/api/v1/tool-calls/ONE/decision", {"approved": True}),
    ("call row", "POST", "/api/v1/tool-calls/ONE/result", {"result": "1"}),
    ("chat", "GET", "/api/v1/chats/ONE/events", None),
    ("chat", "GET", "/api/v1/chats/ONE/export?format=json", None),
    ("chat", "GET", "/api/v1/chats/ONE/checkpoint", None),
    ("chat", "GET", "/api/v1/chats/ONE/receipts", None),
    ("chat", "GET", "/api/v1/chats/ONE/payments", None),
    ("chat", "GET", "/api/v1/chats/ONE/pool", None),
    ("chat", "POST", "/api/v1/chats/ONE/pool", {"amount": "1"}),
    ("chat", "GET", "/api/v1/chats/ONE/pool/usage", None),
    ("chat", "GET", "/api/v1/sessions?chat=ONE", None),
    ("chat", "POST", "/api/v1/webhooks", {"chat": "ONE", "url": "https://example.org/"}),
    ("webhook", "GET", "/api/v1/webhooks/ONE", None),
    ("webhook", "PATCH", "/api/v1/webhooks/ONE", {"url": "https://example.org/"}),
    ("webhook", "PATCH", "/api/v1/webhooks/ONE", {"nonsense": 1}),
    ("webhook", "DELETE", "/api/v1/webhooks/ONE", None),
    ("webhook", "POST", "/api/v1/webhooks/ONE/rotate", {}),
    ("webhook", "POST", "/api/v1/webhooks/ONE/ping", None),
    ("webhook", "GET", "/api/v1/webhooks/ONE/deliveries", None),
    ("webhook", "GET", "/api/v1/webhooks/ONE/deliveries/1", None),
    ("webhook", "POST", "/api/v1/webhooks/ONE/deliveries/1/redeliver", None),
    ("participant", "GET", "/api/v1/chats/OWN/participants/ONE", None),
    ("participant", "DELETE", "/api/v1/chats/OWN/participants/ONE", None),
    ("message", "GET", "/api/v1/messages/ONE", None),
    ("message", "GET", "/api/v1/messages/ONE?render=html", None),
    ("message", "PATCH", "/api/v1/messages/ONE", {"content": "mine"}),
    ("message", "PATCH", "/api/v1/messages/ONE", {"nonsense": 1}),
    ("message", "DELETE", "/api/v1/messages/ONE", None),
    ("message", "GET", "/api/v1/messages/ONE/revisions", None),
    ("message", "GET", "/api/v1/messages/ONE/proof", None),
    ("message", "GET", "/api/v1/messages/ONE/versions", None),
    ("message", "GET", "/api/v1/messages/ONE/reactions", None),
    ("message", "PUT", "/api/v1/messages/ONE/reactions?emoji=%E2%9C%A8", None),
    ("message", "DELETE", "/api/v1/messages/ONE/reactions?emoji=%E2%9C%A8", None),
    ("message", "PUT", "/api/v1/messages/ONE/pin", None),
    ("message", "DELETE", "/api/v1/messages/ONE/pin", None),
    ("chat", "GET", "/api/v1/chats/ONE/pins", None),
    ("chat", "GET", "/api/v1/chats/ONE/call", None),
    ("chat", "GET", "/api/v1/search?q=in:ONE", None),
    ("agent", "GET", "/api/v1/search?q=agent:ONE", None),
    ("message", "GET", "/api/v1/chats/OWN/messages?around=ONE", None),
    ("content", "GET", "/api/v1/contents/ONE", None),
    ("content", "GET", "/api/content/ONE", None),
    ("content", "GET", "/api/content/ONE?signature=bad", None),
    ("content", "GET", "/api/content/ONE/preview", None),
    ("handle", "GET", "/api/v1/contents/ONE", None),
    ("handle", "GET", "/api/content/ONE", None),
    ("response", "GET", "/api/v1/chats/OWN/payments?responses=ONE", None),
    ("agent", "GET", "/agents/ONE/capabilities", None),
    ("agent", "GET", "/agents/ONE/models", None),
    ("agent", "GET", "/agents/ONE/info", None),
    ("agent", "POST", "/agents/ONE/uamp", [{"type": "session.create", "session": {}}]),
    ("agent", "POST", "/agents/ONE/events", {"type": "session.create", "session": {}}),
    ("agent", "POST", "/api/v1/chats", {"agents": ["ONE"]}),
    ("agent", "POST", "/api/v1/chats/OWN/participants", {"agent": "ONE"}),
    ("agent", "PUT", "/api/payments/approvals/ONE", {"up_to": "1"}),
    ("agent", "DELETE", "/api/payments/approvals/ONE", None),
    ("agent", "PUT", "/api/payments/limits",
     {"limits": [{"period": "day", "agent": "ONE", "amount": "1"}]}),
    ("token", "PUT", "/api/payments/limits",
     {"limits": [{"period": "day", "token": "ONE", "amount": "1"}]}),
    ("token", "GET", "/api/payments/tokens/ONE", None),
    ("token", "DELETE", "/api/payments/tokens/ONE", None),
    ("token", "GET", "/api/payments/tokens/ONE/tree", None),
    ("token", "POST", "/api/payments/tokens/ONE/topup", {"amount": "1"}),
    ("token", "POST", "/api/payments/tokens/ONE/revoke", {}),
    ("lock", "PATCH", "/api/payments/lock/ONE", {"amount": "1"}),
    ("lock", "POST", "/api/payments/settle", {"lockId": "ONE", "amount": "1"}),
    ("session", "GET", "/events/stream?session_id=ONE", None),
    ("session name", "GET", "/events/stream?session_id=ONE", None),
    ("session", "POST", "/uamp", [{"type": "session.end", "session_id": "ONE"}]),
    ("session", "POST", "/uamp",
     [{"type": "session.create", "session": {}, "resume": {"session_id": "ONE", "after": 0}}]),
    ("chat", "POST", "/uamp", [{"type": "session.create", "session": {}, "chat": "ONE"}]),
]  # fmt: skip


def filled(template: Any, row_id: str, known_ids: KnownIds) -> Any:
    text = json.dumps(template).replace("ONE", row_id).replace("OWN", known_ids.own_chat)
    return json.loads(text)


def test_rest_has_one_answer_for_foreign_and_absent(known_ids: KnownIds, web: httpx.Client) -> None:
    different = []
    for kind, method, path, body in REST:
        answers = []
        for number, row_id in enumerate(
            (known_ids.foreign[kind], absent(kind, known_ids.foreign[kind]))
        ):
            answer = web.request(
                method,
                path.replace("ONE", row_id).replace("OWN", known_ids.own_chat),
                json=None if body is None else filled(body, row_id, known_ids),
                headers={
                    **known_ids.mallory.headers,
                    "X-Request-ID": "one",
                    "Idempotency-Key": f"{path}-{number}",
                },
            )
            assert answer.status_code < 500, (path, answer.text)
            headers = {name.lower() for name in answer.headers}
            answers.append((answer.status_code, headers, normal(answer.text, row_id)))
        if answers[0] != answers[1]:
            different.append((method, path, answers))
    assert different == [], "\n".join(map(repr, different))


# The rest of each event of a session.
OF_A_SESSION: dict[str, dict[str, Any]] = {
    "session.update": {"session": {"instructions": "x"}},
    "session.end": {},
    "capabilities.query": {},
    "client.capabilities": {"capabilities": {}},
    "input.text": {"text": "x"},
    "input.audio": {"audio": "AAAA", "format": "pcm16"},
    "input.image": {"image": "AAAA"},
    "input.video": {"video": "AAAA"},
    "input.file": {"file": "AAAA", "filename": "a", "mime_type": "text/plain"},
    "input.typing": {"is_typing": True},
    "response.create": {},
    "response.cancel": {},
    "tool.result": {"call_id": "c", "result": "x"},
    "tool.approve": {"call_id": "c"},
    "payment.submit": {"payment": {"scheme": "balance"}},
    "voice.invite": {"call_id": "c"},
    "call.signal": {"call_id": "c", "to": "1"},
    "message.read": {"message_id": "m"},
    "message.edit": {"message_id": "m", "content": "x"},
    "message.delete": {"message_id": "m"},
    "message.pin": {"message_id": "m"},
    "chat.fork": {"message_id": "m"},
    "message.unpin": {"message_id": "m"},
    "reaction.add": {"message_id": "m", "emoji": "\N{PARTY POPPER}"},
    "reaction.remove": {"message_id": "m", "emoji": "\N{PARTY POPPER}"},
}
# Each event, with `ONE` where the id stands; those of a session are sent in mallory's own.
EVENTS: list[tuple[str, dict[str, Any]]] = [
    ("chat", {"type": "session.create", "chat": "ONE"}),
    ("chat", {"type": "session.create", "chat": "ONE", "agent": "echo"}),
    ("chat", {"type": "session.create", "chat": "ONE", "agent": "slow"}),
    ("chat", {"type": "session.create", "chat": "ONE", "agent": "hidden"}),
    ("chat", {"type": "session.create", "chat": "ONE", "agent": "no-such-agent"}),
    ("chat", {"type": "session.create", "chat": "ONE", "resume": {"session_id": "s", "after": 0}}),
    ("agent", {"type": "session.create", "agent": "ONE"}),
    ("session name", {"type": "session.create", "session": {"id": "ONE"}, "agent": "echo"}),
    ("session", {"type": "session.create", "session": {"id": "ONE"}, "agent": "echo"}),
    ("session name", {"type": "session.create", "resume": {"session_id": "ONE", "after": 0}}),
    ("session", {"type": "session.create", "resume": {"session_id": "ONE", "after": 0}}),
    *(
        ("session", {"type": type_, "session_id": "ONE", **fields})
        for type_, fields in OF_A_SESSION.items()
    ),
    ("agent", {"type": "capabilities.query", "model": "ONE", "session_id": "OWN"}),
    ("response", {"type": "response.cancel", "response_id": "ONE", "session_id": "OWN"}),
    ("call", {"type": "tool.result", "call_id": "ONE", "result": "x", "session_id": "OWN"}),
    ("call", {"type": "tool.approve", "call_id": "ONE", "session_id": "OWN"}),
    ("response",
     {"type": "tool.approve", "call_id": "c", "response_id": "ONE", "session_id": "OWN"}),
    ("response",
     {"type": "payment.submit", "payment": {"scheme": "balance"}, "response_id": "ONE",
      "session_id": "OWN"}),
    ("message", {"type": "message.read", "message_id": "ONE", "session_id": "OWN"}),
    ("message",
     {"type": "message.edit", "message_id": "ONE", "content": "x", "session_id": "OWN"}),
    ("message", {"type": "message.pin", "message_id": "ONE", "session_id": "OWN"}),
    ("message", {"type": "chat.fork", "message_id": "ONE", "session_id": "OWN"}),
    ("message",
     {"type": "reaction.add", "message_id": "ONE", "emoji": "\N{PARTY POPPER}",
      "session_id": "OWN"}),
    ("message", {"type": "message.delete", "message_id": "ONE", "session_id": "OWN"}),
    ("chat", {"type": "message.read", "message_id": "m", "chat_id": "ONE", "session_id": "OWN"}),
    ("chat", {"type": "chat.fork", "message_id": "m", "chat_id": "ONE", "session_id": "OWN"}),
    ("chat", {"type": "voice.invite", "call_id": "c", "chat_id": "ONE", "session_id": "OWN"}),
    ("chat", {"type": "call.signal", "call_id": "c", "to": "1",
              "chat_id": "ONE", "session_id": "OWN"}),
]  # fmt: skip


def test_events_have_one_answer_for_foreign_and_absent(known_ids: KnownIds, dial: Dial) -> None:
    different = []
    for kind, event in EVENTS:
        answers = []
        for row_id in (known_ids.foreign[kind], absent(kind, known_ids.foreign[kind])):
            client = dial(known_ids.mallory)
            resume = {"session_id": known_ids.own_session, "after": 0}
            client.send("session.create", session={}, resume=resume)
            client.until("session.created")
            client.settle()
            text = json.dumps({"session": {}, **event, "event_id": "same"})
            client.send_raw(text.replace("ONE", row_id).replace("OWN", known_ids.own_session))
            answers.append([normal(json.dumps(frame), row_id) for frame in client.settle()])
            client.close()
        if answers[0] != answers[1]:
            different.append((event, answers))
    assert different == [], "\n".join(map(repr, different))


MEDIA: list[tuple[str, dict[str, Any]]] = [
    ("content", {"type": "input.image", "image": {"url": "/api/content/ONE"}}),
    ("handle", {"type": "input.image", "image": {"url": "/api/content/ONE"}}),
    ("content", {"type": "input.image", "image": "/api/content/ONE"}),
    ("content", {"type": "input.image", "image": "PNG", "content_id": "ONE"}),
    ("handle", {"type": "input.image", "image": "PNG", "content_id": "ONE"}),
    ("handle",
     {"type": "input.file", "file": "QQ==", "filename": "a", "mime_type": "text/plain",
      "content_id": "ONE"}),
]  # fmt: skip


def test_media_have_one_answer_for_foreign_and_absent(known_ids: KnownIds, dial: Dial) -> None:
    picture = base64.b64encode(factories.png(3, 3)).decode()
    different = []
    for kind, event in MEDIA:
        answers = []
        for row_id in (known_ids.foreign[kind], absent(kind, known_ids.foreign[kind])):
            client = dial(known_ids.mallory)
            client.create_session(agent="echo")
            client.send_raw(
                json.dumps({**event, "event_id": "1"})
                .replace("ONE", row_id)
                .replace("PNG", picture)
            )
            client.send("input.text", text="x")
            client.send_raw(json.dumps({"type": "response.create", "event_id": "2"}))
            frames = client.until("session.error", "response.done")
            answers.append([normal(json.dumps(frame), row_id) for frame in frames])
        if answers[0] != answers[1]:
            different.append((event, answers))
    assert different == [], "\n".join(map(repr, different))


SOCKETS = [
    ("chat", "/chats/ONE/uamp", {}),
    ("chat", "/uamp", {"X-Chat-Id": "ONE"}),
    ("agent", "/agents/ONE/uamp", {}),
    ("agent", "/ONE/uamp", {}),
    ("agent", "/uamp", {"X-Agent-Id": "ONE"}),
]


@pytest.mark.parametrize("visitor", [False, True])
def test_sockets_have_one_answer_for_foreign_and_absent(
    known_ids: KnownIds, dial: Dial, *, visitor: bool
) -> None:
    for kind, path, headers in SOCKETS:
        answers: list[Any] = []
        for row_id in (known_ids.foreign[kind], absent(kind, known_ids.foreign[kind])):
            sent_headers = {name: value.replace("ONE", row_id) for name, value in headers.items()}
            try:
                client = dial(
                    None if visitor else known_ids.mallory,
                    path.replace("ONE", row_id),
                    headers=sent_headers,
                )
                client.send_raw('{"type": "session.create", "event_id": "1", "session": {}}')
                answers.append([normal(json.dumps(f), row_id) for f in client.settle()])
            except InvalidStatus as refused:
                answers.append(refused.response.status_code)
        assert answers[0] == answers[1], path
