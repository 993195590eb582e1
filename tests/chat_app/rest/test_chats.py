"""Chats over REST: made, listed with what is unread, and paged (docs/rest.md)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from chat_app.members import receipts
from chat_app.models import Chat
from chat_app.rest.overview import UNREAD_MAX, chats_data
from tests import factories
from tests.chat_app.rest.rest_caller import NO_PROFILE, check_problem, post, rows_written, signed_in

if TYPE_CHECKING:
    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db


def test_a_chat_is_created_with_people_and_agents() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    echo = factories.agent("Echo", trigger="always")
    body = {"title": " Pl\u202eans\u202c ", "users": ["bob", "ada", "bob"], "agents": ["echo"]}
    response = post(signed_in(ada), "/api/v1/chats", body)
    assert response.status_code == 201
    chat = Chat.objects.get()
    assert response["Location"] == f"/api/v1/chats/{chat.pk}"
    data = response.json()
    assert {k: data[k] for k in ("id", "title", "kind", "unread", "preview", "last_seq")} == {
        "id": chat.pk,
        "title": "Plans",
        "kind": "group",
        "unread": 0,
        "preview": None,
        "last_seq": 0,
    }
    assert [
        {k: v for k, v in p.items() if k not in {"participant_id", "joined_at"}}
        for p in data["participants"]
    ] == [
        {
            "kind": "user",
            "id": str(ada.pk),
            "name": "ada",
            "role": "owner",
            "online": False,
            **NO_PROFILE,
        },
        {
            "kind": "user",
            "id": str(bob.pk),
            "name": "bob",
            "role": "member",
            "online": False,
            **NO_PROFILE,
        },
        {
            "kind": "agent",
            "id": echo.pk,
            "name": "Echo",
            "role": "member",
            "online": True,
            "trigger": "always",
            "keywords": [],
            "context": "chat",
            "context_messages": None,
            "budget": None,
            "budget_period": None,
            "pricing": None,
            "takes_calls": False,
        },
    ]
    membership = {"role": "member", "rights": ["add_members", "quiet_agents"]}
    assert signed_in(bob).get(f"/api/v1/chats/{chat.pk}").json() == {**data, **membership}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"title": "x" * 201}, "/title"),
        ({"users": ["missing"]}, "/users"),
        ({"users": ["gone"]}, "/users"),
        ({"agents": ["private"]}, "/agents"),
        ({"agents": ["off"]}, "/agents"),
        ({"agents": [""]}, "/agents/0"),
        ({"colour": "red"}, "/colour"),
    ],
)
def test_a_chat_that_is_not_valid_is_not_created(body: dict[str, Any], pointer: str) -> None:
    ada = factories.user("ada")
    factories.user("gone", is_active=False)
    factories.agent("private", is_public=False, owner=factories.user("bob"))
    factories.agent("off", is_enabled=False)
    before = rows_written()
    problem = check_problem(post(signed_in(ada), "/api/v1/chats", body), 400, "invalid")
    assert [error["pointer"] for error in problem["errors"]] == [pointer]
    assert rows_written() == before


def test_a_title_may_have_200_characters() -> None:
    response = post(signed_in(factories.user()), "/api/v1/chats", {"title": "é" * 200})
    assert response.status_code == 201


def test_chats_are_listed_by_their_latest_event() -> None:
    ada = factories.user("ada")
    first, second = factories.chat(ada, title="first"), factories.chat(ada, title="second")
    factories.chat(factories.user("eve"), title="not mine")
    private = factories.chat(ada, kind="session")
    factories.message(first, ada)
    client = signed_in(ada)
    assert [c["id"] for c in client.get("/api/v1/chats").json()["data"]] == [first.pk, second.pk]
    listed = client.get("/api/v1/chats?kind=session").json()["data"]
    assert [(c["id"], c["kind"]) for c in listed] == [(private.pk, "session")]
    assert [c["id"] for c in client.get("/api/v1/chats?kind=all").json()["data"]] == [
        first.pk,
        private.pk,
        second.pk,
    ]


def test_unread_are_messages_of_others_behind_the_marker() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    echo = factories.agent()
    chat = factories.chat(ada, bob, echo)

    def unread(user: User) -> int:
        count: int = signed_in(user).get(f"/api/v1/chats/{chat.pk}").json()["unread"]
        return count

    factories.message(chat, ada)
    second = factories.message(chat, echo)
    factories.message(chat, bob)
    assert (unread(ada), unread(bob)) == (2, 2)
    receipts.mark_read(chat_id=chat.pk, user_id=ada.pk, message_id=second.pk)
    assert (unread(ada), unread(bob)) == (1, 2)


def test_unread_messages_are_counted_up_to_the_reported_last_seq() -> None:
    """A client counts on from there: one place less, and a message is counted twice."""
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada, bob)
    # Its row was read before the message was written, the numbers after it.
    message = factories.message(chat, ada, "meanwhile")
    (chat_data,) = chats_data([chat], bob.pk)
    assert chat.last_seq < message.seq
    assert (chat_data["unread"], chat_data["last_seq"]) == (1, message.seq)


def test_unread_stops_counting_at_its_limit() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada, bob)
    for _ in range(UNREAD_MAX + 1):
        factories.message(chat, bob)
    assert signed_in(ada).get("/api/v1/chats").json()["data"][0]["unread"] == UNREAD_MAX


def test_the_preview_is_the_beginning_of_the_last_message() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada, bob)
    factories.message(chat, bob, "old")
    factories.message(chat, bob, "n" * 300)
    factories.presence(bob)
    (data,) = signed_in(ada).get("/api/v1/chats").json()["data"]
    assert data["preview"] == {"name": "bob", "content": "n" * 200}
    assert [(p["name"], p["online"]) for p in data["participants"]] == [
        ("ada", False),
        ("bob", True),
    ]


def test_a_list_of_chats_is_paged_by_a_signed_cursor() -> None:
    ada = factories.user("ada")
    same_time = datetime(2026, 1, 1, tzinfo=UTC)
    chats = [factories.chat(ada) for _ in range(5)]
    Chat.objects.update(latest_at=same_time)  # equal times must neither repeat nor lose a chat
    client = signed_in(ada)
    seen, url, pages = [], "/api/v1/chats?limit=2", 0
    while url:
        response = client.get(url)
        body = response.json()
        seen += [c["id"] for c in body["data"]]
        assert (body["first_id"], body["last_id"]) == (seen[pages * 2], seen[-1])
        pages += 1
        assert body["has_more"] == ("Link" in response.headers) == (body["next_cursor"] is not None)
        url = response["Link"].partition("<")[2].partition(">")[0] if body["has_more"] else ""
    assert seen == sorted((c.pk for c in chats), reverse=True)
    assert pages == 3


def test_a_cursor_that_was_altered_or_belongs_elsewhere_is_refused() -> None:
    ada = factories.user("ada")
    first_chat, second_chat = factories.chat(ada), factories.chat(ada)
    for chat in (first_chat, second_chat):
        factories.message(chat, ada)
        factories.message(chat, ada)
    client = signed_in(ada)
    path = f"/api/v1/chats/{first_chat.pk}/messages"
    cursor = client.get(f"{path}?limit=1").json()["next_cursor"]
    assert client.get(f"{path}?limit=2&cursor={cursor}").status_code == 200
    altered = cursor[:-1] + ("a" if cursor[-1] != "a" else "b")
    for wrong in (
        f"{path}?limit=1&cursor={altered}",
        f"{path}?limit=1&order=asc&cursor={cursor}",
        f"/api/v1/chats/{second_chat.pk}/messages?limit=1&cursor={cursor}",
    ):
        check_problem(client.get(wrong), 400, "invalid_cursor")
