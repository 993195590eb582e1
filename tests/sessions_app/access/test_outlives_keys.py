"""Objects made with a key belong to the person, as docs/identity.md says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from chat_app.models import InviteLink, Participant, ShareLink
from sessions_app.models import ApiKey
from tests import factories
from tests.live_server import shared_chat
from tests.sessions_app.access.scoped_keys import key_of

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person


def test_webhooks_and_links_belong_to_the_person(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    chat = shared_chat(bob, alice)
    program, path = key_of(bob), f"/api/v1/chats/{chat.pk}"
    link_url = web.post(f"{path}/share-links", json={}, headers=program.headers).json()["url"]
    joined = web.post(f"{path}/invite-links", json={}, headers=program.headers).json()["url"]
    hook = {"chat": chat.pk, "url": "https://example.org/hook"}
    webhook = web.post("/api/v1/webhooks", json=hook, headers=program.headers).json()["id"]
    ApiKey.objects.filter(name="narrow").update(revoked_at=timezone.now())
    assert web.get("/api/v1/me", headers=program.headers).status_code == 401
    # They go on, and the person finds and ends them with another credential.
    assert web.get(_path_of(link_url)).status_code == 200
    assert web.get(_path_of(joined)).status_code == 200
    stored_webhook = web.get(f"/api/v1/webhooks/{webhook}", headers=bob.headers).json()
    assert (stored_webhook["enabled"], stored_webhook["stopped_reason"]) == (True, None)
    (link,) = web.get(f"{path}/share-links", headers=bob.headers).json()["data"]
    gone = web.delete(f"{path}/share-links/{link['id']}", headers=bob.headers)
    assert (gone.status_code, web.get(_path_of(link_url)).status_code) == (204, 404)


def test_a_key_without_the_right_to_read_a_chat_cannot_open_it_to_others(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    chat = shared_chat(bob)
    writes, path = key_of(bob, "chats:write"), f"/api/v1/chats/{chat.pk}"
    for name, body in (
        ("share-links", {}),
        ("invite-links", {}),
        ("participants", {"user": alice.user.username}),
        ("participants", {"user": "ada@elsewhere.example"}),
        ("participants", {"agent": "echo"}),
    ):
        refused = web.post(f"{path}/{name}", json=body, headers=writes.headers)
        assert (refused.status_code, refused.json()["scope"]) == (403, "chats:read"), name
    assert not ShareLink.objects.filter(chat=chat).exists()
    assert not InviteLink.objects.filter(chat=chat).exists()
    assert not Participant.objects.filter(chat=chat, user__isnull=False).exclude(user=bob.user)
    both = key_of(bob, "chats:read", "chats:write")
    assert web.post(f"{path}/share-links", json={}, headers=both.headers).status_code == 201


def test_a_key_without_the_right_to_read_a_message_gets_no_addresses_in_it(
    web: httpx.Client, alice: Person
) -> None:
    message = factories.message(shared_chat(alice), alice.user)
    path = f"/api/v1/messages/{message.pk}/link-cards"
    writes = key_of(alice, "messages:write")
    refused = web.post(path, headers=writes.headers)
    assert (refused.status_code, refused.json()["scope"]) == (403, "chats:read")
    both = key_of(alice, "messages:write", "chats:read")
    assert web.post(path, headers=both.headers).status_code == 200


def _path_of(url: str) -> str:
    return "/" + url.split("/", 3)[3]
