"""Members over REST, and the people and agents that may become members (docs/rest.md)."""

from __future__ import annotations

import pytest

from chat_app.members import receipts
from chat_app.models import ChatEvent, Participant
from tests import factories
from tests.chat_app.rest.rest_caller import NO_PROFILE, check_problem, post, rows_written, signed_in

pytestmark = pytest.mark.django_db


# --- Members ---


def test_a_member_adds_people_and_agents() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    echo = factories.agent(trigger="mention")
    chat = factories.chat(ada)
    client, path = signed_in(ada), f"/api/v1/chats/{chat.pk}/participants"
    added = post(client, path, {"user": "bob"})
    assert added.status_code == 201
    member = Participant.objects.get(user=bob)
    assert added.json() == {
        "joined_at": member.joined_at.isoformat().replace("+00:00", "Z"),
        "participant_id": member.pk,
        "kind": "user",
        "id": str(bob.pk),
        "name": "bob",
        "role": "member",
        "online": False,
        **NO_PROFILE,
    }
    assert added["Location"] == f"{path}/{member.pk}"
    again = post(client, path, {"user": "bob"})
    assert (added.status_code, again.status_code, again.json()) == (201, 200, added.json())
    agent = post(client, path, {"agent": "ECHO", "trigger": "always"}).json()
    assert (agent["id"], agent["name"], agent["trigger"]) == (echo.pk, "echo", "always")
    assert [p["name"] for p in client.get(path).json()["data"]] == ["ada", "bob", "echo"]
    assert list(ChatEvent.objects.values_list("type", flat=True)) == ["participant.joined"] * 2


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"user": "bob", "agent": "echo"},
        {"user": "bob", "trigger": "always"},
        {"user": "missing"},
        {"agent": "missing"},
        {"agent": "echo", "trigger": "sometimes"},
        {"user": "bob", "role": "owner"},
    ],
)
def test_an_invalid_addition_is_refused(body: dict[str, str]) -> None:
    ada = factories.user("ada")
    factories.user("bob")
    factories.agent("echo")
    chat = factories.chat(ada)
    before = rows_written()
    response = post(signed_in(ada), f"/api/v1/chats/{chat.pk}/participants", body)
    check_problem(response, 400, "invalid")
    assert rows_written() == before


def test_a_stranger_adds_no_member() -> None:
    ada, eve = factories.user("ada"), factories.user("eve")
    chat = factories.chat(ada)
    before = rows_written()
    response = post(signed_in(eve), f"/api/v1/chats/{chat.pk}/participants", {"user": "eve"})
    check_problem(response, 404, "not_found")
    assert rows_written() == before


def test_an_owner_removes_a_member_and_a_member_only_themselves() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada, bob)
    owner, member = Participant.objects.order_by("pk")
    path = f"/api/v1/chats/{chat.pk}/participants"
    check_problem(signed_in(bob).delete(f"{path}/{owner.pk}"), 403, "forbidden")
    assert not Participant.objects.filter(left_at__isnull=False).exists()
    assert signed_in(ada).delete(f"{path}/{member.pk}").status_code == 204
    member.refresh_from_db()
    assert member.left_at is not None
    assert signed_in(bob).get(f"/api/v1/chats/{chat.pk}").status_code == 404


def test_receipts_say_how_far_members_have_read() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada, bob)
    message = factories.message(chat, ada)
    receipts.mark_read(chat_id=chat.pk, user_id=bob.pk, message_id=message.pk)
    (receipt,) = signed_in(ada).get(f"/api/v1/chats/{chat.pk}/receipts").json()["data"]
    receipt.pop("read_at")
    assert receipt == {
        "user_id": str(bob.pk),
        "username": "bob",
        "message_id": message.pk,
        "seq": 1,
    }


# --- People and agents ---


def test_people_are_found_by_the_beginning_of_their_name() -> None:
    ada = factories.user("ada")
    adele = factories.user("Adele")
    factories.user("bob")
    factories.user("adam", is_active=False)
    body = signed_in(ada).get("/api/v1/users?q=ad").json()
    assert body["data"] == [{"id": str(adele.pk), "username": "Adele", **NO_PROFILE}]


def test_agents_are_those_that_the_caller_may_use() -> None:
    ada = factories.user("ada")
    echo = factories.agent("echo", description="Repeats.")
    mine = factories.agent("mine", is_public=False, owner=ada)
    factories.agent("hidden", is_public=False)
    body = signed_in(ada).get("/api/v1/agents").json()
    assert body["data"] == [
        {"id": echo.pk, "name": "echo", "description": "Repeats.", "pricing": None},
        {"id": mine.pk, "name": "mine", "description": "", "pricing": None},
    ]
