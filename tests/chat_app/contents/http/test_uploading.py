"""Files that are uploaded: what may come in, and what is refused (UAMP §8.4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.test import Client

from chat_app.models import Content
from sessions_app.access.auth import create_api_key
from tests import factories
from tests.chat_app.contents.http.content_client import body_of, signed_in, upload

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django.fixtures import Settings


pytestmark = pytest.mark.django_db


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
