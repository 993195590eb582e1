"""`Idempotency-Key` of every POST: one effect, one answer, and no secret that is kept."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import get_resolver
from django.utils import timezone

from chat_app import repeats
from chat_app.contents import reading_rights
from chat_app.models import Chat, Content, Participant, RepeatedRequest, Transcript, Upload
from chat_app.rest.edge import RestView
from sessions_app.access.auth import create_api_key
from sessions_app.models import ApiKey
from sessions_app.process.retention import sweep
from tests import factories
from tests.chat_app.transcripts.test_transcripts import sound

if TYPE_CHECKING:
    from pathlib import Path

    from django.contrib.auth.models import User
    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db

# Views that know repeats by other means, and views whose repetition has no second effect.
OWN = {
    "SentMessagesView",
    "ResponsesView",
    "RetryView",
    "ForksView",
    "PoolView",
    "RenderView",
    "TicketsView",
    "DiscoveryView",
    "ProbeView",
    "PushSubscriptionsView",
}
SECRET = {
    "ConnectTokensView",
    "KeysView",
    "KeyRotationView",
    "WebhooksView",
    "WebhookRotationView",
    "ShareLinksView",
    "InviteLinksView",
}


@pytest.fixture(autouse=True)
def media(settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path


def program(user: User) -> Client:
    key = create_api_key(user, name="tests")
    return Client(headers={"Authorization": f"Bearer {key}"})


def post(client: Client, path: str, body: Any, key: str = "k") -> Any:
    return client.post(
        f"/api/v1/{path}",
        json.dumps(body),
        content_type="application/json",
        headers={"Idempotency-Key": key},
    )


def views() -> set[type[RestView]]:
    view_classes: set[type[RestView]] = set()

    def collect(patterns: Any) -> None:
        for pattern in patterns:
            if hasattr(pattern, "url_patterns"):
                collect(pattern.url_patterns)
                continue
            view: Any = getattr(pattern.callback, "cls", None)
            if hasattr(view, "post") and issubclass(view, RestView):
                view_classes.add(view)

    collect(get_resolver().url_patterns)
    return view_classes


def test_every_post_knows_its_repeats() -> None:
    repeatable = {view.__name__ for view in views() if view.answers_repeats}
    secret = {view.__name__ for view in views() if view.shows_secret}
    assert (repeatable, secret) == (OWN, SECRET)
    assert len(views()) > len(OWN | SECRET)


def test_the_same_request_has_one_effect_and_one_answer() -> None:
    ada = factories.user("ada")
    client = program(ada)
    first = post(client, "chats", {"title": "Plans", "users": []})
    again = post(client, "chats", {"users": [], "title": "Plans"})

    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert first["Location"] == again["Location"]
    assert "Idempotency-Replayed" not in first
    assert again["Idempotency-Replayed"] == "true"
    assert Chat.objects.count() == 1
    other = post(client, "chats", {"title": "Other"})
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")
    elsewhere = post(client, f"chats/{Chat.objects.get().pk}/participants", {"user": "bob"})
    assert elsewhere.json()["code"] == "idempotency_conflict"
    # Another key, another person, or another credential of the same person.
    assert post(client, "chats", {"title": "Plans"}, key="l").status_code == 201
    assert post(program(factories.user("bob")), "chats", {"title": "Plans"}).status_code == 201
    assert post(program(ada), "chats", {"title": "Plans", "users": []}).status_code == 409
    assert Chat.objects.count() == 3
    assert "Plans" not in "".join(RepeatedRequest.objects.values_list("answer", flat=True))


@pytest.mark.parametrize("kind", ["transcript", "link cards"])
def test_what_a_chat_said_is_not_repeated_to_who_has_left_it(kind: str) -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada, bob)
    content = factories.content(ada, sound(), mime_type="audio/wav", filename="a.wav")
    reading_rights.use(chat.pk, [str(content.pk)])
    Transcript.objects.create(content=content, state="done", text="Hello")
    message = factories.message(chat, ada, "Hello")
    path = {
        "transcript": f"contents/{content.pk}/transcript",
        "link cards": f"messages/{message.pk}/link-cards",
    }[kind]
    client = program(bob)
    first, again = post(client, path, {}), post(client, path, {})
    assert (first.status_code, again.status_code) == (200, 200), first.content
    assert again["Idempotency-Replayed"] == "true"

    Participant.objects.filter(chat=chat, user=bob).update(left_at=timezone.now())
    assert post(client, path, {}).status_code == 404


def test_a_refused_request_leaves_its_key_free() -> None:
    ada = factories.user("ada")
    client = program(ada)
    chat = factories.chat(ada)
    path = f"chats/{chat.pk}/participants"
    assert post(client, path, {"user": "bob"}).status_code == 400
    factories.user("bob")
    assert post(client, path, {"user": "bob"}).status_code == 201
    assert post(client, path, {"user": "bob"})["Idempotency-Replayed"] == "true"
    for wrong in ("", "x" * 129):
        assert post(client, path, {"user": "bob"}, key=wrong).status_code == 400


def test_files_are_the_same_if_their_bytes_are() -> None:
    client = program(factories.user())

    def send(data: bytes) -> Any:
        file = SimpleUploadedFile("a.txt", data, "text/plain")
        headers = {"Idempotency-Key": "f"}
        return client.post("/api/v1/contents", {"file": file}, headers=headers)

    first, again, other = send(b"one"), send(b"one"), send(b"two")
    assert [answer.status_code for answer in (first, again, other)] == [201, 201, 409]
    assert first.json() == again.json()
    assert Content.objects.count() == 1
    started = [
        client.post(
            "/api/v1/uploads",
            content_type="application/x-www-form-urlencoded",
            headers={"Idempotency-Key": "u", "Tus-Resumable": "1.0.0", "Upload-Length": length},
        )
        for length in ("3", "3", "4")
    ]
    assert [answer.status_code for answer in started] == [201, 201, 409]
    assert started[0]["Location"] == started[1]["Location"]
    assert Upload.objects.count() == 1


def test_a_secret_is_shown_once_and_made_once() -> None:
    client = program(factories.user())
    before = ApiKey.objects.count()
    first = post(client, "keys", {"name": "bot", "scopes": ["chats:read"]})
    again = post(client, "keys", {"name": "bot", "scopes": ["chats:read"]})
    assert first.json()["secret"]
    assert (again.status_code, again.json()["code"]) == (409, "secret_shown_once")
    assert again.json()["location"] == first.get("Location", "")
    assert ApiKey.objects.count() == before + 1
    assert RepeatedRequest.objects.get().answer == ""


def test_a_running_request_is_not_repeated_until_its_process_is_given_up() -> None:
    ada = factories.user("ada")
    client = program(ada)
    post(client, "chats", {"title": "Plans"})
    row = RepeatedRequest.objects.get()
    RepeatedRequest.objects.update(status=None, created_at=timezone.now())
    running = post(client, "chats", {"title": "Plans"})
    assert (running.status_code, running["Retry-After"]) == (409, "1")
    assert running.json()["code"] == "idempotency_key_in_use"
    assert Chat.objects.count() == 1
    old = timezone.now() - timedelta(seconds=repeats.CLAIM_SECONDS + 1)
    RepeatedRequest.objects.update(created_at=old)
    assert post(client, "chats", {"title": "Plans"}).status_code == 201
    assert Chat.objects.count() == 2
    assert RepeatedRequest.objects.get().pk == row.pk


def test_answers_are_deleted_after_a_while(settings: Settings) -> None:
    client = program(factories.user())
    post(client, "chats", {"title": "Plans"})
    sweep()
    assert RepeatedRequest.objects.exists()
    old = timezone.now() - timedelta(days=settings.UAMP_REPEAT_DAYS + 1)
    RepeatedRequest.objects.update(created_at=old)
    sweep()
    assert not RepeatedRequest.objects.exists()
