"""The chats as an app: the manifest, the service worker, and the page without a network."""

import json
import re
from io import BytesIO
from pathlib import Path

import pytest
from django.test import Client
from PIL import Image
from pytest_django import Settings

from chat_app.browser.bundle import bundle
from chat_app.browser.site import name_site

STATIC = Path(__file__).resolve().parents[3] / "static"
RELEASE = re.compile(r"^const RELEASE = (\{.*\});$", re.MULTILINE)


def release() -> dict[str, object]:
    """Return the files that the service worker keeps."""
    match = RELEASE.match(Client().get("/service-worker.js").text)
    assert match is not None
    data = json.loads(match.group(1))
    assert isinstance(data, dict)
    return data


@pytest.mark.django_db
def test_the_manifest_has_the_name_of_the_server_and_words_of_the_language() -> None:
    name_site("Müller & Söhne")
    response = Client().get("/manifest/de.webmanifest")

    assert response["Content-Type"] == "application/manifest+json"
    manifest = response.json()
    assert manifest["name"] == "Müller & Söhne"
    assert (manifest["id"], manifest["start_url"], manifest["scope"]) == ("/", "/", "/")
    assert manifest["display"] == "standalone"
    assert [shortcut["name"] for shortcut in manifest["shortcuts"]] == ["Agenten", "Geld", "Konto"]
    assert Client().get("/manifest/xx.webmanifest").status_code == 404


@pytest.mark.django_db
def test_the_icons_are_there_in_the_sizes_that_the_manifest_says() -> None:
    icons = Client().get("/manifest/en.webmanifest").json()["icons"]

    assert {entry["purpose"] for entry in icons} == {"any", "maskable"}
    for icon in icons:
        data = (STATIC / icon["src"].removeprefix("/static/")).read_bytes()
        if icon["type"] == "image/png":
            assert "{}x{}".format(*Image.open(BytesIO(data)).size) == icon["sizes"]
    # A launcher cuts a circle out of it: nothing may shine through.
    maskable = next(entry["src"] for entry in icons if entry["purpose"] == "maskable")
    image = Image.open(STATIC / maskable.removeprefix("/static/")).convert("RGBA")
    assert image.getchannel("A").getextrema() == (255, 255)


@pytest.mark.django_db
def test_pages_name_the_manifest_of_their_language() -> None:
    for language in ("en", "de"):
        page = Client().get("/login", headers={"Accept-Language": language, "Accept": "text/html"})
        assert f'<link rel="manifest" href="/manifest/{language}.webmanifest">' in page.text


def test_the_service_worker_is_a_script_that_browsers_ask_for_again() -> None:
    response = Client().get("/service-worker.js")

    assert response["Content-Type"] == "text/javascript; charset=utf-8"
    assert response["Cache-Control"] == "no-cache"
    # Its own policy holds for what it fetches.
    assert "connect-src 'self'" in response["Content-Security-Policy"]
    assert "Set-Cookie" not in response


def test_the_service_worker_keeps_the_whole_bundle() -> None:
    manifest = bundle()
    assert manifest is not None, "run: make pages"

    assert release()["files"] == [f"/static/dist/{name}" for name in sorted(manifest.files)]


def test_another_bundle_is_another_release(settings: Settings) -> None:
    first = release()
    settings.UAMP_BUNDLED_PAGES = False

    assert release()["files"] == []
    assert release()["id"] != first["id"]


@pytest.mark.django_db
def test_the_page_without_a_network_loads_only_what_is_kept() -> None:
    page = Client().get("/offline", headers={"Accept": "text/html"})

    assert "You&#x27;re offline" in page.text or "You're offline" in page.text
    addresses = set(
        re.findall(r'<(?:link rel="stylesheet" href|script[^>]+src)="([^"]+)"', page.text)
    )
    assert addresses
    assert addresses <= set(release()["files"])  # type: ignore[call-overload]
    assert "no-store" in page["Cache-Control"]


@pytest.mark.django_db
def test_a_sign_out_that_did_not_reach_the_server_says_so() -> None:
    assert "the server couldn" not in Client().get("/offline").text
    assert "the server couldn" in Client().get("/offline?sign-out").text
