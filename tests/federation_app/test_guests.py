"""Chats with members on two servers: a real one here, and another in its own processes."""

from __future__ import annotations

import json
import shutil
import signal
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User

from agents_app.models import Agent
from chat_app.members.receipts import mark_read
from chat_app.models import Chat, ChatEvent, Message, Participant, ReadReceipt
from federation_app.models import ChatFollower, ErasureNotice, Guest, Peer
from sessions_app.data_rights.erasure import erase_person
from sessions_app.models import Response
from sessions_app.process import periodic
from tests.client import wait_until
from tests.federation_app.shared_chats import ALICE, invite, joined, message_id, rest, texts
from tests.federation_app.two_servers import BOB, CutLine

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from tests.client import UampClient
    from tests.federation_app.two_servers import OtherServer
    from tests.live_server import Dial, Person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]
ECHO = "echo@chat.example"
READ = """
from django.contrib.auth.models import User
from chat_app.members.receipts import mark_read
bob = User.objects.get(username="bob")
mark_read(chat_id={chat!r}, user_id=bob.pk, message_id={message!r})
"""
ALL_TEXTS = """
from chat_app.models import Message
print(list(Message.objects.values_list("content", flat=True)))
"""
SUSPEND = """
from federation_app.models import Peer
from federation_app.peers import registry
registry.suspend(Peer.objects.get())
"""
STORED = """
import json
from django.contrib.auth.models import User
from chat_app.models import ChatEvent, Message
print(json.dumps([
    list(User.objects.values_list("username", flat=True)),
    list(Message.objects.values_list("name", "content")),
    list(ChatEvent.objects.values_list("payload", flat=True)),
]))
"""
NEW_EPOCHS = """
from chat_app.log.epochs import begin_epochs
begin_epochs()
"""
RESUME = """
from federation_app.models import Peer
from federation_app.peers import registry
registry.resume(Peer.objects.get())
"""


def test_two_servers_share_a_chat_through_an_outage_of_both(
    other: OtherServer, web: httpx.Client, alice: Person
) -> None:
    chat, mirror = joined(other, web, alice)
    they_write_edit_read_and_delete(other, web, alice, chat, mirror)
    nothing_is_lost_in_an_outage(other, web, alice, chat, mirror)
    # Once the guest is removed, nothing that is written from then on leaves this server.
    member = Participant.objects.get(chat=chat, user__username=BOB)
    rest(web, alice, "DELETE", f"/chats/{chat.pk}/participants/{member.pk}")
    rest(web, alice, "POST", f"/chats/{chat.pk}/messages", {"content": "among us"})
    wait_until(lambda: not any(row["id"] == mirror for row in other.get("/chats")["data"]))
    wait_until(lambda: not ChatFollower.objects.exists())
    assert "among us" not in other.product.run(ALL_TEXTS)
    # Invited again, the guest comes back, and leaves.
    again = invite(other, web, alice, chat)
    other.post(f"/invitations/{again['id']}", {"answer": "accept"})
    members = Participant.objects.filter(chat=chat, user__username=BOB, left_at=None)
    wait_until(members.exists)
    assert other.chat("Shared") == mirror
    rest(web, alice, "POST", f"/chats/{chat.pk}/messages", {"content": "welcome back"})
    wait_until(lambda: other.texts(mirror)[-1] == (ALICE, "welcome back"))
    assert "among us" not in other.product.run(ALL_TEXTS)
    participants = other.get(f"/chats/{mirror}")["participants"]
    (participant_id,) = [
        participant["participant_id"]
        for participant in participants
        if participant["name"] == "bob"
    ]
    other.delete(f"/chats/{mirror}/participants/{participant_id}")
    wait_until(lambda: not members.exists())
    assert "No log was changed." in other.product.manage("audit_log")


def they_write_edit_read_and_delete(
    other: OtherServer, web: httpx.Client, alice: Person, chat: Chat, mirror: str
) -> None:
    """Let the guest and the host write, edit, read and delete; both sides see it."""
    message = other.post(f"/chats/{mirror}/messages", {"content": "hello from afar"})
    assert message["queued"], "the home decides its place"
    wait_until(lambda: texts(chat) == [(BOB, "hello from afar")])
    assert Message.objects.filter(chat=chat, sender_user__username=BOB).exists()
    rest(web, alice, "POST", f"/chats/{chat.pk}/messages", {"content": "@echo welcome"})
    wait_until(lambda: len(texts(chat)) == 3)
    answer = (ECHO, texts(chat)[2][1])
    expected = [("bob", "hello from afar"), (ALICE, "@echo welcome"), answer]
    wait_until(lambda: other.texts(mirror) == expected)
    assert other.get(f"/chats/{mirror}/queue")["data"] == []

    first, last = (message_id(chat, text) for text in ("hello from afar", "@echo welcome"))
    other.patch(f"/messages/{first}", {"content": "hello from nearby"})
    wait_until(lambda: texts(chat)[0] == (BOB, "hello from nearby"))
    other.product.run(READ.format(chat=mirror, message=last))
    wait_until(lambda: ReadReceipt.objects.filter(message_id=last, user__username=BOB).exists())
    other.delete(f"/messages/{first}")
    wait_until(lambda: len(texts(chat)) == 2)
    rest(web, alice, "PATCH", f"/messages/{last}", {"content": "@echo goodbye"})
    wait_until(lambda: (ALICE, "@echo goodbye") in other.texts(mirror))
    mark_read(chat_id=chat.pk, user_id=alice.user.pk, message_id=last)
    wait_until(lambda: len(other.get(f"/chats/{mirror}/receipts")["data"]) == 2)
    rest(web, alice, "DELETE", f"/messages/{last}")
    wait_until(lambda: other.texts(mirror) == [answer])
    # A mirror grants no rights: members are added at home.
    with other.product.api("bob") as client:
        path = f"/api/v1/chats/{mirror}/participants"
        assert client.post(path, json={"user": "alice"}).status_code == 403
        assert client.post(path, json={"agent": "echo"}).status_code == 403


def nothing_is_lost_in_an_outage(
    other: OtherServer, web: httpx.Client, alice: Person, chat: Chat, mirror: str
) -> None:
    """Let both write while neither receives anything, and one dies; then all is there, in order."""
    before = [text for _, text in texts(chat)]
    line = CutLine("127.0.0.1", other.product.port)
    Peer.objects.update(address=f"http://127.0.0.1:{line.port}")
    line.hold()
    other.product.run(SUSPEND)
    for number in range(3):
        rest(web, alice, "POST", f"/chats/{chat.pk}/messages", {"content": f"from here {number}"})
        other.post(f"/chats/{mirror}/messages", {"content": f"from there {number}"})
    wait_until(lambda: Peer.objects.get().failures > 1)
    assert len(other.get(f"/chats/{mirror}/queue")["data"]) == 3
    other.product.stop(signal.SIGKILL)
    other.product.start()
    line.mend()
    other.product.run(RESUME)

    def here() -> list[str]:
        return [text for _, text in texts(chat)][len(before) :]

    wait_until(lambda: len(here()) == 6)
    for place in ("here", "there"):
        own_texts = [text for text in here() if place in text.split()]
        assert own_texts == [f"from {place} {number}" for number in range(3)]
    wait_until(lambda: [text for _, text in other.texts(mirror)] == [*before, *here()])
    assert other.get(f"/chats/{mirror}/queue")["data"] == []
    Peer.objects.update(address=other.product.url)
    line.close()


def test_a_restored_backup_of_either_side_loses_nothing_of_the_other(
    other: OtherServer, web: httpx.Client, alice: Person, tmp_path: Path
) -> None:
    chat, mirror = joined(other, web, alice)
    theirs = other.post("/chats", {"title": "Theirs", "users": [ALICE]})["id"]
    wait_until(lambda: len(rest(web, alice, "GET", "/invitations").json()["data"]) == 1)
    (invitation,) = rest(web, alice, "GET", "/invitations").json()["data"]
    rest(web, alice, "POST", f"/invitations/{invitation['id']}", {"answer": "accept"})
    wait_until(Chat.objects.filter(home="other.example").exists)
    ours = Chat.objects.get(home="other.example")

    def both_write(text: str) -> None:
        rest(web, alice, "POST", f"/chats/{chat.pk}/messages", {"content": text})
        other.post(f"/chats/{theirs}/messages", {"content": text})
        wait_until(lambda: other.texts(mirror)[-1:] == [(ALICE, text)])
        wait_until(lambda: texts(ours)[-1:] == [(BOB, text)])

    both_write("before")
    folder, backup = other.product.data_dir, tmp_path / "backup"
    other.product.stop()
    shutil.copytree(folder, backup)
    other.product.start()
    both_write("after the backup")
    other.product.stop()
    shutil.rmtree(folder)
    shutil.copytree(backup, folder)
    other.product.manage("shell", "-c", NEW_EPOCHS)
    other.product.start()
    both_write("after the restore")
    expected = ["before", "after the backup", "after the restore"]
    assert [text for _, text in other.texts(mirror)] == expected
    # What its home lost stays where it was read.
    assert [text for _, text in texts(ours)] == expected


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this server deliver only what its own commits announce."""
    others = [
        job._replace(seconds=3600.0) if job.name == "deliver to peers" else job
        for job in periodic._others
    ]
    monkeypatch.setattr(periodic, "_others", others)


def shows(typist: UampClient, reader: UampClient, name: str) -> None:
    """Let a person type until another one sees it."""

    def is_visible() -> bool:
        typist.send("input.typing", is_typing=True)
        events = [event for event in reader.during(1) if event["type"] == "presence.typing"]
        return any(event["username"] == name for event in events)

    wait_until(is_visible)


def test_a_commit_wakes_the_delivery_and_typing_travels_both_ways(
    hasty: None, other: OtherServer, web: httpx.Client, alice: Person, dial: Dial
) -> None:
    chat, mirror = joined(other, web, alice)
    rest(web, alice, "POST", f"/chats/{chat.pk}/messages", {"content": "at once"})
    wait_until(lambda: (ALICE, "at once") in other.texts(mirror))
    client = dial(alice)
    client.create_session(chat=chat.pk)
    with other.socket() as bob:
        bob.create_session(chat=mirror)
        shows(client, bob, ALICE)
        shows(bob, client, BOB)
    other.post(f"/chats/{mirror}/messages", {"content": "still in order"})
    wait_until(lambda: (BOB, "still in order") in texts(chat))


def test_a_guest_reads_why_an_agent_of_the_home_does_not_answer(
    other: OtherServer, web: httpx.Client, alice: Person
) -> None:
    chat, mirror = joined(other, web, alice)
    agent = Agent.objects.get(name="echo")
    agent.is_enabled = False
    agent.save()
    with other.socket() as bob:
        bob.create_session(chat=mirror)
        other.post(f"/chats/{mirror}/messages", {"content": "@echo hello"})
        event = bob.until("agent.stopped")[-1]
    log = [entry["payload"] for entry in other.get(f"/chats/{mirror}/events")["data"]]
    stored = [entry for entry in log if entry["type"] == "agent.stopped"]
    assert [entry["event_id"] for entry in stored] == [event["event_id"]]
    assert (event["agent"], event["reason"]) == ("echo", "disabled")
    assert event["message"] == "echo does not answer: it is switched off."
    # The message has the same id on both servers.
    (question,) = other.get(f"/chats/{mirror}/messages")["data"]
    assert event["message_id"] == question["id"] == message_id(chat, "@echo hello")
    assert not Response.objects.exists()


def test_an_erased_person_disappears_on_both_servers(
    other: OtherServer, web: httpx.Client, alice: Person
) -> None:
    chat, mirror = joined(other, web, alice)
    rest(web, alice, "POST", f"/chats/{chat.pk}/messages", {"content": "words of the host"})
    other.post(f"/chats/{mirror}/messages", {"content": "words of the guest"})
    wait_until(lambda: "words of the guest" in other.product.run(ALL_TEXTS))
    wait_until(lambda: "words of the host" in other.product.run(ALL_TEXTS))
    assert ALICE in other.product.run(STORED)
    # The peer is down while the person is erased, and is informed later.
    other.product.stop(signal.SIGKILL)
    erase_person(alice.user, reason="asked")
    assert ErasureNotice.objects.count() == 1
    other.product.start()
    wait_until(lambda: not ErasureNotice.objects.exists())
    stored = other.product.run(STORED)
    assert "words of the host" not in stored
    assert ALICE not in stored
    # The chat has ended, as only the guest was left; their words stay in the rows of their server.
    assert "words of the guest" in stored

    assert BOB in everything_here()
    other.product.manage("erase_person", "bob", "--reason", "asked", "--yes")
    guest = Guest.objects.select_related("user")
    wait_until(lambda: guest.get().user.username.startswith("erased-"))
    assert "words of the guest" not in everything_here()
    assert BOB not in everything_here()
    assert "No log was changed." in other.product.manage("audit_log")


def everything_here() -> str:
    """Return the names of accounts here, and what messages and logs contain."""
    return json.dumps(
        [
            list(User.objects.values_list("username", flat=True)),
            list(Message.objects.values_list("name", "content")),
            list(ChatEvent.objects.values_list("payload", flat=True)),
        ]
    )
