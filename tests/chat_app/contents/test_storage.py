"""Bounds of a person's stored files, and a full disk that keeps nothing of a refused one."""

from __future__ import annotations

import base64
import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from django.core.files.storage import FileSystemStorage
from django.db import connection

from chat_app.contents import extents, quota, storage
from chat_app.models import Content
from tests.client import new_event
from tests.live_server import alice, bob, demo, impatience, web

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx
    from pytest_django import Settings

    from tests.live_server import Person

__all__ = ["alice", "bob", "demo", "impatience", "web"]


@pytest.fixture(autouse=True)
def folder(settings: Settings, tmp_path: Path) -> Path:
    """Store files in a folder of the test's own."""
    settings.MEDIA_ROOT = tmp_path / "content"
    return tmp_path / "content"


def upload(web: httpx.Client, who: Person, data: bytes) -> httpx.Response:
    return web.post("/api/v1/contents", files={"file": ("a.txt", data)}, headers=who.headers)


def files_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("setting", "limit"), [("BYTES", 10), ("FILES", 1)])
def test_a_person_stores_so_much_and_no_more(
    web: httpx.Client,
    alice: Person,
    bob: Person,
    settings: Settings,
    folder: Path,
    setting: str,
    limit: int,
) -> None:
    setattr(settings, f"UAMP_STORED_{setting}_PER_USER", limit)
    assert upload(web, alice, b"six by").status_code == 201
    before = files_in(folder)
    answer = upload(web, alice, b"five.")

    assert (answer.status_code, answer.json()["code"]) == (413, "quota_exceeded")
    assert files_in(folder) == before
    assert len(before) == 1
    assert upload(web, bob, b"five.").status_code == 201


def test_visitors_have_one_quota_together(web: httpx.Client, settings: Settings) -> None:
    settings.UAMP_ANONYMOUS_STORED_FILES = 1

    def ask() -> dict[str, Any]:
        data = base64.b64encode(b"text").decode()
        events = [
            new_event("session.create", uamp_version="1.0", session={}, agent="echo"),
            new_event("input.file", file=data, filename="a.txt", mime_type="text/plain"),
            new_event("response.create"),
        ]
        frames: list[dict[str, Any]] = web.post("/uamp", json=events).json()
        return frames[-1]

    assert ask()["type"] == "response.done"
    assert ask()["error"]["code"] == "quota_exceeded"
    assert Content.objects.count() == 1


class FullDisk(FileSystemStorage):
    """A disk that has room for half of what is written."""

    def _save(self, name: str, content: Any) -> str:
        path = Path(self.path(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.read()
        path.write_bytes(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def full_disk(settings: Settings) -> None:
    """Let files find no space."""
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {"BACKEND": f"{__name__}.{FullDisk.__name__}"},
    }


def check_unavailable(answer: httpx.Response) -> None:
    """Check that an answer says when to try again."""
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert int(answer.headers["Retry-After"]) >= 1


def test_a_full_disk_is_a_503_and_leaves_nothing(
    web: httpx.Client, alice: Person, full_disk: None, folder: Path
) -> None:
    check_unavailable(upload(web, alice, b"some text"))
    create = new_event("session.create", session={}, agent="echo")
    session = web.post("/events", json=create, headers=alice.headers).headers["X-Session-ID"]
    headers = {**alice.headers, "X-Session-ID": session}
    data = base64.b64encode(b"text").decode()
    event = new_event("input.file", file=data, filename="a.txt", mime_type="text/plain")
    web.post("/events", json=event, headers=headers)
    check_unavailable(web.post("/events", json=new_event("response.create"), headers=headers))

    assert files_in(folder) == set()
    assert Content.objects.count() == 0


@pytest.fixture
def rows_refused(alice: Person) -> Iterator[None]:
    """Let the database refuse the rows of contents."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(
                "CREATE TRIGGER refused BEFORE INSERT ON chat_app_content"
                " BEGIN SELECT RAISE(ABORT, 'no room'); END"
            )
        else:
            cursor.execute(
                "CREATE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN RAISE EXCEPTION 'no room'; END $$"
            )
            cursor.execute(
                "CREATE TRIGGER refused BEFORE INSERT ON chat_app_content"
                " FOR EACH ROW EXECUTE FUNCTION refused()"
            )
    yield
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("DROP TRIGGER refused")
        else:
            cursor.execute("DROP FUNCTION refused CASCADE")


def test_a_row_that_is_refused_leaves_no_file(
    alice: Person, rows_refused: None, folder: Path
) -> None:
    owner = quota.ContentOwner(user_id=alice.user.pk)
    with pytest.raises(Exception, match="no room"):
        storage.store(b"text", mime_type="text/plain", filename="a.txt", owner=owner)
    assert files_in(folder) == set()


class WatchedDisk(FileSystemStorage):
    """A disk that calls a function before each write."""

    before_write: ClassVar[Callable[[], None]]

    def _save(self, name: str, content: Any) -> str:
        type(self).before_write()
        saved: str = super()._save(name, content)  # type: ignore[misc]
        return saved


@pytest.fixture
def watched_disk(settings: Settings) -> type[WatchedDisk]:
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {"BACKEND": f"{__name__}.{WatchedDisk.__name__}"},
    }
    return WatchedDisk


def test_a_file_is_measured_and_written_outside_of_transactions(
    alice: Person, watched_disk: type[WatchedDisk], monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[tuple[bool, bool]] = []

    def note(*_: Any, **__: Any) -> int:
        places.append((connection.in_atomic_block, connection.connection is not None))
        return 1

    monkeypatch.setattr(extents, "measure", note)
    monkeypatch.setattr(watched_disk, "before_write", note, raising=False)
    owner = quota.ContentOwner(user_id=alice.user.pk)
    connection.ensure_connection()
    # As in a pool, the connection may be released.
    connection.close_at = 0.0
    storage.store(b"%PDF-1.4", mime_type="application/pdf", filename="a.pdf", owner=owner)
    assert places == [(False, False)] * 2


def test_a_file_beyond_the_quota_is_not_measured(
    alice: Person, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.UAMP_STORED_BYTES_PER_USER = 3
    monkeypatch.setattr(storage, "extent_of", None)
    owner = quota.ContentOwner(user_id=alice.user.pk)
    with pytest.raises(quota.QuotaExceeded):
        storage.store(b"text", mime_type="text/plain", filename="a.txt", owner=owner)


@pytest.mark.parametrize("max_files", [1, 2])
def test_a_file_stored_twice_at_once_is_one_file(
    alice: Person,
    watched_disk: type[WatchedDisk],
    folder: Path,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    max_files: int,
) -> None:
    settings.UAMP_STORED_FILES_PER_USER = max_files

    def store() -> Content:
        return storage.store(
            b"text",
            mime_type="text/plain",
            filename="a.txt",
            owner=quota.ContentOwner(user_id=alice.user.pk),
            content_id="5f0c1d7e-0000-4000-8000-000000000001",
        )

    def store_meanwhile() -> None:
        monkeypatch.setattr(watched_disk, "before_write", lambda: None)
        store()

    monkeypatch.setattr(watched_disk, "before_write", store_meanwhile, raising=False)
    assert storage.read(store()) == b"text"
    assert Content.objects.count() == len(files_in(folder)) == 1
