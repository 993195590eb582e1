"""Static files while processes of two releases serve the same pages."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.test import RequestFactory

from tests.threads import join_threads
from uamp_project.edge.bundle_copies import KEEP_SECONDS, refresh_copies
from uamp_project.edge.static_files import StaticFilesMiddleware

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django import Settings

OLD, NEW = "later-AAAAAAA1.js", "later-BBBBBBB2.js"
STYLE = "chat-CCCCCCC3.css"


async def not_served(_: HttpRequest) -> HttpResponseBase:
    return HttpResponse(status=HTTPStatus.NOT_FOUND)


class Release:
    """A process of one release, with its own static files."""

    def __init__(self, folder: Path, settings: Settings, digest: str, *names: str) -> None:
        dist = folder / "static" / "dist"
        dist.mkdir(parents=True)
        for name in names:
            (dist / name).write_text(f"text of {name}")
        (dist / "manifest.json").write_text("{}")
        (folder / "static" / "page.js").write_text(f"page of {digest}")
        self.folder = folder
        self._settings = settings
        settings.STATIC_ROOT, settings.STATIC_URL = folder / "static", f"/static/{digest}/"
        settings.SERVESTATIC_USE_FINDERS = False
        self._middleware = StaticFilesMiddleware(not_served)

    def start(self) -> None:
        """Copy the bundles, as each process does when it starts."""
        self._settings.BASE_DIR = self.folder
        refresh_copies()

    def get(self, path: str) -> tuple[int, str, str]:
        """Return status, text and caching of a file."""
        return asyncio.run(self._get(path))

    async def _get(self, path: str) -> tuple[int, str, str]:
        response: Any = await self._middleware(RequestFactory().get(path))
        if response.status_code != HTTPStatus.OK:
            return response.status_code, "", ""
        text = b"".join([part async for part in response.streaming_content])
        return response.status_code, text.decode(), response["Cache-Control"]


@pytest.fixture
def releases(tmp_path: Path, settings: Settings) -> tuple[Release, Release]:
    """Return an old and a new release that share a DATA_DIR."""
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()
    old = Release(tmp_path / "old", settings, "0" * 12, OLD, STYLE)
    new = Release(tmp_path / "new", settings, "1" * 12, NEW, STYLE)
    return old, new


def copies(settings: Settings) -> set[str]:
    return {file.name for file in (settings.DATA_DIR / "bundles").iterdir()}


def test_each_release_serves_the_bundles_of_the_other(
    releases: tuple[Release, Release], settings: Settings
) -> None:
    old, new = releases
    for release in releases:
        release.start()

    assert copies(settings) == {OLD, NEW, STYLE}
    for release, digest, name in ((old, "1" * 12, NEW), (new, "0" * 12, OLD)):
        for path in (f"/static/{digest}/dist/{name}", f"/static/dist/{name}"):
            status, text, caching = release.get(path)
            assert (status, text) == (HTTPStatus.OK, f"text of {name}")
            assert "immutable" in caching


def test_a_bundle_below_another_digest_never_changes_and_a_module_may(
    releases: tuple[Release, Release],
) -> None:
    old, _ = releases
    status, _, caching = old.get(f"/static/{'1' * 12}/dist/{STYLE}")
    module = old.get(f"/static/{'1' * 12}/page.js")

    assert (status, "immutable" in caching) == (HTTPStatus.OK, True)
    assert module == (HTTPStatus.OK, f"page of {'0' * 12}", "max-age=60, public")


@pytest.mark.parametrize(
    "path",
    [
        "dist/later-ZZZZZZZ9.js",
        "dist/../secret_key",
        "dist/../bundles/later-AAAAAAA1.js",
        "dist/%2e%2e/secret_key",
        "dist/sub/later-AAAAAAA1.js",
        "bundles/later-AAAAAAA1.js",
        "dist/secret_key",
        "dist/manifest-AAAAAAA1.json",
        "dist/plan-AAAAAAA1.js%0A",
    ],
)
def test_nothing_else_in_the_folder_of_data_is_served(
    releases: tuple[Release, Release], settings: Settings, path: str
) -> None:
    old, new = releases
    old.start()
    (settings.DATA_DIR / "secret_key").write_text("secret")
    for name in ("secret_key", "manifest-AAAAAAA1.json", "plan-AAAAAAA1.js\n"):
        (settings.DATA_DIR / "bundles" / name).write_text("secret")

    assert new.get(f"/static/{'0' * 12}/{path}")[0] == HTTPStatus.NOT_FOUND


def test_copies_are_deleted_a_month_after_their_last_use(
    releases: tuple[Release, Release], settings: Settings
) -> None:
    old, new = releases
    old.start()
    folder = settings.DATA_DIR / "bundles"
    (folder / "tmpdraft").touch()
    long_ago = time.time() - KEEP_SECONDS - 60
    for name in (OLD, STYLE, "tmpdraft"):
        os.utime(folder / name, (long_ago, long_ago))
    new.start()

    assert copies(settings) == {NEW, STYLE}
    os.utime(folder / NEW, (long_ago, long_ago))
    new.start()
    assert copies(settings) == {NEW, STYLE}


def test_processes_that_start_at_once_copy_whole_files(
    releases: tuple[Release, Release], settings: Settings
) -> None:
    old, _ = releases
    text = "x" * 5_000_000
    (old.folder / "static" / "dist" / OLD).write_text(text)
    settings.BASE_DIR = old.folder
    threads = [threading.Thread(target=refresh_copies) for _ in range(8)]
    for thread in threads:
        thread.start()
    join_threads(threads)

    assert copies(settings) == {OLD, STYLE}
    assert (settings.DATA_DIR / "bundles" / OLD).read_text() == text


def test_a_folder_that_cannot_be_written_to_stops_no_start(
    releases: tuple[Release, Release], settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = releases
    (settings.DATA_DIR / "bundles").touch()
    with caplog.at_level(logging.WARNING):
        old.start()

    (record,) = caplog.records
    assert "pages that are open during an update may break" in record.getMessage()
    assert old.get(f"/static/dist/{OLD}")[0] == HTTPStatus.OK
    assert new.get(f"/static/dist/{OLD}")[0] == HTTPStatus.NOT_FOUND


def test_a_checkout_without_bundles_copies_nothing(tmp_path: Path, settings: Settings) -> None:
    settings.DATA_DIR, settings.BASE_DIR = tmp_path, tmp_path / "checkout"
    refresh_copies()

    assert copies(settings) == set()
