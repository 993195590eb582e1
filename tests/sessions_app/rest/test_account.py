"""A person's own page: the password, and API keys that they make and revoke."""

from __future__ import annotations

import asyncio
import io
import re
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from django.contrib.sessions.models import Session

from audit_app.models import AuditRecord
from sessions_app.access import keys
from sessions_app.data_rights import self_service
from sessions_app.models import ApiKey
from sessions_app.rest.access.account import NEW_KEY
from tests import factories
from tests.client import wait_until
from tests.sessions_app.access.web_sign_in import WebSignIn

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx
    from django.contrib.auth.models import User
    from django.http import StreamingHttpResponse
    from pytest_django import Settings

    from tests.conftest import ServerAddress
    from tests.live_server import Dial

pytestmark = pytest.mark.django_db(transaction=True)

NEW = "correct horse battery"


@pytest.fixture
def ada(demo: ServerAddress) -> User:
    """Return a person."""
    del demo
    return factories.user("ada")


@pytest.fixture
def browser(demo: ServerAddress, ada: User) -> Iterator[WebSignIn]:
    """Give a browser in which ada is signed in."""
    with WebSignIn(demo) as signing_in:
        assert signing_in.try_to_sign_in(ada.username).status_code == 302
        yield signing_in


def create_key(browser: WebSignIn, name: str = "laptop") -> str:
    """Create a key and return its secret, as the page shows it."""
    answer = browser.post("/account/keys", name=name)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/account")
    assert "no-store" in answer.headers["Cache-Control"]
    return keys_on_page(browser)[0]


def keys_on_page(browser: WebSignIn) -> list[str]:
    """Load the page and return the new key that it shows, if any."""
    answer = browser.web.get("/account")
    assert answer.status_code == 200
    assert "no-store" in answer.headers["Cache-Control"]
    return re.findall(r'id="secret"[^>]* value="([^"]+)"', answer.text)


def me(web: httpx.Client, secret: str) -> int:
    return web.get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"}).status_code


# --- Who may ---


def test_without_a_session_every_page_leads_to_the_login(web: httpx.Client, ada: User) -> None:
    secret = keys.make_key(ada.pk, keys.KeyRequest(name="program")).secret
    # Neither a visitor nor a key comes in.
    for headers in ({}, {"Authorization": f"Bearer {secret}"}):
        for path in ("/account", "/account/password"):
            answer = web.get(path, headers=headers)
            assert (answer.status_code, answer.headers["Location"]) == (302, f"/login?next={path}")
        assert web.post("/account/keys", headers=headers).status_code in {302, 403}
    assert ApiKey.objects.count() == 1


def test_a_form_without_its_token_changes_nothing(browser: WebSignIn) -> None:
    secret = create_key(browser)
    key = ApiKey.objects.get()
    paths = ("/account/keys", f"/account/keys/{key.pk}/revoke", "/account/password")
    for path in (*paths, "/account/sign-out-others"):
        assert browser.web.post(path, data={"name": "x"}).status_code == 403
    for path in paths[:2]:
        assert browser.web.get(path).status_code == 405
    assert me(browser.web, secret) == 200
    assert ApiKey.objects.count() == 1


def test_the_pages_have_the_strict_policy(browser: WebSignIn) -> None:
    for path in ("/account", "/account/password"):
        answer = browser.web.get(path)
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        assert "no-store" in answer.headers["Cache-Control"]
        assert re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", answer.text) is None


# --- Keys ---


def test_a_key_is_shown_once_and_opens_what_its_owner_may(browser: WebSignIn, ada: User) -> None:
    secret = create_key(browser)
    key = ApiKey.objects.get()
    assert (key.user, key.name, key.prefix, key.scopes) == (ada, "laptop", secret[:12], ["*"])
    assert me(browser.web, secret) == 200
    page = browser.web.get("/account").text
    assert secret not in page
    assert key.prefix in page
    assert "laptop" in page
    assert re.search(r"last used \w+\.? \d+, \d{4}", page)


def test_a_page_that_is_loaded_again_makes_and_shows_no_key(
    browser: WebSignIn, demo: ServerAddress, ada: User
) -> None:
    answer = browser.post("/account/keys", name="laptop")
    assert answer.headers["Location"] == "/account"
    with WebSignIn(demo) as other:
        assert other.try_to_sign_in(ada.username).status_code == 302
        assert keys_on_page(other) == []
    assert browser.web.head("/account").status_code == 200
    secret = ApiKey.objects.get().prefix
    assert [key[:12] for key in keys_on_page(browser)] == [secret]
    assert keys_on_page(browser) == []
    sessions = [row.get_decoded() for row in Session.objects.all()]
    assert not any(NEW_KEY in session for session in sessions)
    assert ApiKey.objects.count() == 1


def test_a_key_without_a_good_name_is_not_made(browser: WebSignIn) -> None:
    for name in ("", "   ", "x" * 101, "a\0b"):
        answer = browser.post("/account/keys", name=name)
        assert answer.status_code == 400
        assert 'role="alert"' in answer.text
    assert not ApiKey.objects.exists()


def test_a_name_is_text(browser: WebSignIn) -> None:
    create_key(browser, "<b onclick=x>")
    assert "<b onclick" not in browser.web.get("/account").text


def test_a_revoked_key_ends_with_its_connections(browser: WebSignIn, dial: Dial) -> None:
    secret = create_key(browser)
    client = dial(headers={"Authorization": f"Bearer {secret}"})
    client.create_session(agent="echo")
    key = ApiKey.objects.get()
    answer = browser.post(f"/account/keys/{key.pk}/revoke")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/account")
    assert client.until("session.error")[-1]["error"]["code"] == "unauthorized"
    assert me(browser.web, secret) == 401
    page = browser.web.get("/account").text
    assert "The key was revoked" in page
    assert key.prefix not in page
    assert browser.post(f"/account/keys/{key.pk}/revoke").status_code == 404


def test_a_foreign_key_is_neither_shown_nor_revoked(browser: WebSignIn) -> None:
    secret = keys.make_key(factories.user("bob").pk, keys.KeyRequest(name="of bob")).secret
    key = ApiKey.objects.get()
    assert "of bob" not in browser.web.get("/account").text
    answers = [browser.post(f"/account/keys/{pk}/revoke") for pk in (key.pk, key.pk + 1)]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].text == answers[1].text
    assert me(browser.web, secret) == 200


def test_keys_in_force_are_bounded(browser: WebSignIn, settings: Settings) -> None:
    settings.UAMP_KEYS_PER_USER = 2
    create_key(browser, "one")
    create_key(browser, "two")
    refused = browser.post("/account/keys", name="three")
    assert refused.status_code == 409
    assert "Revoke one first." in refused.text
    browser.post(f"/account/keys/{ApiKey.objects.earliest('pk').pk}/revoke")
    create_key(browser, "three")


def test_forms_count_as_writes(browser: WebSignIn, settings: Settings) -> None:
    settings.UAMP_WRITES_PER_MINUTE = 2
    create_key(browser)
    key = ApiKey.objects.earliest("pk")
    for path, fields in (
        ("/account/keys", {"name": "x"}),
        (f"/account/keys/{key.pk}/revoke", {}),
        (
            "/account/password",
            {"old_password": "password", "new_password1": NEW, "new_password2": NEW},
        ),
    ):
        # A slow machine earns a write back meanwhile: what is left is used up right before.
        left = [browser.post("/account/keys", name="").status_code for _ in range(4)]
        answer = browser.post(path, **fields)
        assert (left[-1], answer.status_code) == (429, 429)
        assert 1 <= int(answer.headers["Retry-After"]) <= 61
    assert ApiKey.objects.filter(revoked_at__isnull=True).count() == 1
    assert browser.web.get("/account").status_code == 200


# --- The password ---


def change(browser: WebSignIn, old: str = "password", new: str = NEW, again: str = "") -> int:
    """Send the form of the password and return the status."""
    answer = browser.post(
        "/account/password", old_password=old, new_password1=new, new_password2=again or new
    )
    return answer.status_code


def test_a_new_password_ends_other_browsers_and_keys(
    browser: WebSignIn, demo: ServerAddress, ada: User
) -> None:
    secret = create_key(browser)
    page_text = browser.web.get("/account/password").text
    assert "signs you out everywhere else and revokes all of your API keys" in page_text
    with WebSignIn(demo) as other:
        other.try_to_sign_in(ada.username)
        assert other.web.get("/account").status_code == 200
        assert change(browser) == 302
        assert other.web.get("/account").status_code == 302
    assert me(browser.web, secret) == 401
    page = browser.web.get("/account")
    assert page.status_code == 200
    assert "Your password was changed" in page.text
    assert "You have no keys." in page.text
    with WebSignIn(demo) as again:
        assert again.try_to_sign_in(ada.username).status_code == 200
        assert again.try_to_sign_in(ada.username, NEW).status_code == 302


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [("wrong", NEW, ""), ("password", NEW, "another one"), ("password", "short", "")],
)
def test_a_bad_form_changes_nothing(
    browser: WebSignIn, ada: User, old: str, new: str, again: str
) -> None:
    assert change(browser, old, new, again) == 200
    ada.refresh_from_db()
    assert ada.check_password("password")


def test_wrong_old_passwords_pause_as_on_the_login_page(
    browser: WebSignIn, ada: User, settings: Settings
) -> None:
    settings.UAMP_SIGN_IN_FAILURES = 3
    assert [change(browser, "wrong") for _ in range(3)] == [200, 200, 429]
    # The right one does not help until the pause is over.
    assert change(browser) == 429
    ada.refresh_from_db()
    assert ada.check_password("password")


def test_a_person_signs_out_their_other_browsers_and_keeps_password_and_keys(
    browser: WebSignIn, demo: ServerAddress, ada: User
) -> None:
    secret = create_key(browser)
    with WebSignIn(demo) as other:
        other.try_to_sign_in(ada.username)
        refused = browser.post("/account/sign-out-others", old_password="wrong")
        assert refused.status_code == 400
        assert "Your old password was entered incorrectly" in refused.text
        assert other.web.get("/account").status_code == 200
        done = browser.post("/account/sign-out-others", old_password="password")
        assert done.status_code == 302
        assert other.web.get("/account").status_code == 302
    assert "Your other browsers were signed out." in browser.web.get("/account").text
    assert me(browser.web, secret) == 200
    ada.refresh_from_db()
    assert ada.check_password("password")


def test_wrong_passwords_of_signing_out_pause_too(browser: WebSignIn, settings: Settings) -> None:
    settings.UAMP_SIGN_IN_FAILURES = 2
    wrong = {"old_password": "wrong"}
    answers = [browser.post("/account/sign-out-others", **wrong).status_code for _ in range(2)]
    assert answers == [400, 429]
    assert browser.post("/account/sign-out-others", old_password="password").status_code == 429


def test_the_admin_has_no_other_form_for_the_password(browser: WebSignIn, ada: User) -> None:
    ada.is_staff = True
    ada.save()
    answer = browser.web.get("/admin/password_change/")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/account/password")


def test_people_take_their_data_with_them(
    browser: WebSignIn, ada: User, settings: Settings
) -> None:
    settings.UAMP_PERSONAL_EXPORTS_PER_DAY = 1
    chat = factories.chat(ada)
    factories.message(chat, ada, "quokkaword")
    assert 'action="/account/export"' in browser.web.get("/account").text

    answer = browser.post("/account/export")

    assert answer.status_code == 200
    assert answer.headers["Content-Disposition"] == 'attachment; filename="ada.zip"'
    assert answer.headers["Content-Type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        assert "person.json" in archive.namelist()
        assert b"quokkaword" in archive.read("written.ndjson")
    row = AuditRecord.objects.get(action="person.exported")
    assert (row.actor_id, row.object_id) == (ada.pk, str(ada.pk))
    again = browser.post("/account/export")
    assert (again.status_code, int(again.headers["Retry-After"]) > 60) == (429, True)
    assert AuditRecord.objects.filter(action="person.exported").count() == 1


def test_people_have_one_export_under_way(
    browser: WebSignIn, ada: User, settings: Settings
) -> None:
    settings.UAMP_PERSONAL_EXPORTS_PER_DAY = 2
    other = self_service.PersonalExport(ada.pk)
    assert other.begin()
    refused = browser.post("/account/export")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")
    assert not AuditRecord.objects.filter(action="person.exported").exists()
    other.end()
    # It counts for nothing, and one that ended leaves the way to the next.
    for _ in range(2):
        assert browser.post("/account/export").status_code == 200
        wait_until(lambda: _may_begin(ada.pk))
    assert browser.post("/account/export").status_code == 429
    assert _may_begin(ada.pk)


def _may_begin(user_id: int) -> bool:
    export = self_service.PersonalExport(user_id)
    try:
        return export.begin()
    finally:
        export.end()


def test_files_of_people_are_made_beside_the_threads_of_the_loop() -> None:
    has_begun, going, threads = threading.Event(), threading.Event(), set()

    def pieces() -> Iterator[bytes]:
        threads.add(threading.current_thread().name.rpartition("_")[0])
        has_begun.set()
        assert going.wait(60)
        yield b"a file"

    async def all_of(response: StreamingHttpResponse) -> bytes:
        return b"".join([piece async for piece in aiter(response)])

    async def reading() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        exports = [self_service.PersonalExport(-number) for number in (1, 2)]
        assert all(export.begin() for export in exports)
        first, second = (
            self_service.PersonalExportResponse(pieces(), export) for export in exports
        )
        reading_task = asyncio.create_task(all_of(first))
        gone = asyncio.create_task(all_of(second))
        async with asyncio.timeout(60):
            # The only thread of the loop is free while files are made.
            await asyncio.sleep(0)
            assert await asyncio.to_thread(has_begun.wait, 30)
            # One whose client has gone before its turn is not made; one under way goes on.
            gone.cancel()
            await asyncio.wait([gone])
            second.close()
            assert _may_begin(-2)
            first.close()
            assert not _may_begin(-1)
            going.set()
            assert await reading_task == b"a file"

    asyncio.run(reading())
    wait_until(lambda: _may_begin(-1))
    assert threads == {"personal-export"}
