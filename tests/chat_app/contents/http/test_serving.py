"""Serving files: never as a page, by range, from a cache, piece by piece (UAMP §8.4.1)."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from tests import factories
from tests.chat_app.contents.http.content_client import body_of, signed_in

pytestmark = pytest.mark.django_db


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
    ("range_header", "status", "served", "content_range"),
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
    range_header: str, status: int, served: bytes, content_range: str | None
) -> None:
    ada = factories.user("ada")
    content = factories.content(ada, b"0123456789", mime_type="text/plain", filename="a.txt")
    response = signed_in(ada).get(f"/api/content/{content.pk}", headers={"Range": range_header})
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
