"""The language of the pages: chosen, else the browser's; programs are answered in English."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx
import pytest
from django.test import RequestFactory
from django.utils import translation

from tests import factories
from tests.sessions_app.access.web_sign_in import WebSignIn
from uamp_project import languages

if TYPE_CHECKING:
    from tests.conftest import ServerAddress

pytestmark = pytest.mark.django_db(transaction=True)

GERMAN = {"Accept": "text/html", "Accept-Language": "de-AT,de;q=0.9,en;q=0.5"}


def test_the_browsers_language_is_the_first_choice(demo: ServerAddress) -> None:
    with httpx.Client(base_url=demo.http) as web:
        german = web.get("/login", headers=GERMAN)
        other = web.get("/login", headers={**GERMAN, "Accept-Language": "fr"})

    assert '<html lang="de" dir="ltr">' in german.text
    assert german.headers["Content-Language"] == "de"
    assert {"Accept-Language", "Cookie"} <= set(german.headers["Vary"].split(", "))
    assert '<html lang="en" dir="ltr">' in other.text


def test_a_chosen_language_is_kept_in_a_cookie(demo: ServerAddress) -> None:
    factories.user("ada")
    with WebSignIn(demo) as browser:
        browser.try_to_sign_in("ada")
        answer = browser.post("/language", language="de", next="/account")
        page = browser.web.get("/account", headers={"Accept": "text/html"})
        odd = browser.post("/language", language="xx", next="https://elsewhere.example/")

    assert (answer.status_code, answer.headers["Location"]) == (302, "/account")
    assert "HttpOnly" in answer.headers["Set-Cookie"]
    assert '<html lang="de"' in page.text
    assert odd.headers["Location"] == "/"
    assert "language=" not in odd.headers.get("Set-Cookie", "")


def test_the_language_of_an_account_is_that_of_all_its_browsers(demo: ServerAddress) -> None:
    factories.user("ada")
    page = {"Accept": "text/html", "Accept-Language": "en"}
    with WebSignIn(demo) as laptop, WebSignIn(demo) as phone:
        for browser in (laptop, phone):
            browser.try_to_sign_in("ada")
        assert '<html lang="en"' in phone.web.get("/account", headers=page).text
        laptop.post("/language", language="de", next="/account")
        german = phone.web.get("/account", headers=page)
        assert '<html lang="de"' in german.text
        assert "language=de" in german.headers["Set-Cookie"]
        again = phone.web.get("/account", headers=page)
        assert "language=" not in again.headers.get("Set-Cookie", "")
        # The pages before signing in have it too, in a browser that has seen it.
        phone.web.cookies.delete("sessionid")
        assert '<html lang="de"' in phone.web.get("/login", headers=page).text
        # A choice that another browser keeps is older than that of the account.
        laptop.web.cookies.set("language", "en")
        assert '<html lang="de"' in laptop.web.get("/account", headers=page).text


def test_choosing_a_language_needs_the_token_of_a_form(demo: ServerAddress) -> None:
    with httpx.Client(base_url=demo.http) as web:
        answer = web.post("/language", data={"language": "de", "next": "/login"})
    assert answer.status_code == 403
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("path", ["/api/v1/chats", "/api/v1/nothing", "/agents"])
def test_programs_are_answered_in_english(demo: ServerAddress, path: str) -> None:
    accept = "text/html" if path.startswith("/api/") else "application/json"
    request_headers = {"Accept": accept, "Cookie": "language=de"}
    with httpx.Client(base_url=demo.http) as web:
        plain = web.get(path, headers={"Accept": accept})
        german = web.get(path, headers={**GERMAN, **request_headers})

    unlike = re.compile(r'"request_id":"\w+"')
    assert unlike.sub("", german.text) == unlike.sub("", plain.text)
    assert german.headers.get("Vary") == plain.headers.get("Vary")
    assert "Accept-Language" not in german.headers.get("Vary", "")
    assert "Content-Language" not in german.headers
    assert "Set-Cookie" not in german.headers


def test_the_catalogue_is_kept_for_as_long_as_it_is_the_same(demo: ServerAddress) -> None:
    with translation.override("de"):
        address = languages.words_script(RequestFactory().get("/"))["words_script"]
    with httpx.Client(base_url=demo.http) as web:
        first = web.get(address)
        again = web.get(address, headers={"If-None-Match": first.headers["ETag"]})
        former = web.get("/jsi18n/de?release=0")
        unknown = web.get("/jsi18n/xx")

    assert first.headers["Content-Type"].startswith("text/javascript")
    assert first.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert "Set-Cookie" not in first.headers
    assert again.status_code == 304
    assert not again.content
    assert former.headers["Cache-Control"] == "no-cache"
    assert unknown.status_code == 404


def test_the_language_of_one_request_is_not_that_of_the_next(demo: ServerAddress) -> None:
    with httpx.Client(base_url=demo.http) as web:
        for _ in range(3):
            assert 'lang="de"' in web.get("/login", headers=GERMAN).text
            assert 'lang="en"' in web.get("/login").text
    assert translation.get_language() == "en"
