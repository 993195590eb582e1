"""The place of a chat in a person's own list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.live_server import Person, shared_chat

if TYPE_CHECKING:
    import httpx

    from chat_app.models import Chat

pytestmark = pytest.mark.django_db


@pytest.fixture
def chat(alice: Person, bob: Person) -> Chat:
    return shared_chat(alice, bob)


def test_a_chat_is_pinned_archived_and_marked_for_its_person_only(
    web: httpx.Client, alice: Person, bob: Person, chat: Chat
) -> None:
    path = f"/api/v1/chats/{chat.pk}"
    for name in ("pinned", "archived", "marked_unread"):
        answer = web.put(f"{path}/place", json={name: True}, headers=alice.headers)
        assert answer.json()[name] is True
        assert web.get(path, headers=alice.headers).json()[name] is True
        assert web.get(path, headers=bob.headers).json()[name] is False
        answer = web.put(f"{path}/place", json={name: False}, headers=alice.headers)
        assert answer.json()[name] is False


def test_an_archived_chat_is_back_with_its_next_message(
    web: httpx.Client, alice: Person, bob: Person, chat: Chat
) -> None:
    path = f"/api/v1/chats/{chat.pk}"
    assert web.put(f"{path}/place", json={"archived": True}, headers=alice.headers).is_success
    assert web.post(f"{path}/messages", json={"content": "news"}, headers=bob.headers).is_success
    assert web.get(path, headers=alice.headers).json()["archived"] is False


def test_other_fields_and_people_are_refused_and_change_nothing(
    web: httpx.Client, alice: Person, mallory: Person, chat: Chat
) -> None:
    path = f"/api/v1/chats/{chat.pk}/place"
    bodies: list[Any] = [{}, {"pinned": None}, {"pinned": True, "muted": True}, {"pinned": "very"}]
    for body in bodies:
        assert web.put(path, json=body, headers=alice.headers).status_code == 400, body
    assert web.put(path, json={"pinned": True}, headers=mallory.headers).status_code == 404
    assert not chat.participants.exclude(pinned_at=None).exists()
