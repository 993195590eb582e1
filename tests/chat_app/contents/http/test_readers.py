"""The right to read a file, with a session or by a signed address (UAMP §8.4.1)."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote

import pytest
from django.contrib.auth.models import Permission, User
from django.core.signing import TimestampSigner
from django.test import Client
from django.urls import reverse
from django.utils import timezone

import uamp
from audit_app.models import AuditRecord
from chat_app.contents import addresses, reading_rights, references
from chat_app.members import participants
from chat_app.models import Content, ContentUse, Participant
from tests import factories
from tests.chat_app.contents.http.content_client import body_of, signed_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_django.fixtures import Settings

    from chat_app.models import Chat

pytestmark = pytest.mark.django_db


def test_members_of_a_chat_that_shows_a_content_may_read_it() -> None:
    ada, bob, eve = (factories.user(name) for name in ("ada", "bob", "eve"))
    chat = factories.chat(ada, bob)
    content = factories.content(ada)
    paths = [f"/api/content/{content.pk}", f"/api/v1/contents/{content.pk}"]

    def statuses(user: User) -> list[int]:
        codes = []
        for path in paths:
            response = signed_in(user).get(path)
            codes.append(response.status_code)
        return codes

    assert (statuses(ada), statuses(bob), statuses(eve)) == ([200, 200], [404, 404], [404, 404])
    reading_rights.use(chat.pk, [str(content.pk)])
    assert (statuses(bob), statuses(eve)) == ([200, 200], [404, 404])
    membership = bob.participations.get()
    participants.remove_participant(chat_id=chat.pk, removed_by=bob, participant_id=membership.pk)
    assert statuses(bob) == [404, 404]


def test_a_stranger_gets_what_a_wrong_id_gets() -> None:
    content = factories.content(factories.user("ada"))
    bodies = []
    for content_id in (content.pk, uuid.uuid4()):
        response = Client().get(f"/api/content/{content_id}")
        assert (response.status_code, response["Content-Type"]) == (
            404,
            "application/problem+json",
        )
        body = response.json()
        bodies.append({k: v for k, v in body.items() if k not in {"instance", "request_id"}})
    assert bodies[0] == bodies[1]


def test_an_item_has_an_absolute_address_for_clients_without_a_key(settings: Settings) -> None:
    owner = factories.user("ada")
    content = factories.content(owner)
    reader = addresses.ContentReader(user_id=owner.pk)
    item = references.item_of(content)
    url = references.absolute_url(item, base_url="http://testserver", reader=reader)
    assert url is not None
    assert url.startswith(f"http://testserver/api/content/{content.pk}?for=")
    served = Client().get(url)
    assert (served.status_code, body_of(served)) == (200, factories.png())
    for name in ("X-Content-Type-Options", "Content-Security-Policy", "Content-Disposition"):
        assert served[name] == signed_in(owner).get(addresses.content_url(content.pk))[name]
    settings.UAMP_CONTENT_URL_SECONDS = -1
    assert Client().get(url).status_code == 404


def test_an_address_elsewhere_stays_and_a_text_has_none() -> None:
    elsewhere = uamp.ImageContent(image=uamp.MediaUrl(url="https://example.org/a.png"))
    base_url, anyone = "https://own", addresses.ContentReader(chat_id="chat_1")
    url = references.absolute_url(elsewhere, base_url=base_url, reader=anyone)
    assert url == "https://example.org/a.png"
    assert (
        references.absolute_url(uamp.TextContent(text="x"), base_url=base_url, reader=anyone)
        is None
    )


def test_a_signed_address_is_readable_without_a_sign_in_for_its_time() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    content, other = factories.content(ada), factories.content(bob, factories.png(3, 3))
    reader = addresses.ContentReader(user_id=ada.pk)
    url = addresses.signed_url(content.pk, reader)
    response = Client().get(url)
    assert (response.status_code, body_of(response)) == (200, factories.png())
    path, _, query = url.partition("?")
    signature = parse_qs(query)["signature"][0]
    old = TimestampSigner(salt="content reader")
    old.timestamp = lambda: "1"  # type: ignore[method-assign]  # signed long ago
    value = f"{content.pk}:{reader}"
    expired = quote(old.sign(value)[len(value) + 1 :])
    for wrong in (
        f"/api/content/{other.pk}?{query}",
        f"{path}?for={reader}&signature={quote(signature[:-1])}",
        f"{path}?for={reader}&signature={expired}",
        f"{path}?for={addresses.ContentReader(user_id=bob.pk)}&signature={quote(signature)}",
        f"{path}?for={addresses.ContentReader(chat_id='chat_1')}&signature={quote(signature)}",
        f"{path}?for=&signature={quote(signature)}",
        f"{path}?for={reader}&signature=",
        f"{path}?signature={quote(signature)}",
        f"{path}?for=%00&signature=%00",
    ):
        assert Client().get(wrong).status_code == 404, wrong


def leaves_the_chat(chat: Chat, content: Content) -> None:
    Participant.objects.filter(user__username="bob").update(left_at=timezone.now())


def is_deactivated(chat: Chat, content: Content) -> None:
    User.objects.filter(username="bob").update(is_active=False)


def deletes_the_message(chat: Chat, content: Content) -> None:
    ContentUse.objects.filter(chat=chat, content=content).delete()


def deletes_the_content(chat: Chat, content: Content) -> None:
    content.delete()


def loses_the_right(chat: Chat, content: Content) -> None:
    User.objects.get(username="root").user_permissions.clear()


@pytest.mark.parametrize(
    ("reader", "change", "is_read"),
    [
        ("member", None, True),
        ("member", leaves_the_chat, False),
        ("member", is_deactivated, False),
        ("member", deletes_the_message, False),
        ("member", deletes_the_content, False),
        ("stranger", None, False),
        ("chat", None, True),
        ("chat", deletes_the_message, False),
        ("chat", deletes_the_content, False),
        ("other chat", None, False),
        ("member of two chats", None, False),
        ("owner", None, True),
        ("owner", deletes_the_message, True),
        ("owner in another chat", None, False),
        ("operator", None, True),
        ("operator", deletes_the_message, True),
        ("operator", loses_the_right, False),
        ("operator", deletes_the_content, False),
    ],
)
def test_a_signed_address_is_read_as_long_as_its_reader_may(
    reader: str,
    change: Callable[[Chat, Content], None] | None,
    is_read: bool,  # noqa: FBT001 a case
) -> None:
    ada, bob, root = (factories.user(name) for name in ("ada", "bob", "root"))
    User.objects.filter(pk=root.pk).update(is_staff=True)
    root.user_permissions.add(Permission.objects.get(codename="view_content"))
    chat, both, other = factories.chat(ada, bob), factories.chat(ada, bob), factories.chat(ada)
    content = factories.content(ada)
    reading_rights.use(chat.pk, [str(content.pk)])
    readers = {
        "member": addresses.ContentReader(user_id=bob.pk, chat_id=chat.pk),
        "stranger": addresses.ContentReader(user_id=factories.user("mallory").pk, chat_id=chat.pk),
        "chat": addresses.ContentReader(chat_id=chat.pk),
        "other chat": addresses.ContentReader(chat_id=other.pk),
        # An address about one chat opens nothing that another one shows.
        "member of two chats": addresses.ContentReader(user_id=bob.pk, chat_id=both.pk),
        "owner": addresses.ContentReader(user_id=ada.pk, chat_id=chat.pk),
        "owner in another chat": addresses.ContentReader(user_id=ada.pk, chat_id=other.pk),
        "operator": addresses.ContentReader(user_id=root.pk, is_operator=True),
    }
    url = addresses.signed_url(content.pk, readers[reader])

    if change is not None:
        change(chat, content)

    assert (Client().get(url).status_code == 200) == is_read


def test_each_address_is_signed_for_a_reader() -> None:
    with pytest.raises(ValueError, match="A reader must be"):
        addresses.ContentReader()
    chat, content = factories.chat(), factories.content(factories.user("ada"))
    reading_rights.use(chat.pk, [str(content.pk)])
    # As older versions signed them.
    value = f"{content.pk}:p.."
    signature = TimestampSigner(salt="content reader").sign(value)[len(value) + 1 :]
    url = f"{addresses.content_url(content.pk)}?for=p..&signature={quote(signature)}"
    assert Client().get(url).status_code == 404


@pytest.mark.parametrize(("is_member", "is_read"), [(True, True), (False, False)])
def test_what_an_answer_shows_is_read_before_it_has_ended(is_member: bool, is_read: bool) -> None:  # noqa: FBT001 a case
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada, bob) if is_member else factories.chat(ada)
    content = factories.content(ada)
    Content.objects.filter(pk=content.pk).update(owner=None, owner_key=f"chat:{chat.pk}")
    url = addresses.signed_url(content.pk, addresses.ContentReader(user_id=bob.pk, chat_id=chat.pk))

    assert (Client().get(url).status_code == 200) == is_read


def test_an_operator_opens_a_file_and_it_is_recorded() -> None:
    root, content = factories.superuser(), factories.content(factories.user("ada"))
    client = signed_in(root)
    address = reverse("admin:chat_app_content_open", args=[content.pk])
    page = client.get(reverse("admin:chat_app_content_change", args=[content.pk]))
    assert address in page.content.decode()

    led = client.get(address)

    assert body_of(Client().get(led.headers["Location"])) == factories.png()
    # The page shows the name of the file, which is content as well.
    records = AuditRecord.objects.filter(object_id=str(content.pk))
    assert [(record.actor, record.action) for record in records] == [(root, "content.read")] * 2
    assert signed_in(factories.user("bob", is_staff=True)).get(address).status_code == 403
    missing = reverse("admin:chat_app_content_open", args=[uuid.uuid4()])
    assert client.get(missing).status_code == 404
