"""A credential with fewer rights keeps nothing that one with more had opened, and forks no chat."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import httpx
import pytest
from django.utils import timezone

from chat_app.models import Chat, ChatOrigin
from sessions_app.models import ApiKey
from tests.client import wait_until
from tests.live_server import shared_chat
from tests.sessions_app.access.scoped_keys import key_of, refusal

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.client import UampClient
    from tests.live_server import Dial, Person

WRITES = ("messages:write", "tools:approve")


@pytest.fixture(autouse=True)
def _often(settings: Settings) -> None:
    """Compare watched chats with their logs often; set before the server starts."""
    settings.UAMP_WATCH_SECONDS = 0.2


def receives_chats(client: UampClient) -> bool:
    """Return whether the client receives anything of a chat."""
    return any(frame["type"].split(".")[0] in {"message", "chat"} for frame in client.during(1.0))


def test_a_session_that_receives_a_chat_takes_no_token_that_may_not_read_it(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob)
    client = dial(key_of(alice, "chats:read", *WRITES))
    session_id = client.create_session(chat=chat.pk)["session_id"]
    for session in ({}, {"session_id": session_id}):
        client.send("session.update", token=key_of(alice, *WRITES).key, **session)
        error = refusal(client)
        assert (error["code"], error["details"]["scope"]) == ("forbidden", "chats:read")
    # It keeps the token that it had, and ends with it.
    client.send("session.update", token=key_of(alice, "chats:read").key)
    client.expect("session.updated")
    ApiKey.objects.filter(scopes=["chats:read"]).update(revoked_at=timezone.now())
    assert refusal(client)["code"] == "unauthorized"
    assert client.close_code() == 4401


def test_a_watch_over_all_chats_takes_no_token_that_may_not_read_them(
    dial: Dial, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob)
    client = dial(key_of(alice, "chats:read"))
    client.create_session(chat=chat.pk)
    client.send("chats.watch")
    client.until("chats.watched")
    client.send("session.update", token=key_of(alice, chats=[chat.pk]).key)
    assert refusal(client)["code"] == "forbidden"


def test_a_watch_says_nothing_once_its_token_has_expired(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    chat, other = shared_chat(alice, bob), shared_chat(alice)
    short = key_of(alice, "chats:read", expires_at=timezone.now() + timedelta(seconds=8))
    path = f"/api/v1/chats/{chat.pk}/messages"
    client = dial(short)
    client.create_session(chat=other.pk)
    client.send("chats.watch")
    client.until("chats.watched")
    web.post(path, json={"content": "before"}, headers=bob.headers)
    client.until("chat.activity")
    wait_until(lambda: web.get("/api/v1/me", headers=short.headers).status_code == 401)
    web.post(path, json={"content": "after"}, headers=bob.headers)
    assert not receives_chats(client)
    # What it missed it learns with the next token.
    client.send("session.update", token=key_of(alice, "chats:read").key)
    client.until("chat.activity")


def test_a_session_is_sent_nothing_of_its_chat_once_its_token_has_expired(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob)
    short = key_of(alice, "chats:read", expires_at=timezone.now() + timedelta(seconds=8))
    path = f"/api/v1/chats/{chat.pk}/messages"
    client = dial(short)
    session_id = client.create_session(chat=chat.pk)["session_id"]
    web.post(path, json={"content": "before"}, headers=bob.headers)
    client.until("message.created")
    wait_until(lambda: web.get("/api/v1/me", headers=short.headers).status_code == 401)
    texts = ["@echo after", "last"]
    for text in texts:
        web.post(path, json={"content": text}, headers=bob.headers)
    assert not {f["type"] for f in client.during(2.0)} - {"session.error"}
    # What it missed it is sent with the next token, in order.
    client.send("session.update", token=key_of(alice, "chats:read").key, session_id=session_id)
    seen: list[str] = []
    while not {*texts, "after"} <= set(seen):
        message = client.until("message.created")[-1]["message"]
        seen.append(message["content"])
    assert [text for text in seen if text in texts] == texts


def test_a_stream_says_nothing_once_its_key_has_expired(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob)
    short = key_of(alice, "chats:read", expires_at=timezone.now() + timedelta(seconds=8))
    path = f"/api/v1/chats/{chat.pk}"
    headers = {**short.headers, "Accept": "text/event-stream"}
    received: list[str] = []
    with web.stream("GET", f"{path}/events", headers=headers, timeout=3) as stream:
        lines = stream.iter_lines()
        web.post(f"{path}/messages", json={"content": "before"}, headers=bob.headers)
        for line in lines:
            received.append(line)
            if "before" in line:
                break
        wait_until(lambda: web.get("/api/v1/me", headers=short.headers).status_code == 401)
        web.post(f"{path}/messages", json={"content": "after"}, headers=bob.headers)
        with suppress(httpx.ReadTimeout):
            received.extend(lines)
    assert "before" in "".join(received)
    assert "after" not in "".join(received)


def test_a_key_for_certain_chats_forks_none(dial: Dial, web: httpx.Client, alice: Person) -> None:
    chat = shared_chat(alice)
    path = f"/api/v1/chats/{chat.pk}"
    turn = web.post(f"{path}/messages", json={"content": "hello"}, headers=alice.headers).json()
    message = {"message_id": turn["message"]["id"]}
    narrow, chats = key_of(alice, chats=[chat.pk]), Chat.objects.count()
    refused = web.post(f"{path}/forks", json=message, headers=narrow.headers)
    assert (refused.status_code, refused.json()["code"]) == (httpx.codes.FORBIDDEN, "forbidden")
    client = dial(narrow)
    client.create_session(chat=chat.pk)
    client.send("chat.fork", **message)
    assert refusal(client)["code"] == "forbidden"
    assert (Chat.objects.count(), ChatOrigin.objects.count()) == (chats, 0)
    assert web.post(f"{path}/forks", json=message, headers=alice.headers).status_code == 201
