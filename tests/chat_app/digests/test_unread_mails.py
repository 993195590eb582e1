"""Emails about mentions and direct messages that stay unread, and their end."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from allauth.account.models import EmailAddress
from django.core import signing
from django.test import Client
from django.utils import timezone

from chat_app.digests.tasks import mail_unread
from chat_app.digests.unread import MESSAGES_MAX, people_to_mail
from chat_app.members import receipts
from chat_app.models import Message, MessageMention, Participant, PersonSettings, UnreadMail
from chat_app.people import settings as person_settings
from chat_app.people.settings import SettingsChange
from tests import factories

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.core.mail import EmailMessage
    from pytest_django.fixtures import Settings

    from chat_app.models import Chat

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def mail(settings: Settings) -> None:
    settings.UAMP_MAIL = "file"
    settings.UAMP_ISSUER = "https://chat.example"


@pytest.fixture
def ada() -> User:
    user = factories.user("ada")
    EmailAddress.objects.create(user=user, email="ada@example.org", verified=True, primary=True)
    return user


@pytest.fixture
def grace() -> User:
    return factories.user("grace")


@pytest.fixture
def chat(ada: User, grace: User) -> Chat:
    """Return a chat of two."""
    return factories.chat(ada, grace)


def write(chat: Chat, sender: User, text: str = "Lunch?", *, minutes: int = 16) -> Message:
    """Return a message that was written some minutes ago."""
    row = factories.message(chat, sender, text)
    Message.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(minutes=minutes))
    return row


def send_all() -> None:
    """Do what a process and its workers do in a round."""
    for user_id in people_to_mail(timezone.now()):
        mail_unread(user_id=user_id)


def test_a_direct_message_that_stays_unread_is_mailed_once(
    ada: User, grace: User, chat: Chat, mailoutbox: list[EmailMessage]
) -> None:
    write(chat, grace, "**Lunch** at one?")
    send_all()
    UnreadMail.objects.update(mailed_at=timezone.now() - timedelta(hours=2))
    send_all()
    (mail,) = mailoutbox
    assert mail.to == ["ada@example.org"]
    assert "1 unread message" in mail.subject
    assert f"grace\nLunch at one?\nhttps://chat.example/chats/{chat.pk}" in mail.body
    assert mail.extra_headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"


def test_a_person_has_one_mail_an_hour_with_all_that_is_unread(
    ada: User, grace: User, chat: Chat, mailoutbox: list[EmailMessage]
) -> None:
    write(chat, grace, "first", minutes=30)
    send_all()
    for number in range(MESSAGES_MAX + 5):
        write(chat, grace, f"later {number}")
    # They were written after the first mail, as far as it looked.
    UnreadMail.objects.update(looked_until=timezone.now() - timedelta(minutes=20))
    send_all()
    mail_unread(user_id=ada.pk)
    assert len(mailoutbox) == 1
    UnreadMail.objects.update(mailed_at=timezone.now() - timedelta(minutes=61))
    send_all()
    send_all()
    assert len(mailoutbox) == 2
    assert mailoutbox[1].body.count("later ") == MESSAGES_MAX
    assert "first" not in mailoutbox[1].body


@pytest.mark.parametrize(
    "reason",
    ["young", "old", "read", "muted", "level", "off", "address", "account", "server", "agent"],
)
def test_what_needs_no_mail_is_not_mailed(
    ada: User,
    grace: User,
    chat: Chat,
    mailoutbox: list[EmailMessage],
    settings: Settings,
    reason: str,
) -> None:
    message = write(chat, grace, minutes={"young": 14, "old": 200}.get(reason, 16))
    member = Participant.objects.filter(chat=chat, user=ada)
    match reason:
        case "read":
            receipts.mark_read(chat_id=chat.pk, user_id=ada.pk, message_id=message.pk)
        case "muted":
            member.update(muted_at=timezone.now())
        case "level":
            member.update(notifications="none")
        case "off":
            PersonSettings.objects.create(user=ada, mail_unread=False)
        case "address":
            EmailAddress.objects.update(verified=False)
        case "account":
            ada.is_active = False
            ada.save()
        case "server":
            settings.UAMP_MAIL = "off"
        case "agent":
            Message.objects.update(sender_user=None, role="assistant")
    send_all()
    assert mailoutbox == []


def test_of_a_group_only_mentions_are_mailed(
    ada: User, grace: User, mailoutbox: list[EmailMessage]
) -> None:
    group = factories.chat(ada, grace, factories.user("joan"), title="Plans")
    write(group, grace, "for all")
    send_all()
    assert mailoutbox == []
    UnreadMail.objects.all().delete()
    mentioning = write(group, grace, "@ada look")
    MessageMention.objects.create(message=mentioning, chat=group, user=ada, seq=mentioning.seq)
    send_all()
    (mail,) = mailoutbox
    assert "grace · Plans\n@ada look" in mail.body
    assert "for all" not in mail.body


def test_a_mail_without_words_has_no_names(
    ada: User, grace: User, chat: Chat, mailoutbox: list[EmailMessage]
) -> None:
    change = SettingsChange(notification_text=False)
    person_settings.update_settings(user_id=ada.pk, change=change)
    write(chat, grace, "secret")
    send_all()
    (mail,) = mailoutbox
    assert "secret" not in mail.body
    assert "grace" not in mail.body
    assert f"https://chat.example/chats/{chat.pk}" in mail.body


def test_the_link_ends_the_mails_without_signing_in(
    ada: User, grace: User, chat: Chat, mailoutbox: list[EmailMessage]
) -> None:
    write(chat, grace)
    send_all()
    link = mailoutbox[0].extra_headers["List-Unsubscribe"].strip("<>")
    path = link.removeprefix("https://chat.example")
    client = Client(enforce_csrf_checks=True)
    assert client.get(path).status_code == 200
    assert not PersonSettings.objects.filter(user=ada, mail_unread=False).exists()
    one_click = {"List-Unsubscribe": "One-Click"}
    assert client.post(path, one_click).status_code == 200
    assert PersonSettings.objects.get(user=ada).mail_unread is False
    UnreadMail.objects.all().delete()
    send_all()
    assert len(mailoutbox) == 1


@pytest.mark.parametrize("change", ["forged", "other salt", "long", "deactivated"])
def test_a_link_that_is_not_of_the_server_ends_nothing(ada: User, change: str) -> None:
    token = signing.dumps(ada.pk, salt="another" if change == "other salt" else "unread mails")
    if change == "forged":
        token = token[:-2] + "AA"
    if change == "long":
        token += "A" * 300
    if change == "deactivated":
        ada.is_active = False
        ada.save()
    assert Client().post(f"/unsubscribe/{token}").status_code == 404
    assert not PersonSettings.objects.filter(mail_unread=False).exists()
