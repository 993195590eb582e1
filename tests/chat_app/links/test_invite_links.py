"""Invite links: who makes them, who joins by them and who does not, and their last use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from chat_app.links.invite_links import UsedUp, create_invite_link, join_by_link
from chat_app.members.participants import add_participant, remove_participant
from chat_app.models import ChatEvent, InviteLink, Participant, ParticipantRole
from tests import factories
from tests.threads import thread_pool

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from chat_app.models import Chat

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return factories.user("ada")


@pytest.fixture
def ben() -> User:
    return factories.user("ben")


@pytest.fixture
def chat(ada: User) -> Chat:
    return factories.chat(ada, title="Plans")


def browser(person: User | None = None) -> Client:
    client = Client()
    if person is not None:
        client.force_login(person)
    return client


def make_link(person: User, chat: Chat, **body: Any) -> dict[str, Any]:
    """Make a link over REST and return the answer."""
    path = f"/api/v1/chats/{chat.pk}/invite-links"
    answer = browser(person).post(path, body, content_type="application/json")
    assert answer.status_code == 201, answer.content
    data: dict[str, Any] = answer.json()
    data["path"] = data["url"].removeprefix("http://testserver")
    return data


def members(chat: Chat) -> set[tuple[str, str]]:
    """Return the names and roles of the people who are there."""
    rows = Participant.objects.filter(chat=chat, left_at__isnull=True, user__isnull=False)
    return set(rows.values_list("user__username", "role"))


def test_a_person_joins_by_the_button_of_the_page(chat: Chat, ada: User, ben: User) -> None:
    link = make_link(ada, chat)
    client = browser(ben)
    page = client.get(link["path"]).content.decode()
    assert "Plans" in page
    assert "<bdi>ada</bdi> invites you" in page
    assert "1 member" in page
    assert ">Join</button>" in page
    # Reading it joins nothing.
    assert members(chat) == {("ada", "owner")}
    answer = client.post(link["path"])
    assert (answer.status_code, answer["Location"]) == (302, f"/chats/{chat.pk}")
    assert members(chat) == {("ada", "owner"), ("ben", "member")}
    event = ChatEvent.objects.get(chat=chat, type="participant.joined")
    assert event.payload["by"]["name"] == event.payload["participant"]["name"] == "ben"
    assert InviteLink.objects.get().used_count == 1

    # A member uses up nothing, and keeps their role.
    assert "You are in this chat." in client.get(link["path"]).content.decode()
    assert client.post(link["path"]).status_code == 302
    assert browser(ada).post(link["path"]).status_code == 302
    assert InviteLink.objects.get().used_count == 1
    assert members(chat) == {("ada", "owner"), ("ben", "member")}


def test_a_page_of_another_site_lets_no_one_join(chat: Chat, ada: User, ben: User) -> None:
    link = make_link(ada, chat)
    client = Client(enforce_csrf_checks=True)
    client.force_login(ben)
    assert client.post(link["path"]).status_code == 403
    assert members(chat) == {("ada", "owner")}


def test_the_last_use_is_the_last(chat: Chat, ada: User, ben: User) -> None:
    cleo = factories.user("cleo")
    link = make_link(ada, chat, most_uses=1)
    assert browser(ben).post(link["path"]).status_code == 302
    answer = browser(cleo).post(link["path"])
    assert answer.status_code == 409
    assert "No more people can join with this link" in answer.content.decode()
    assert ">Join</button>" not in browser(cleo).get(link["path"]).content.decode()
    assert members(chat) == {("ada", "owner"), ("ben", "member")}


def test_a_removed_member_cannot_rejoin_by_the_link(chat: Chat, ada: User, ben: User) -> None:
    link = make_link(ada, chat)
    client = browser(ben)
    client.post(link["path"])
    member = Participant.objects.get(chat=chat, user=ben)
    remove_participant(chat_id=chat.pk, removed_by=ada, participant_id=member.pk)
    assert "Ask someone in the chat to add you" in client.get(link["path"]).content.decode()
    assert client.post(link["path"]).status_code == 403
    assert members(chat) == {("ada", "owner")}
    assert InviteLink.objects.get().used_count == 1
    # Of those who left before that was kept, it is not known whether they were removed.
    Participant.objects.filter(pk=member.pk).update(left_freely=None)
    assert client.post(link["path"]).status_code == 403

    # A member who adds them, forgives them; one who leaves may come back.
    add_participant(chat_id=chat.pk, added_by=ada, user=ben)
    remove_participant(chat_id=chat.pk, removed_by=ben, participant_id=member.pk)
    assert members(chat) == {("ada", "owner")}
    assert client.post(link["path"]).status_code == 302
    assert members(chat) == {("ada", "owner"), ("ben", "member")}


def test_a_role_is_given_by_those_who_may(chat: Chat, ada: User, ben: User) -> None:
    add_participant(chat_id=chat.pk, added_by=ada, user=ben)
    path = f"/api/v1/chats/{chat.pk}/invite-links"
    for role in ("admin", "owner"):
        answer = browser(ben).post(path, {"role": role}, content_type="application/json")
        assert answer.status_code == 403
    assert not InviteLink.objects.exists()
    make_link(ben, chat)
    cleo = factories.user("cleo")
    link = make_link(ada, chat, role="admin")
    assert "you'll join as an admin" in browser(cleo).get(link["path"]).content.decode()
    browser(cleo).post(link["path"])
    assert ("cleo", "admin") in members(chat)


def test_a_link_for_owners_ends_with_its_makers_right(chat: Chat, ada: User, ben: User) -> None:
    row = add_participant(chat_id=chat.pk, added_by=ada, user=ben)
    Participant.objects.filter(pk=row.pk).update(role=ParticipantRole.OWNER)
    link = make_link(ben, chat, role="owner")
    Participant.objects.filter(pk=row.pk).update(role=ParticipantRole.MEMBER)
    cleo = factories.user("cleo")
    assert browser(cleo).get(link["path"]).status_code == 404
    assert browser(cleo).post(link["path"]).status_code == 404
    assert ("cleo", "owner") not in members(chat)


@pytest.mark.parametrize("end", ["revoked", "expired", "unknown", "left"])
def test_a_link_that_ended_invites_no_one(chat: Chat, ada: User, ben: User, end: str) -> None:
    link = make_link(ada, chat)
    path = link["path"]
    match end:
        case "revoked":
            answer = browser(ada).delete(f"/api/v1/chats/{chat.pk}/invite-links/{link['id']}")
            assert answer.status_code == 204
        case "expired":
            InviteLink.objects.update(expires_at=timezone.now())
        case "unknown":
            path = f"{path}x"
        case "left":
            member = Participant.objects.get(chat=chat, user=ada)
            remove_participant(chat_id=chat.pk, removed_by=ada, participant_id=member.pk)
    for answer in (browser(ben).get(path), browser(ben).post(path)):
        assert answer.status_code == 404
        assert "This invitation is no longer valid" in answer.content.decode()
    assert "ben" not in {name for name, _ in members(chat)}


def test_a_maker_revokes_their_own_link_and_others_need_the_right(
    chat: Chat, ada: User, ben: User
) -> None:
    cleo = factories.user("cleo")
    for person in (ben, cleo):
        add_participant(chat_id=chat.pk, added_by=ada, user=person)
    link = make_link(ben, chat)
    path = f"/api/v1/chats/{chat.pk}/invite-links/{link['id']}"
    assert browser(cleo).delete(path).status_code == 403
    assert browser(factories.user("mallory")).delete(path).status_code == 404
    assert InviteLink.objects.get().revoked_at is None
    assert browser(ben).delete(path).status_code == 204
    (row,) = browser(cleo).get(path.rpartition("/")[0]).json()["data"]
    assert (row["state"], row["revoked_by"], row["created_by"]) == ("revoked", "ben", "ben")


@pytest.mark.django_db(transaction=True)
def test_two_people_race_for_the_last_use(ada: User, ben: User) -> None:
    chat = factories.chat(ada)
    people = [ben, *(factories.user(f"person{number}") for number in range(5))]
    _, secret = create_invite_link(chat_id=chat.pk, made_by=ada, most_uses=2)

    def attempt(person: User) -> bool:
        try:
            return join_by_link(secret, person) == chat.pk
        except UsedUp:
            return False
        finally:
            connection.close()

    with thread_pool(len(people)) as pool:
        joined = list(pool.map(attempt, people))
    assert sum(joined) == 2
    assert len(members(chat)) == 3
    assert InviteLink.objects.get().used_count == 2
