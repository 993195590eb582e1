"""Files in parts over REST (tus 1.0): continued, resumed wrongly, bounded and forgotten."""

from __future__ import annotations

import base64
import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from django.conf import settings
from django.contrib.auth.models import Group
from django.core.files.storage import FileSystemStorage, default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.utils import timezone

from agents_app.rest.rights import Rights
from chat_app.contents import storage, uploads
from chat_app.contents.quota import ContentOwner, largest_file
from chat_app.models import Content, Upload, UploadPart
from sessions_app.access.keys import KeyRequest, make_key
from tests import factories
from tests.chat_app.rest.rest_caller import bearer, check_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)

TUS = {"Tus-Resumable": "1.0.0"}
PART = "application/offset+octet-stream"


def begin(client: Client, length: int, name: str = "a.txt", kind: str = "text/plain") -> Any:
    pairs = (("filename", name), ("filetype", kind))
    metadata = ",".join(f"{k} {base64.b64encode(v.encode()).decode()}" for k, v in pairs)
    headers = {**TUS, "Upload-Length": str(length), "Upload-Metadata": metadata}
    return client.post("/api/v1/uploads", headers=headers)


def send(client: Client, path: str, offset: int, data: bytes, **headers: str) -> Any:
    all_headers = {**TUS, "Upload-Offset": str(offset), **headers}
    return client.patch(path, data, content_type=PART, headers=all_headers)


@pytest.mark.parametrize("protocol", ["uamp", "a2a"])
@pytest.mark.parametrize("method", ["POST", "GET", "HEAD", "PATCH", "DELETE", "OPTIONS"])
def test_a_key_for_other_protocols_is_refused(method: str, protocol: str) -> None:
    rights = Rights(scopes=frozenset({"*"}), protocols=frozenset({protocol}))
    secret = make_key(factories.user("ada").pk, KeyRequest(name="narrow", rights=rights)).secret
    path = "/api/v1/uploads" if method == "POST" else f"/api/v1/uploads/{uuid.uuid4()}"
    headers = {**TUS, "Authorization": f"Bearer {secret}"}
    refused = Client().generic(method, path, headers=headers)
    assert refused.status_code == 403
    assert refused["Tus-Max-Size"] == str(settings.UAMP_UPLOAD_BYTES)
    assert not Upload.objects.exists()


def stored_parts() -> list[str]:
    return [str(part.blob.name) for part in UploadPart.objects.all()]


def test_a_file_arrives_in_parts_and_resumes_after_a_loss() -> None:
    client = bearer(factories.user("ada"))
    upload = begin(client, 11)
    path = upload["Location"]
    assert (upload.status_code, upload["Upload-Offset"], upload["Tus-Resumable"]) == (
        201,
        "0",
        "1.0.0",
    )
    assert send(client, path, 0, b"hello ")["Upload-Offset"] == "6"
    head = client.head(path, headers=TUS)
    assert (head["Upload-Offset"], head["Upload-Length"]) == ("6", "11")
    assert "no-store" in head["Cache-Control"]
    (part,) = stored_parts()
    done = send(client, path, 6, b"world")
    content = Content.objects.get()
    assert (done.status_code, done["X-Content-Id"]) == (204, str(content.pk))
    assert (storage.read(content), content.filename) == (b"hello world", "a.txt")
    assert client.get(path).json()["content"]["content_id"] == str(content.pk)
    assert stored_parts() == []
    assert not default_storage.exists(part)
    # The last part again leads to the same file.
    check_problem(send(client, path, 6, b"world"), 409, "wrong_offset")
    assert send(client, path, 11, b"")["X-Content-Id"] == str(content.pk)


def test_what_does_not_fit_is_refused_and_changes_nothing(settings: Settings) -> None:
    client, other = bearer(factories.user("ada")), bearer(factories.user("bob"))
    path = begin(client, 4)["Location"]
    send(client, path, 0, b"ab")
    for offset, data, status, code in (
        (0, b"ab", 409, "wrong_offset"),
        (3, b"c", 409, "wrong_offset"),
        (2, b"cde", 422, "invalid_media"),
    ):
        check_problem(send(client, path, offset, data), status, code)
    check_problem(
        send(client, path, 2, b"c", **{"Tus-Resumable": "0.2"}), 412, "precondition_failed"
    )
    check_problem(send(client, path, 2, b"c", **{"Upload-Offset": "x"}), 400, "invalid")
    wrong_type = client.patch(
        path, b"c", content_type="text/plain", headers={**TUS, "Upload-Offset": "2"}
    )
    check_problem(wrong_type, 415, "unsupported_media_type")
    for method in ("get", "patch", "delete"):
        check_problem(getattr(other, method)(path, headers=TUS), 404, "not_found")
    assert client.get(path).json()["offset"] == 2
    settings.UAMP_BODY_BYTES = 1
    check_problem(send(client, path, 2, b"cd"), 413, "content_too_large")
    check_problem(client.get(f"/api/v1/uploads/{uuid.uuid4()}"), 404, "not_found")
    assert client.delete(path, headers=TUS).status_code == 204
    assert (Upload.objects.count(), stored_parts()) == (0, [])


def test_a_file_of_another_type_is_refused_at_its_end() -> None:
    client = bearer(factories.user("ada"))
    path = begin(client, 4, "a.png", "image/png")["Location"]
    send(client, path, 0, b"no")
    check_problem(send(client, path, 2, b"ne"), 422, "invalid_media")
    assert (Upload.objects.count(), stored_parts(), Content.objects.count()) == (0, [], 0)


def test_uploads_are_bounded_counted_and_forgotten(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.UAMP_STORED_BYTES_PER_USER = 10
    client = bearer(factories.user("ada"))
    for length in ("0", str(settings.UAMP_UPLOAD_BYTES + 1)):
        check_problem(begin(client, int(length)), 422, "invalid_media")
    path = begin(client, 6)["Location"]
    # What is promised counts, though it is not there yet.
    check_problem(begin(client, 5), 413, "quota_exceeded")
    monkeypatch.setattr(uploads, "OPEN_UPLOADS", 1)
    check_problem(begin(client, 1), 413, "quota_exceeded")
    monkeypatch.setattr(uploads, "PARTS", 1)
    send(client, path, 0, b"a")
    check_problem(send(client, path, 1, b"b"), 422, "invalid_media")
    (part,) = stored_parts()
    assert uploads.forget_expired(limit=10) == 0
    Upload.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    check_problem(client.get(path), 404, "not_found")
    assert uploads.forget_expired(limit=10) == 1
    assert not default_storage.exists(part)


class InterruptedDisk(FileSystemStorage):
    """A disk that calls a function, once, before a file is written or after it is deleted."""

    meanwhile: ClassVar[dict[str, Callable[[], object]]] = {}

    def _save(self, name: str, content: Any) -> str:
        self.meanwhile.pop("write", bool)()
        saved: str = super()._save(name, content)  # type: ignore[misc]
        return saved

    def delete(self, name: str) -> None:
        """Delete a file."""
        super().delete(name)
        self.meanwhile.pop("delete", bool)()


@pytest.fixture
def folder(settings: Settings, tmp_path: Path) -> Iterator[Path]:
    """Store files on an InterruptedDisk."""
    settings.MEDIA_ROOT = tmp_path
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {"BACKEND": f"{__name__}.{InterruptedDisk.__name__}"},
    }
    yield tmp_path
    InterruptedDisk.meanwhile.clear()


def files_in(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


def test_a_part_that_arrives_during_a_deletion_leaves_no_file(folder: Path) -> None:
    client = bearer(factories.user("ada"))
    path = begin(client, 4)["Location"]
    upload = Upload.objects.get()
    send(client, path, 0, b"ab")
    arrived: list[Any] = []
    InterruptedDisk.meanwhile["delete"] = lambda: arrived.append(send(client, path, 2, b"c"))
    uploads.delete(upload.pk)
    check_problem(arrived[0], 404, "not_found")
    assert (Upload.objects.count(), stored_parts(), files_in(folder)) == (0, [], [])


def test_a_part_of_an_upload_that_is_deleted_while_it_is_written_leaves_no_file(
    folder: Path,
) -> None:
    client = bearer(factories.user("ada"))
    path = begin(client, 4)["Location"]
    upload = Upload.objects.get()
    InterruptedDisk.meanwhile["write"] = lambda: uploads.delete(upload.pk)
    check_problem(send(client, path, 0, b"ab"), 404, "not_found")
    assert files_in(folder) == []


def test_a_part_that_another_one_overtakes_is_refused(folder: Path) -> None:
    client = bearer(factories.user("ada"))
    path = begin(client, 4)["Location"]
    InterruptedDisk.meanwhile["write"] = lambda: send(client, path, 0, b"xyz")
    refused = send(client, path, 0, b"ab")
    check_problem(refused, 409, "wrong_offset")
    assert refused.json()["offset"] == 3
    assert files_in(folder) == [b"xyz"]


def test_a_file_is_completed_once_and_measured_without_a_lock(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = bearer(factories.user("ada"))
    path = begin(client, 8, "a.pdf", "application/pdf")["Location"]
    in_transaction: list[bool] = []

    def measured(*_: object, **__: object) -> int:
        in_transaction.append(connection.in_atomic_block)
        if len(in_transaction) == 1:
            assert send(client, path, 8, b"").status_code == 204
        return 1

    monkeypatch.setattr(storage, "extent_of", measured)
    done = send(client, path, 0, b"%PDF-1.4")
    assert done["X-Content-Id"] == str(Content.objects.get().pk)
    assert in_transaction == [False, False]
    assert files_in(folder) == [b"%PDF-1.4"]


def test_a_completed_file_that_was_deleted_is_not_stored_again(folder: Path) -> None:
    client = bearer(factories.user("ada"))
    path = begin(client, 2)["Location"]
    send(client, path, 0, b"ab")
    Content.objects.get().delete()
    check_problem(send(client, path, 2, b""), 422, "invalid_media")
    assert Upload.objects.count() == 0


def test_a_file_has_the_size_that_a_role_allows(settings: Settings) -> None:
    settings.UAMP_UPLOAD_BYTES = 1000
    settings.UAMP_UPLOAD_BYTES_BY_GROUP = {"": 10, "Writers": 20, "Editors": 900}
    ada = factories.user()
    client = bearer(ada)

    def stored(size: int) -> int:
        file = SimpleUploadedFile("a.txt", b"a" * size, content_type="text/plain")
        status = client.post("/api/v1/contents", {"file": file}).status_code
        upload = begin(client, size)
        assert upload.status_code == (201 if status == 201 else 422)
        return int(status)

    assert [stored(10), stored(11)] == [201, 413]
    ada.groups.add(Group.objects.create(name="Readers"))
    assert stored(11) == 413
    ada.groups.add(Group.objects.create(name="Writers"))
    assert [stored(20), stored(21)] == [201, 413]
    ada.groups.add(Group.objects.create(name="Editors"))
    assert [stored(900), stored(901)] == [201, 413]
    assert begin(client, 5)["Tus-Max-Size"] == "900"
    # No group may store more than the server takes, and agents store as much as that.
    settings.UAMP_UPLOAD_BYTES = 500
    assert [stored(500), stored(501)] == [201, 413]
    assert largest_file(ContentOwner(key="chat_1")) == 500
    assert largest_file(ContentOwner(key="anonymous:1")) == 10
