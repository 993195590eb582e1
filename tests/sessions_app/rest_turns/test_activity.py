"""The stream of what happens in all chats of a person."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from chat_app.models import Participant
from sessions_app.models import Session
from tests.client import EventStream, open_stream, wait_until
from tests.live_server import shared_chat
from tests.sessions_app.access.scoped_keys import key_of
from tests.sessions_app.rest_turns.programs import SSE, Program

if TYPE_CHECKING:
    import httpx
    from pytest_django import Settings

    from tests.live_server import Person

PATH = "/api/v1/chats"


def next_event(stream: EventStream) -> dict[str, Any]:
    """Return the next event of the stream."""
    data: dict[str, Any] = next(iter(stream)).data
    return data


def test_messages_of_all_chats_arrive_with_their_places(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    first, second = shared_chat(alice, bob), shared_chat(bob, alice)
    program = Program(web, alice)
    with open_stream(web, "GET", PATH, headers={**bob.headers, **SSE}) as stream:
        began = next_event(stream)
        for chat, text in ((first, "one"), (second, "@echo two")):
            program.call("POST", f"chats/{chat.pk}/messages", {"content": text}, status=201)
        events = [next_event(stream) for _ in range(3)]
    assert (began["type"], began["chats"]) == ("chats.watched", 2)
    assert {(event["type"], event["kind"]) for event in events} == {
        ("chat.activity", "message.created")
    }
    seen = [(event["chat_id"], event["message"]["role"]) for event in events]
    assert seen == [(first.pk, "user"), (second.pk, "user"), (second.pk, "assistant")]
    path = f"chats/{second.pk}/events?after={events[1]['at_seq'] - 1}"
    entry = Program(web, bob).call("GET", path)["data"][0]["payload"]
    assert entry["message"]["id"] == events[1]["message"]["id"]
    assert not Session.objects.filter(user=bob.user).exists()


def test_chats_come_and_go_while_the_stream_is_open(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    program = Program(web, alice)
    with open_stream(web, "GET", PATH, headers={**bob.headers, **SSE}) as stream:
        assert next_event(stream)["chats"] == 0
        chat = program.call("POST", "chats", {"title": "New", "users": ["bob"]}, status=201)
        added = next_event(stream)
        assert (added["subject"], added["chat_id"]) == ("chat_added", chat["id"])
        program.call("POST", f"chats/{chat['id']}/messages", {"content": "hello"}, status=201)
        assert next_event(stream)["message"]["content"] == "hello"
        member = Participant.objects.get(chat_id=chat["id"], user=bob.user)
        program.call("DELETE", f"chats/{chat['id']}/participants/{member.pk}", status=204)
        program.call("POST", f"chats/{chat['id']}/messages", {"content": "secret"}, status=201)
        other = shared_chat(alice, bob)
        program.call("POST", f"chats/{other.pk}/messages", {"content": "end"}, status=201)
        rest: list[dict[str, Any]] = []
        while not rest or rest[-1].get("message", {}).get("content") != "end":
            rest.append(next_event(stream))
    assert "secret" not in str(rest)
    assert ("chat_removed", chat["id"]) in [(e.get("subject"), e.get("chat_id")) for e in rest]


def test_the_stream_ends_with_its_credential(
    web: httpx.Client, alice: Person, settings: Settings
) -> None:
    settings.UAMP_CONNECTIONS_PER_USER = 1
    short = key_of(alice, "chats:read", expires_at=timezone.now() + timedelta(seconds=5))
    with open_stream(web, "GET", PATH, headers={**short.headers, **SSE}) as stream:
        assert next_event(stream)["type"] == "chats.watched"
        refused = web.get(PATH, headers={**alice.headers, **SSE})
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limit_exceeded")
        wait_until(lambda: web.get("/api/v1/me", headers=short.headers).status_code == 401)
        assert list(stream) == []


def test_only_people_with_all_their_chats_may_watch(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob)
    for narrow in (key_of(alice, chats=[chat.pk]), key_of(alice, "messages:write")):
        refused = web.get(PATH, headers={**narrow.headers, **SSE})
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert web.get(PATH, headers=SSE).status_code == 401
    batch = [{"type": "chats.watch"}]
    refused = web.post("/uamp", json=batch, headers=alice.headers)
    assert "GET /api/v1/chats" in refused.text
