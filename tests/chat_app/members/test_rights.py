"""Rights of each role to change a chat: over REST and over UAMP, and as the docs say."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from chat_app.members import participants
from chat_app.members.participants import LastOwner, change_role
from chat_app.members.rights import RIGHTS, NotAllowed, Right
from chat_app.models import Chat, ChatEvent, Participant
from tests import factories
from tests.chat_app.conversation.joining import joined
from tests.live_server import Dial, Person, person, shared_chat
from tests.threads import join_threads

if TYPE_CHECKING:
    import httpx

ROLES = ("owner", "admin", "member")
# For each right a change that needs it: of the chat, or of a member. A number is a member's place.
CHANGES: list[tuple[Right, dict[str, Any], str]] = [
    (Right.QUIET_AGENTS, {"agents_quiet": True}, ""),
    (Right.DESCRIBE, {"title": "Another"}, ""),
    (Right.DESCRIBE, {"description": "About us"}, ""),
    (Right.DESCRIBE, {"avatar": "\N{ROCKET}"}, ""),
    (Right.MANAGE_MONEY, {"payer": "pool"}, ""),
    (Right.MANAGE_MONEY, {"budget": "5"}, ""),
    (Right.RULE, {"only_owners_pin": True}, ""),
    (Right.RULE, {"agent_hops": 2}, ""),
    (Right.MANAGE_AGENTS, {"trigger": "never"}, "agent"),
    (Right.MANAGE_AGENTS, {"context": "last", "context_messages": 3}, "agent"),
    (Right.MANAGE_MONEY, {"budget": "0.50", "budget_period": "total"}, "agent"),
    (Right.CHANGE_ROLES, {"role": "admin"}, "other"),
    (Right.REMOVE_MEMBERS, {}, "other"),
    (Right.ADD_MEMBERS, {"user": "mallory"}, "new"),
    (Right.ADD_MEMBERS, {"agent": "slow"}, "new"),
]


def a_chat(role: str) -> tuple[Chat, Person, dict[str, int]]:
    """Return a chat with a member of a role, and the places of its agent and of another member."""
    owner, acting = person(f"owner-of-{role}"), person(f"the-{role}")
    other = person(f"other-of-{role}")
    chat = shared_chat(owner, acting, other, agents=("echo",))
    Participant.objects.filter(chat=chat, user=acting.user).update(role=role)
    rows = Participant.objects.filter(chat=chat)
    places = {
        "agent": rows.get(agent__isnull=False).pk,
        "other": rows.get(user=other.user).pk,
        "owner": rows.get(user=owner.user).pk,
    }
    return chat, acting, places


@pytest.mark.any_database
@pytest.mark.parametrize("role", ROLES)
def test_each_role_has_its_rights_over_rest_and_uamp(
    dial: Dial, web: httpx.Client, mallory: Person, role: str
) -> None:
    chat, acting, places = a_chat(role)
    client = joined(dial, acting, chat)
    path = f"/api/v1/chats/{chat.pk}"

    def over_rest(fields: dict[str, Any], what: str) -> int:
        match what:
            case "":
                answer = web.patch(path, json=fields, headers=acting.headers)
            case "new":
                answer = web.post(f"{path}/participants", json=fields, headers=acting.headers)
            case _:
                member_path = f"{path}/participants/{places[what]}"
                method = "PATCH" if fields else "DELETE"
                answer = web.request(
                    method, member_path, json=fields or None, headers=acting.headers
                )
        return answer.status_code

    def over_uamp(fields: dict[str, Any], what: str) -> str:
        match what:
            case "":
                name = "chat.update"
            case "new":
                name = "participant.add"
            case _:
                name = "participant.update" if fields else "participant.remove"
                fields = {**fields, "participant_id": places[what]}
        client.send(name, **fields)
        types = ("chat.updated", "participant.updated", "participant.joined", "participant.left")
        frame = client.until(*types, "session.error")[-1]
        return str(frame["error"]["code"] if "error" in frame else "")

    for right, fields, what in CHANGES:
        allowed = right in RIGHTS[role]
        before = ChatEvent.objects.filter(chat=chat).count()
        assert over_uamp(fields, what) == ("" if allowed else "forbidden"), (right, fields)
        assert ChatEvent.objects.filter(chat=chat).count() == before + allowed, (right, fields)
        # What is so already is no change: over REST it is set back first, or made once more.
        undo_change(chat)
        status = over_rest(fields, what)
        assert (status < 300) == allowed, (right, fields, status)
        assert allowed or status == 403, (right, fields, status)
        undo_change(chat)
        client.settle()


def undo_change(chat: Chat) -> None:
    """Set back what a change did, without the log."""
    Chat.objects.filter(pk=chat.pk).update(
        title="", description=None, avatar=None, payer="asker", payer_user=None, budget=None,
        budget_period=None, only_owners_pin=None, agents_quiet=None, agent_hops=None,
    )  # fmt: skip
    rows = Participant.objects.filter(chat=chat)
    rows.filter(agent__isnull=False).update(
        trigger="mention", context=None, context_messages=None, budget=None, budget_period=None
    )
    rows.filter(user__username__startswith="other-of").update(role="member", left_at=None)
    rows.filter(user__username="mallory").delete()
    rows.filter(agent__name="slow").delete()


def test_admins_remove_members_but_no_owner(
    web: httpx.Client, alice: Person, bob: Person, mallory: Person
) -> None:
    chat = shared_chat(alice, bob, mallory)
    rows = Participant.objects.filter(chat=chat)
    rows.filter(user=bob.user).update(role="admin")
    path = f"/api/v1/chats/{chat.pk}/participants"
    owner, other = rows.get(user=alice.user), rows.get(user=mallory.user)
    assert web.delete(f"{path}/{owner.pk}", headers=bob.headers).status_code == 403
    assert web.delete(f"{path}/{other.pk}", headers=bob.headers).status_code == 204
    # Who leaves as the last owner leaves the chat to the admin.
    assert web.delete(f"{path}/{owner.pk}", headers=alice.headers).status_code == 204
    assert rows.get(user=bob.user).role == "owner"
    chat_data = web.get(f"/api/v1/chats/{chat.pk}", headers=bob.headers).json()
    assert chat_data["role"] == "owner"
    assert set(chat_data["rights"]) == set(Right)


def test_the_last_owner_stays_one(web: httpx.Client, alice: Person, bob: Person) -> None:
    chat = shared_chat(alice, bob)
    owner = Participant.objects.get(chat=chat, user=alice.user)
    path = f"/api/v1/chats/{chat.pk}/participants/{owner.pk}"
    refused = web.patch(path, json={"role": "member"}, headers=alice.headers)
    assert refused.status_code == 403
    assert "owner" in refused.json()["detail"]
    owner.refresh_from_db()
    assert owner.role == "owner"


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_two_owners_who_demote_each_other_leave_one() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada, bob)
    Participant.objects.filter(chat=chat).update(role="owner")
    places = {row.user_id: row.pk for row in Participant.objects.filter(chat=chat)}
    together = threading.Barrier(2)
    refused: list[Exception] = []

    def demote(who: Any, other: Any) -> None:
        together.wait(60)
        try:
            change_role(
                chat_id=chat.pk, changed_by=who, participant_id=places[other.pk], role="member"
            )
        except (NotAllowed, LastOwner) as error:
            refused.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=demote, args=pair) for pair in ((ada, bob), (bob, ada))]
    for thread in threads:
        thread.start()
    join_threads(threads)
    assert len(refused) == 1
    assert Participant.objects.filter(chat=chat, role="owner").count() == 1
    assert ChatEvent.objects.filter(chat=chat, type="participant.updated").count() == 1


@pytest.mark.django_db
def test_a_member_who_comes_back_has_the_role_of_a_new_one() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada, bob)
    row = Participant.objects.get(chat=chat, user=bob)
    change_role(chat_id=chat.pk, changed_by=ada, participant_id=row.pk, role="admin")
    participants.remove_participant(chat_id=chat.pk, removed_by=ada, participant_id=row.pk)
    participants.add_participant(chat_id=chat.pk, added_by=ada, user=bob)
    row.refresh_from_db()
    assert (row.role, row.left_at) == ("member", None)
    types = ChatEvent.objects.filter(chat=chat).order_by("seq").values_list("type", flat=True)
    assert list(types) == ["participant.updated", "participant.left", "participant.joined"]


def test_the_docs_have_the_table_of_rights() -> None:
    text = (Path(__file__).parents[3] / "docs" / "members.md").read_text()
    documented = {
        role: {name for name, *marks in re.findall(
            r"^\| `(\w+)` \|[^|]*\| (yes|no) \| (yes|no) \| (yes|no) \|$", text, re.MULTILINE
        ) if marks[place] == "yes"}
        for place, role in enumerate(ROLES)
    }  # fmt: skip
    assert documented == {role: {str(right) for right in RIGHTS[role]} for role in ROLES}
