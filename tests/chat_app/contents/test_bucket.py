"""Files in a bucket: stored, read with the same rights, and deleted as those on a disk are."""

from __future__ import annotations

import asyncio
import io
import logging
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from django.core.files.storage import default_storage

from chat_app.contents import bucket as buckets
from chat_app.contents import quota, storage, uploads
from chat_app.contents.bucket import BucketError, BucketStorage
from chat_app.conversation.erasure import erase_profile
from chat_app.models import Content
from tests import services
from tests.buckets import make_bucket, s3_server
from tests.live_server import alice, bob, demo, impatience, web
from uamp_project import health

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

    from tests.buckets import Bucket
    from tests.live_server import Person

__all__ = ["alice", "bob", "demo", "impatience", "web"]

pytestmark = pytest.mark.any_database

NOISE = bytes(range(256)) * 4096


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Serve S3."""
    with s3_server() as address:
        yield address


@pytest.fixture
def bucket(endpoint: str, settings: Settings) -> Bucket:
    """Store files in a bucket of the test's own."""
    new_bucket = make_bucket(endpoint)
    for name, value in new_bucket.environment.items():
        setattr(settings, name, value)
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {"BACKEND": "chat_app.contents.bucket.BucketStorage"},
    }
    return new_bucket


def upload(web: httpx.Client, who: Person, data: bytes = NOISE) -> httpx.Response:
    return web.post("/api/v1/contents", files={"file": ("a.bin", data)}, headers=who.headers)


def test_a_file_is_read_through_the_server_by_those_who_may_and_not_from_the_bucket(
    web: httpx.Client,
    alice: Person,
    bob: Person,
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loops: list[Any] = []
    readinto = buckets.ObjectReader.readinto

    def watched(reader: Any, buffer: Any) -> int:
        loops.append(asyncio._get_running_loop())
        return readinto(reader, buffer)

    monkeypatch.setattr(buckets.ObjectReader, "readinto", watched)
    answer = upload(web, alice)
    stored = answer.json()
    ((key, data),) = bucket.objects().items()
    assert data == NOISE

    assert web.get(stored["url"], headers=alice.headers).content == NOISE
    part = web.get(stored["url"], headers={**alice.headers, "Range": "bytes=1000-1009"})
    assert (part.status_code, part.content) == (206, NOISE[1000:1010])
    assert part.headers["Content-Security-Policy"].startswith("sandbox")
    assert web.get(stored["url"], headers=bob.headers).status_code == 404
    assert loops
    assert set(loops) == {None}

    described = web.get(answer.headers["Location"], headers=alice.headers)
    assert web.get(described.json()["signed_url"]).content == NOISE
    assert bucket.endpoint not in described.text
    assert bucket.name not in described.text
    assert httpx.get(f"{bucket.endpoint}/{bucket.name}/{key}").status_code == 403
    with pytest.raises(NotImplementedError):
        default_storage.url(key)


def test_a_file_in_parts_leaves_one_object(alice: Person, bucket: Bucket) -> None:
    upload = uploads.begin(user_id=alice.user.pk, length=len(NOISE), filename="a.bin", mime_type="")
    half = len(NOISE) // 2
    uploads.add_part(upload.pk, offset=0, data=NOISE[:half])
    assert set(bucket.objects().values()) == {NOISE[:half]}
    uploads.add_part(upload.pk, offset=half, data=NOISE[half:])
    assert list(bucket.objects().values()) == [NOISE]


def store(owner: Person, data: bytes = b"text") -> Content:
    return storage.store(
        data,
        mime_type="text/plain",
        filename="a.txt",
        owner=quota.ContentOwner(user_id=owner.user.pk),
    )


def test_an_erased_person_leaves_no_object(
    alice: Person,
    bob: Person,
    bucket: Bucket,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    store(alice)
    file_of_bob = store(bob, b"of bob")
    with django_capture_on_commit_callbacks(execute=True):
        erase_profile(alice.user.pk)
    assert list(bucket.objects().values()) == [b"of bob"]
    assert list(Content.objects.all()) == [file_of_bob]


def test_a_file_that_is_not_wanted_after_all_is_deleted(alice: Person, bucket: Bucket) -> None:
    content = store(alice)
    storage.discard([str(content.pk)], since=content.created_at)
    assert bucket.objects() == {}


def test_a_bucket_that_does_not_answer_is_a_503_and_stores_nothing(
    web: httpx.Client,
    alice: Person,
    bucket: Bucket,
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings.UAMP_S3_ENDPOINT = f"http://127.0.0.1:{services.free_port()}"
    settings.STORAGES = dict(settings.STORAGES)
    answer = upload(web, alice)
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert not Content.objects.exists()
    assert bucket.objects() == {}
    assert "was not deleted from the bucket" in caplog.text
    with pytest.raises(BucketError):
        health._reach_the_bucket()


def test_readiness_needs_the_bucket(bucket: Bucket) -> None:
    health._reach_the_bucket()
    bucket.client.delete_bucket(Bucket=bucket.name)
    with pytest.raises(BucketError):
        health._reach_the_bucket()


def test_a_reader_reads_from_anywhere(bucket: Bucket) -> None:
    bucket.client.put_object(Bucket=bucket.name, Key="a", Body=NOISE)
    with default_storage.open("a") as file:
        assert file.read(3) == NOISE[:3]
        assert file.seek(-4, io.SEEK_END) == len(NOISE) - 4
        assert (file.read(), file.read()) == (NOISE[-4:], b"")
        file.seek(10)
        file.seek(5, io.SEEK_CUR)
        assert (file.tell(), file.read(2)) == (15, NOISE[15:17])
    with pytest.raises(FileNotFoundError):
        default_storage.open("b")
    with pytest.raises(ValueError, match="whole"):
        default_storage.open("a", "wb")


def test_the_key_and_the_bucket_are_not_logged(
    alice: Person, bucket: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    store(alice)
    assert bucket.environment["UAMP_S3_SECRET_KEY"] not in caplog.text


def test_the_bucket_has_limits_for_its_waits(bucket: Bucket) -> None:
    options = BucketStorage().get_default_settings()["client_config"]
    assert (options.connect_timeout, options.read_timeout) == (5, 30)
