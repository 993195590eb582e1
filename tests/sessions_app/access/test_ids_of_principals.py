"""Principals use the same ids without clashing, as do sessions from before that."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from chat_app.contents import media_types, quota, storage
from chat_app.models import Content
from sessions_app.access.auth import create_api_key
from sessions_app.models import Response
from tests import factories
from tests.live_server import Person, person, shared_chat
from tests.sessions_app.access.known_ids import HANDLE

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Dial


def test_principals_use_the_same_ids_without_meeting(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    """A session and a content are named by their principal: the same name is two things."""
    picture = base64.b64encode(factories.png()).decode()
    contents = {}
    for who in (alice, bob):
        client = dial(who)
        created = client.create_session(agent="echo", session={"id": "main"})
        assert created["session_id"] == "main"
        client.send("input.image", image=picture, content_id=HANDLE)
        frames = client.answer("Look")
        assert {frame["session_id"] for frame in frames} == {"main"}
        contents[who.user.pk] = Content.objects.get(owner=who.user)
        listed = web.get("/api/v1/sessions", headers=who.headers).json()["data"]
        assert [row["id"] for row in listed] == ["main"]
        # What the owner calls it leads the owner to it, everywhere.
        download = web.get(f"/api/content/{HANDLE}", headers=who.headers)
        assert download.content == factories.png()
    assert len({content.pk for content in contents.values()}) == 2
    again = dial(alice)
    again.send("session.create", session={"id": "main"})
    assert again.receive()["error"]["code"] == "session_exists"
    resumed = dial(alice)
    resumed.send("session.create", session={}, resume={"session_id": "main", "after": 0})
    assert resumed.receive()["session_id"] == "main"


def test_streams_of_one_name_receive_events_of_their_own_principal_only(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    for who in (alice, bob):
        event = {"type": "session.create", "session": {"id": "main"}, "agent": "echo"}
        answer = web.post("/events", json=event, headers=who.headers)
        assert answer.headers["X-Session-ID"] == "main", answer.text
    headers = {**bob.headers, "X-Session-ID": "main"}
    with web.stream("GET", "/events/stream", headers=headers) as stream:
        lines = stream.iter_lines()
        assert next(lines) == ": stream open"
        for who, text in ((alice, "alices secret"), (bob, "bobs own")):
            session_headers = {**who.headers, "X-Session-ID": "main"}
            events: tuple[dict[str, Any], ...] = (
                {"type": "session.update", "session": {"instructions": text}},
                {"type": "input.text", "text": text},
                {"type": "response.create"},
            )
            for event in events:
                assert web.post("/events", json=event, headers=session_headers).status_code == 202
        received = []
        for line in lines:
            received.append(line)
            if "response.done" in line:
                break
    assert "bobs own" in "".join(received)
    assert "alices secret" not in "".join(received)
    assert sum("session.updated" in line for line in received) == 1


def test_one_socket_has_a_session_of_a_name_once(dial: Dial, alice: Person, bob: Person) -> None:
    client = dial(alice)
    client.create_session(agent="echo", session={"id": "main"})
    key = create_api_key(bob.user, name="second")
    client.send("session.create", session={"id": "main"}, agent="echo", token=key)
    assert client.receive()["error"]["code"] == "session_exists"


def test_an_owner_uses_a_handle_for_one_content(alice: Person) -> None:
    owner = quota.ContentOwner(user_id=alice.user.pk)

    def store(data: bytes) -> Content:
        return storage.store(
            data, mime_type="text/plain", filename="a.txt", owner=owner, handle=HANDLE
        )

    first = store(b"one")
    assert store(b"one").pk == first.pk
    with pytest.raises(media_types.InvalidMedia):
        store(b"two")


def test_a_session_named_before_ids_were_scoped_can_be_resumed(dial: Dial, alice: Person) -> None:
    chat = shared_chat(alice)
    factories.session(alice.user, chat, id="of-old", chat_scoped=True)
    client = dial(alice)
    client.send("session.create", session={}, resume={"session_id": "of-old", "after": 0})
    assert client.receive()["session_id"] == "of-old"
    other = dial(person("carol"))
    assert other.create_session(agent="echo", session={"id": "of-old"})["session_id"] == "of-old"
    assert Response.objects.count() == 0
