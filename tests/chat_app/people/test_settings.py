"""Settings of people: kept on the server, one's own, and what reading in private means."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from chat_app.models import ChatEvent, Participant, PersonSettings, ReadReceipt
from chat_app.people import settings as person_settings
from chat_app.people.settings import SettingsChange
from tests import factories
from tests.chat_app.conversation.joining import joined, send_message
from tests.live_server import Dial, Person, shared_chat

if TYPE_CHECKING:
    import httpx

pytestmark = pytest.mark.django_db

PATH = "/api/v1/me/settings"
DEFAULTS = {
    "theme": "system",
    "density": "comfortable",
    "read_receipts": True,
    "typing_notices": True,
    "notifications": "mentions",
    "notification_text": True,
    "notification_sound": True,
    "quiet_from": "",
    "quiet_until": "",
    "time_zone": "",
    "mail_unread": True,
    "send_key": "enter",
    "follow_answers": True,
    "language": "",
}
QUIET = {"quiet_from": "22:00", "quiet_until": "07:30", "time_zone": "Europe/Berlin"}


def patch(client: Client, body: Any) -> Any:
    return client.patch(PATH, json.dumps(body), content_type="application/json")


def test_settings_are_kept_and_one_change_does_not_undo_another() -> None:
    ada, client, phone = factories.user("ada"), Client(), Client()
    for browser in (client, phone):
        browser.force_login(ada)
    assert client.get(PATH).json() == DEFAULTS
    assert not PersonSettings.objects.exists()
    assert patch(client, {"theme": "dark"}).json() == {**DEFAULTS, "theme": "dark"}
    assert patch(phone, {"send_key": "ctrl_enter", **QUIET}).status_code == 200
    stored = {**DEFAULTS, "theme": "dark", "send_key": "ctrl_enter", **QUIET}
    assert client.get(PATH).json() == stored
    assert patch(client, {"quiet_from": "", "quiet_until": ""}).status_code == 200
    other = Client()
    other.force_login(factories.user("bea"))
    assert other.get(PATH).json() == DEFAULTS
    assert Client().get(PATH).status_code in {401, 403}


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "body",
    [
        {"theme": "pink"},
        {"density": ""},
        {"read_receipts": None},
        {"notifications": "some"},
        {"send_key": "space"},
        {"quiet_from": "22:00"},
        {"quiet_from": "24:00", "quiet_until": "07:00", "time_zone": "UTC"},
        {"quiet_from": "07:00", "quiet_until": "07:00", "time_zone": "UTC"},
        {"quiet_from": "22:00", "quiet_until": "07:00"},
        {"time_zone": "../../etc/passwd"},
        {"time_zone": "Europe/Atlantis"},
        {"time_zone": "A" * 65},
        {"language": "tlh"},
        ["theme"],
    ],
)
def test_a_setting_that_cannot_be_is_refused_and_nothing_is_changed(body: Any) -> None:
    client = Client()
    client.force_login(factories.user("ada"))
    patch(client, {"density": "compact"})
    if isinstance(body, dict):
        body = {"density": "comfortable", **body}
    assert patch(client, body).status_code == 400
    assert client.get(PATH).json() == {**DEFAULTS, "density": "compact"}


def test_the_database_refuses_quiet_hours_without_an_end() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        PersonSettings.objects.create(user=factories.user("ada"), quiet_from="22:00")


def test_a_member_sets_what_notifies_them_of_a_chat(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob)
    path = f"/api/v1/chats/{chat.pk}"
    answer = web.put(f"{path}/mute", json={"notifications": "none"}, headers=alice.headers).json()
    assert (answer["muted"], answer["notifications"]) == (False, "none")
    answer = web.put(f"{path}/mute", json={"muted": True}, headers=alice.headers).json()
    assert (answer["muted"], answer["notifications"]) == (True, "none")
    answer = web.put(f"{path}/mute", json={"notifications": ""}, headers=alice.headers).json()
    assert (answer["muted"], answer["notifications"]) == (True, "")
    others = web.get(path, headers=bob.headers).json()
    assert (others["muted"], others["notifications"]) == (False, "")
    bodies: list[Any] = [{}, {"notifications": "some"}, {"muted": None}, {"muted": True, "x": 1}]
    for body in bodies:
        answer = web.put(f"{path}/mute", json=body, headers=alice.headers)
        assert answer.status_code == 400, body
    participant = Participant.objects.get(chat=chat, user=alice.user)
    assert participant.muted_at is not None


def test_a_private_reader_moves_a_marker_that_no_other_member_sees(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    person_settings.update_settings(user_id=bob.user.pk, change=SettingsChange(read_receipts=False))
    chat = shared_chat(alice, bob)
    writer, reader, second = (
        joined(dial, alice, chat),
        joined(dial, bob, chat),
        joined(dial, bob, chat),
    )
    message_id = send_message(writer, "Did you read this?")
    reader.until("message.created")
    second.until("message.created")
    reader.send("message.read", message_id=message_id)
    # The other devices of the reader know, the others do not.
    assert second.until("message.read")[-1]["message_id"] == message_id
    assert [frame for frame in writer.settle() if frame["type"] == "message.read"] == []
    assert ReadReceipt.objects.get(chat=chat).user_id == bob.user.pk
    assert not ChatEvent.objects.filter(chat=chat, type="message.read").exists()
    path = f"/api/v1/chats/{chat.pk}"
    seen = {
        who.user.username: [
            row["username"]
            for row in web.get(f"{path}/receipts", headers=who.headers).json()["data"]
        ]
        for who in (alice, bob)
    }
    assert seen == {"alice": [], "bob": ["bob"]}
    for page in ("events", "messages", "export?format=json", "participants", ""):
        assert (
            "message.read" not in web.get(f"{path}/{page}".rstrip("/"), headers=alice.headers).text
        )
    assert web.get(path, headers=bob.headers).json()["unread"] == 0
    # A client that comes back does not receive it either.
    again = joined(dial, alice, chat, resume={"epoch": chat.epoch, "after": 0})
    assert [frame for frame in again.settle() if frame["type"] == "message.read"] == []
    # In public again, the next marker is one.
    person_settings.update_settings(user_id=bob.user.pk, change=SettingsChange(read_receipts=True))
    message_id = send_message(writer, "And this?")
    reader.until("message.created")
    reader.send("message.read", message_id=message_id)
    assert writer.until("message.read")[-1]["user_id"] == str(bob.user.pk)
    data = web.get(f"{path}/receipts", headers=alice.headers).json()["data"]
    assert [row["username"] for row in data] == ["bob"]
