"""Subscriptions over REST, and their end."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from chat_app.conversation import erasure
from chat_app.models import PushSubscription
from chat_app.push import subscriptions, vapid
from sessions_app.data_rights.personal_export import export_person
from signing_app import owner_keys
from signing_app.models import PublishedKey
from tests import factories
from tests.chat_app.push.push_rounds import PATH, send_all, signed_in, subscribe

if TYPE_CHECKING:
    from pathlib import Path

    from django.contrib.auth.models import User

    from tests.push_service import PushBrowser, PushService

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("end", ["sign-out", "password", "deactivation", "expiry", "key"])
def test_nothing_is_sent_to_a_browser_that_is_signed_out(
    ada: User, grace: User, push_service: PushService, end: str
) -> None:
    client, browser = signed_in(ada), push_service.browser("ada")
    assert subscribe(client, browser.subscription).status_code == 201
    other = push_service.browser("phone")
    assert subscribe(signed_in(ada), other.subscription).status_code == 201
    match end:
        case "sign-out":
            client.logout()
            assert PushSubscription.objects.get().endpoint == other.endpoint
        case "password":
            ada.set_password("another")
            ada.save()
        case "deactivation":
            ada.is_active = False
            ada.save()
            assert not PushSubscription.objects.exists()
        case "expiry":
            session = PushSubscription.objects.get(endpoint=browser.endpoint).session
            session.expire_date = timezone.now()
            session.save()
        case "key":
            owner_keys.rotate(vapid.OWNER)
    factories.message(factories.chat(ada, grace), grace)
    send_all()
    assert push_service.received(browser) == []
    is_other_sent = end in {"sign-out", "expiry"}
    assert len(push_service.received(other)) == is_other_sent
    assert PushSubscription.objects.count() == is_other_sent


@pytest.mark.parametrize(
    "change",
    [
        {"endpoint": "http://push.example/a"},
        {"endpoint": "https://127.0.0.1/a"},
        {"endpoint": "https://push.example:22/a"},
        {"endpoint": "https://push.example/" + "a" * 2048},
        {"endpoint": "push"},
        {"p256dh": "B" * 87},
        {"p256dh": "B" * 86},
        {"auth": "A" * 21},
        {"auth": "A" * 24},
        {"more": 1},
    ],
)
def test_what_no_message_can_be_sent_with_is_refused(
    ada: User, push_service: PushService, change: dict[str, Any]
) -> None:
    body = {**push_service.browser("ada").subscription, **change}
    answer = subscribe(signed_in(ada), body)
    assert answer.status_code == 400, answer.json()
    assert not PushSubscription.objects.exists()


def test_a_browser_subscribes_once_for_the_person_who_is_signed_in(
    ada: User, grace: User, push_service: PushService, browser: PushBrowser
) -> None:
    assert subscribe(signed_in(ada), browser.subscription).status_code == 200
    assert PushSubscription.objects.get().user == ada
    assert subscribe(signed_in(grace), browser.subscription).status_code == 201
    assert PushSubscription.objects.get().user == grace


def test_a_person_has_so_many_devices_lists_and_removes_them(
    ada: User, grace: User, push_service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "DEVICES_MAX", 2)
    client = signed_in(ada)
    devices = [
        subscribe(client, push_service.browser(str(n)).subscription).json() for n in range(3)
    ]
    listed = client.get(PATH).json()["data"]
    assert [row["id"] for row in listed] == [devices[2]["id"], devices[1]["id"]]
    assert set(listed[0]) == {"id", "device", "created_at", "sent_at", "failures"}
    path = f"{PATH}/{devices[1]['id']}"
    assert signed_in(grace).delete(path).status_code == 404
    assert client.delete(path).status_code == 204
    assert client.delete(path).status_code == 404
    assert [row["id"] for row in client.get(PATH).json()["data"]] == [devices[2]["id"]]


def test_the_key_is_made_once_and_stored_encrypted(ada: User) -> None:
    client = signed_in(ada)
    first = client.get("/api/v1/me/push-key").json()["key"]
    owner_keys.forget()
    assert client.get("/api/v1/me/push-key").json()["key"] == first
    row = PublishedKey.objects.get(owner=vapid.OWNER)
    assert "PRIVATE" not in row.secret
    assert row.algorithm == "ES256"


def test_an_erasure_takes_the_devices_and_an_export_has_them(
    ada: User, browser: PushBrowser, tmp_path: Path
) -> None:
    with (tmp_path / "export.zip").open("wb") as file:
        export_person(ada, file)
    about = json.loads(zipfile.ZipFile(tmp_path / "export.zip").read("person.json"))
    assert [row["endpoint"] for row in about["push_subscriptions"]] == [browser.endpoint]
    assert "p256dh" not in about["push_subscriptions"][0]
    erasure.erase_profile(ada.pk)
    assert not PushSubscription.objects.exists()
