"""Content over HTTP: what may come in, who may read it, and how it is served (UAMP §8.4.1)."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.signing import TimestampSigner
from django.test import AsyncClient, Client
from django.urls import reverse
from django.utils import timezone

import uamp
from audit_app.models import AuditRecord
from chat_app.contents import addresses, reading_rights, references
from chat_app.members import participants
from chat_app.models import Content, ContentUse, Participant
from sessions_app.access.auth import create_api_key
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_django.fixtures import Settings

    from chat_app.models import Chat

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def media(settings: Settings, tmp_path: Path) -> Path:
    settings.MEDIA_ROOT = tmp_path
    return tmp_path


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def upload(client: Client, data: bytes, *, name: str, mime_type: str) -> Any:
    file = SimpleUploadedFile(name, data, content_type=mime_type)
    return client.post("/api/v1/contents", {"file": file})


def body_of(response: Any) -> bytes:
    return b"".join(response.streaming_content)


# --- In ---


def test_a_picture_is_stored_and_described() -> None:
    ada = factories.user("ada")
    data = factories.png()
    response = upload(signed_in(ada), data, name="../../a\u202epicture.png", mime_type="image/png")
    assert response.status_code == 201
    content = Content.objects.get()
    assert response["Location"] == f"/api/v1/contents/{content.pk}"
    body = response.json()
    url = f"/api/content/{content.pk}"
    assert body["content_id"] == str(content.pk)
    assert (body["url"], body["mime_type"], body["size_bytes"]) == (url, "image/png", len(data))
    assert (body["filename"], body["sha256"]) == ("apicture.png", content.sha256)
    assert body["item"] == {
        "type": "image",
        "image": {"url": url},
        "format": "png",
        "content_id": str(content.pk),
    }
    described = signed_in(ada).get(f"/api/v1/contents/{content.pk}").json()
    assert {k: v for k, v in described.items() if k != "signed_url"} == {
        k: v for k, v in body.items() if k != "signed_url"
    }
    assert body_of(signed_in(ada).get(url)) == data


def test_a_program_uploads_with_its_key_alone() -> None:
    key = create_api_key(factories.user("ada"), name="tests")
    headers = {"Authorization": f"Bearer {key}"}
    client = Client(enforce_csrf_checks=True, headers=headers)
    response = upload(client, b"a,b\n1,2\n", name="a.csv", mime_type="text/csv")
    assert response.status_code == 201
    assert response.json()["item"]["type"] == "file"


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (b"<html><script>alert(1)</script>", "image/png"),
        (b"", "text/plain"),
        (b"\x89PNG", "image/png"),
        (b"%PDF-1.4\n%...", "image/gif"),
    ],
)
def test_a_file_that_is_not_what_it_says_is_refused(
    data: bytes, mime_type: str, media: Path
) -> None:
    response = upload(signed_in(factories.user()), data, name="a.png", mime_type=mime_type)
    if data:
        assert (response.status_code, response.json()["code"]) == (422, "invalid_media")
    else:
        assert (response.status_code, response.json()["code"]) == (400, "invalid")
    assert response.json()["errors"][0]["pointer"] == "/file"
    assert not Content.objects.exists()
    assert list(media.rglob("*")) == []


@pytest.mark.parametrize(
    ("name", "data", "stored"),
    [
        ("a.csv", b"a,b\n1,2\n", "text/csv"),
        ("A.TSV", b"a\tb\n", "text/tab-separated-values"),
        ("a.md", b"# a", "text/markdown"),
        ("a.csv", b"a\x00b", "application/octet-stream"),
        ("a.csv", b"\xff\xfe", "application/octet-stream"),
        ("a.html", b"<script>alert(1)</script>", "application/octet-stream"),
        ("a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>", "application/octet-stream"),
        ("a.pdf", b"%PDF-1.7\n1 0 obj\n", "application/pdf"),
        ("a.csv", factories.png(), "image/png"),
        ("a.png", factories.png()[:40], "application/octet-stream"),
        ("a.png", b"no picture", "application/octet-stream"),
    ],
)
def test_a_file_without_a_type_has_the_one_that_it_shows(
    name: str, data: bytes, stored: str
) -> None:
    ada = factories.user("ada")
    response = upload(signed_in(ada), data, name=name, mime_type="application/octet-stream")
    assert (response.status_code, response.json()["mime_type"]) == (201, stored)


def test_a_file_may_have_its_limit_and_not_one_byte_more(settings: Settings, media: Path) -> None:
    settings.UAMP_UPLOAD_BYTES = 100
    client = signed_in(factories.user())
    assert upload(client, b"a" * 100, name="a", mime_type="text/plain").status_code == 201
    response = upload(client, b"a" * 101, name="a", mime_type="text/plain")
    assert (response.status_code, response.json()["code"]) == (413, "content_too_large")
    # More than the file and its envelope can have is refused before it is read.
    response = upload(client, b"a" * 100_000, name="a", mime_type="text/plain")
    assert (response.status_code, response.json()["code"]) == (413, "content_too_large")
    assert Content.objects.count() == 1
    assert len([path for path in media.rglob("*") if path.is_file()]) == 1


def test_an_upload_without_a_file_or_as_json_is_refused() -> None:
    client = signed_in(factories.user())
    response = client.post("/api/v1/contents", {"file": "text"})
    assert (response.status_code, response.json()["code"]) == (400, "invalid")
    response = client.post("/api/v1/contents", "{}", content_type="application/json")
    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")
    response = client.post("/api/v1/contents", b"x", content_type="multipart/form-data")
    assert (response.status_code, response.json()["code"]) == (400, "malformed_body")
    assert not Content.objects.exists()


# --- Who may read ---


def test_members_of_a_chat_that_shows_a_content_may_read_it() -> None:
    ada, bob, eve = (factories.user(name) for name in ("ada", "bob", "eve"))
    chat = factories.chat(ada, bob)
    content = factories.content(ada)
    paths = [f"/api/content/{content.pk}", f"/api/v1/contents/{content.pk}"]

    def statuses(user: User) -> list[int]:
        found = []
        for path in paths:
            response = signed_in(user).get(path)
            found.append(response.status_code)
        return found

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
    own, anyone = "https://own", addresses.ContentReader(chat_id="chat_1")
    url = references.absolute_url(elsewhere, base_url=own, reader=anyone)
    assert url == "https://example.org/a.png"
    assert references.absolute_url(uamp.TextContent(text="x"), base_url=own, reader=anyone) is None


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
    with pytest.raises(ValueError, match="A reader is"):
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
    assert [(one.actor, one.action) for one in records] == [(root, "content.read")] * 2
    assert signed_in(factories.user("bob", is_staff=True)).get(address).status_code == 403
    missing = reverse("admin:chat_app_content_open", args=[uuid.uuid4()])
    assert client.get(missing).status_code == 404


# --- Out ---


@pytest.mark.parametrize(
    ("mime_type", "data", "served_as", "disposition"),
    [
        ("image/png", factories.png(), "image/png", 'inline; filename="a b.x"'),
        ("audio/mpeg", b"ID3\x03" + b"\0" * 32, "audio/mpeg", 'inline; filename="a b.x"'),
        ("text/plain", b"a", "text/plain; charset=utf-8", 'attachment; filename="a b.x"'),
        ("application/pdf", b"%PDF-1.4\n", "application/pdf", 'attachment; filename="a b.x"'),
        ("text/html", b"<p>", "application/octet-stream", 'attachment; filename="a b.x"'),
        ("image/svg+xml", b"<svg/>", "application/octet-stream", 'attachment; filename="a b.x"'),
        ("text/csv", b"a,b", "application/octet-stream", 'attachment; filename="a b.x"'),
    ],
)
def test_a_content_is_served_so_that_it_cannot_act_as_a_page(
    mime_type: str, data: bytes, served_as: str, disposition: str
) -> None:
    ada = factories.user("ada")
    content = factories.content(ada, data, mime_type=mime_type, filename="a b.x")
    response = signed_in(ada).get(f"/api/content/{content.pk}", headers={"Accept": "image/*"})
    assert body_of(response) == data
    assert response["Content-Type"] == served_as
    assert response["Content-Disposition"] == disposition
    assert response["Content-Length"] == str(len(data))
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert set(response["Cache-Control"].split(", ")) == {"private", "no-cache"}
    assert response["ETag"] == f'"{content.sha256}"'


def test_a_file_name_in_another_script_is_encoded() -> None:
    ada = factories.user("ada")
    content = factories.content(ada, b"a", mime_type="text/plain", filename='отчёт "1".txt')
    response = signed_in(ada).get(f"/api/content/{content.pk}")
    assert response["Content-Disposition"] == (
        "attachment; filename*=utf-8''%D0%BE%D1%82%D1%87%D1%91%D1%82%20%221%22.txt"
    )


def test_a_known_content_is_not_sent_again() -> None:
    ada = factories.user("ada")
    content = factories.content(ada)
    response = signed_in(ada).get(
        f"/api/content/{content.pk}", headers={"If-None-Match": f'"{content.sha256}"'}
    )
    assert (response.status_code, response.content) == (304, b"")


@pytest.mark.parametrize(
    ("asked", "status", "served", "content_range"),
    [
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=8-", 206, b"89", "bytes 8-9/10"),
        ("bytes=8-99", 206, b"89", "bytes 8-9/10"),
        ("bytes=-3", 206, b"789", "bytes 7-9/10"),
        ("bytes=-99", 200, b"0123456789", None),
        ("bytes=0-", 200, b"0123456789", None),
        ("bytes=10-", 416, b"", "bytes */10"),
        ("bytes=-0", 416, b"", "bytes */10"),
        ("bytes=5-2", 200, b"0123456789", None),
        ("bytes=0-1,4-5", 200, b"0123456789", None),
        ("lines=0-1", 200, b"0123456789", None),
        ("bytes=-", 200, b"0123456789", None),
        ("bytes=" + "9" * 30 + "-", 200, b"0123456789", None),
    ],
)
def test_a_range_is_served_as_asked(
    asked: str, status: int, served: bytes, content_range: str | None
) -> None:
    ada = factories.user("ada")
    content = factories.content(ada, b"0123456789", mime_type="text/plain", filename="a.txt")
    response = signed_in(ada).get(f"/api/content/{content.pk}", headers={"Range": asked})
    assert response.status_code == status
    assert response.headers.get("Content-Range") == content_range
    if status == 416:
        assert response.json()["code"] == "range_not_satisfiable"
        return
    assert (body_of(response) if response.streaming else response.content) == served
    assert response["Content-Length"] == str(len(served))


def test_a_range_of_a_file_that_changed_is_the_whole_file() -> None:
    ada = factories.user("ada")
    content = factories.content(ada, b"0123456789", mime_type="text/plain", filename="a.txt")
    headers = {"Range": "bytes=0-3", "If-Range": '"other"'}
    response = signed_in(ada).get(f"/api/content/{content.pk}", headers=headers)
    assert (response.status_code, body_of(response)) == (200, b"0123456789")


async def test_an_asgi_server_reads_a_large_file_piece_by_piece(
    transactional_db: None,
) -> None:
    data = bytes(range(256)) * 4000
    ada = await sync_to_async(factories.user)("ada")
    content = await sync_to_async(factories.content)(ada, data, mime_type="video/mp4")
    client = AsyncClient()
    await client.aforce_login(ada)
    response: Any = await client.get(f"/api/content/{content.pk}")
    pieces = [piece async for piece in response]
    await sync_to_async(response.close)()
    assert b"".join(pieces) == data
    assert len(pieces) == 4
