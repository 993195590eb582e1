"""Guessing passwords is paused, on the login page and in the admin, and no person is locked out."""

from __future__ import annotations

import threading
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING

import httpx
import pytest
from axes.models import AccessAttempt
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

from sessions_app.access import rate_counters, rates
from tests import factories
from tests.sessions_app.access.web_sign_in import WebSignIn
from tests.threads import join_threads
from uamp_project.sign_in import password_hashing

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.conftest import ServerAddress

ADMIN = "/admin/login/"
TOO_MANY = httpx.codes.TOO_MANY_REQUESTS
FOUND, OK = httpx.codes.FOUND, httpx.codes.OK


def guess(
    server: ServerAddress, username: str, times: int, *, address: str = "", path: str = "/login"
) -> list[int]:
    """Try wrong passwords from an address, in an unknown browser; return the statuses."""
    headers = {"X-Forwarded-For": address} if address else {}
    with WebSignIn(server) as browser:
        browser.web.headers.update(headers)
        return [
            browser.try_to_sign_in(username, f"wrong{number}", path).status_code
            for number in range(times)
        ]


def signs_in(
    server: ServerAddress, username: str, *, address: str = "", path: str = "/login"
) -> int:
    """Try the right password in an unknown browser; return the status."""
    with WebSignIn(server) as browser:
        if address:
            browser.web.headers["X-Forwarded-For"] = address
        return browser.try_to_sign_in(username, path=path).status_code


@pytest.fixture
def proxied(settings: Settings) -> None:
    """Believe X-Forwarded-For from this machine."""
    settings.UAMP_TRUSTED_PROXIES = ["127.0.0.1"]


@pytest.mark.parametrize("path", ["/login", ADMIN])
def test_guessing_is_paused_and_says_what_to_do(
    server: ServerAddress, settings: Settings, path: str
) -> None:
    factories.superuser("ada")
    assert guess(server, "ada", 25, path=path) == [OK] * 4 + [TOO_MANY] * 21
    with WebSignIn(server) as browser:
        refused = browser.try_to_sign_in("ada", path=path)
    assert refused.status_code == TOO_MANY
    assert 0 <= settings.UAMP_SIGN_IN_PAUSE_MINUTES * 60 - int(refused.headers["Retry-After"]) < 30
    assert "Wait 15 minutes" in refused.text
    # What is left of the pause is said, not the whole of it.
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=14, seconds=20))
    with WebSignIn(server) as browser:
        refused = browser.try_to_sign_in("ada", path=path)
    assert 1 <= int(refused.headers["Retry-After"]) <= 40
    assert "Wait 1 minute," in refused.text
    # The other page counts the same account.
    other = ADMIN if path == "/login" else "/login"
    assert signs_in(server, "ada", path=other) == TOO_MANY
    # The pause ends by itself.
    AccessAttempt.objects.update(
        attempt_time=timezone.now() - timedelta(minutes=settings.UAMP_SIGN_IN_PAUSE_MINUTES)
    )
    assert signs_in(server, "ada", path=path) == FOUND


def test_the_answer_does_not_reveal_which_accounts_exist(server: ServerAddress) -> None:
    factories.user("ada")
    answer_lists = []
    for name in ("ada", "bea"):
        with WebSignIn(server) as browser:
            answers = [browser.try_to_sign_in(name, f"wrong{n}") for n in range(7)]
        answer_lists.append([(a.status_code, a.text.replace(name, "NAME")) for a in answers])
    assert [status for status, _ in answer_lists[0]] == [status for status, _ in answer_lists[1]]
    assert answer_lists[0][-1] == answer_lists[1][-1]


def test_an_address_is_paused_for_all_accounts(server: ServerAddress, proxied: None) -> None:
    factories.user("ada")
    statuses = [
        guess(server, f"person{number}", 1, address="203.0.113.7")[0] for number in range(25)
    ]
    assert statuses == [OK] * 19 + [TOO_MANY] * 6
    assert signs_in(server, "ada", address="203.0.113.7") == TOO_MANY
    assert signs_in(server, "ada", address="203.0.113.8") == FOUND


def test_an_account_is_paused_for_strangers_and_not_where_its_person_signed_in_before(
    server: ServerAddress, proxied: None
) -> None:
    factories.user("ada")
    with WebSignIn(server) as home:
        home.web.headers["X-Forwarded-For"] = "198.51.100.1"
        assert home.try_to_sign_in("ada").status_code == FOUND
        home.post("/logout")
        for number in range(6):
            guess(server, "ada", 4, address=f"203.0.113.{number}")
        # No unknown browser gets in, from any address, nor with a cookie of its own making.
        assert signs_in(server, "ada", address="192.0.2.9") == TOO_MANY
        with WebSignIn(server) as forger:
            forger.web.headers["User-Agent"] = "device x"
            forger.web.cookies.set("known_device", "eyJ1c2VybmFtZSI6ImFkYSJ9:x:y")
            assert forger.try_to_sign_in("ada").status_code == TOO_MANY
        # At home the person gets in, and guessing there is paused as anywhere.
        assert home.try_to_sign_in("ada").status_code == FOUND
        home.post("/logout")
        statuses = [home.try_to_sign_in("ada", "wrong").status_code for _ in range(6)]
        assert statuses == [OK] * 4 + [TOO_MANY] * 2
        # The cookie is one account's: it helps to guess no other.
        assert [home.try_to_sign_in("bea", "wrong").status_code for _ in range(6)][-1] == TOO_MANY


def test_a_header_that_no_trusted_proxy_wrote_changes_nothing(server: ServerAddress) -> None:
    factories.user("ada")
    statuses = [guess(server, "ada", 1, address=f"203.0.113.{n}")[0] for n in range(8)]
    assert statuses == [OK] * 4 + [TOO_MANY] * 4


def test_a_right_password_forgets_the_wrong_ones_of_its_account_only(
    server: ServerAddress,
) -> None:
    factories.user("ada")
    guess(server, "bea", 4)
    guess(server, "ada", 4)
    assert signs_in(server, "ada") == FOUND
    assert [attempt.username for attempt in AccessAttempt.objects.all()] == ["bea"]


def test_an_operator_ends_the_pause(server: ServerAddress) -> None:
    factories.user("ada")
    factories.superuser("root")
    guess(server, "ada", 6)
    with WebSignIn(server) as operator:
        operator.try_to_sign_in("root", path=ADMIN)
        page = operator.web.get("/admin/axes/accessattempt/")
        assert (page.status_code, "ada" in page.text) == (OK, True)
        attempts = [str(row.pk) for row in AccessAttempt.objects.filter(username="ada")]
        operator.post(
            "/admin/axes/accessattempt/",
            action="delete_selected",
            _selected_action=attempts[0],
            post="yes",
        )
    assert signs_in(server, "ada") == FOUND
    guess(server, "ada", 6)
    call_command("axes_reset_username", "ada")
    assert signs_in(server, "ada") == FOUND


def test_right_passwords_are_counted_too(
    server: ServerAddress, settings: Settings, proxied: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.UAMP_SIGN_INS_PER_MINUTE = 3
    # The clock of the counters stands still: the turn of a minute gives one sign-in back.
    began = rates.limiter().counters._began
    clock = SimpleNamespace(monotonic=lambda: began)
    monkeypatch.setattr(rate_counters, "time", clock)
    factories.user("ada")
    with WebSignIn(server) as home:
        home.web.headers["X-Forwarded-For"] = "198.51.100.1"
        statuses = []
        for _ in range(5):
            refused = home.try_to_sign_in("ada")
            statuses.append(refused.status_code)
            home.web.cookies.delete(settings.SESSION_COOKIE_NAME)
    assert statuses == [FOUND] * 3 + [TOO_MANY] * 2
    assert int(refused.headers["Retry-After"]) >= 1
    assert "wasn't checked" in refused.text
    # Of the account: one was counted before its browser was known.
    for address in ("203.0.113.1", "203.0.113.2"):
        assert signs_in(server, "ada", address=address) == FOUND
    assert signs_in(server, "ada", address="203.0.113.3") == TOO_MANY
    # Of the address, for every account.
    assert signs_in(server, "bea", address="198.51.100.1") == TOO_MANY
    assert not AccessAttempt.objects.exists()
    # The next minute brings them back one by one.
    clock.monotonic = lambda: began + 61
    again = [signs_in(server, "ada", address="203.0.113.3") for _ in range(2)]
    assert again == [FOUND, TOO_MANY]


def test_few_passwords_are_hashed_at_once_and_none_holds_a_connection(
    server: ServerAddress, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.user("ada")
    settings.PASSWORD_HASHERS = ["uamp_project.sign_in.password_hashing.BoundedHasher"]
    settings.UAMP_SIGN_INS_PER_MINUTE = 1000
    settings.UAMP_SIGN_IN_FAILURES_PER_ADDRESS = 1000
    room = password_hashing.HASHED_AT_ONCE + password_hashing.WAITING_MAX
    hashing, refused, go_on = threading.Semaphore(0), threading.Semaphore(0), threading.Event()
    at_once: list[int] = []
    running: set[int] = set()

    def encode(*_: object) -> str:
        running.add(threading.get_ident())
        at_once.append(len(running))
        hashing.release()
        assert go_on.wait(30)
        running.discard(threading.get_ident())
        return "pbkdf2_sha256$1$salt$hash"

    monkeypatch.setattr(PBKDF2PasswordHasher, "encode", encode)
    statuses: list[int] = []

    def sign_in(number: int) -> None:
        with WebSignIn(server) as browser:
            browser.web.timeout = 60
            status = browser.try_to_sign_in(f"person{number}", "wrong").status_code
            statuses.append(status)
            if status == httpx.codes.SERVICE_UNAVAILABLE:
                refused.release()

    threads = [threading.Thread(target=sign_in, args=(number,)) for number in range(room + 4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(password_hashing.HASHED_AT_ONCE):
            assert hashing.acquire(timeout=30)
        for _ in range(4):
            assert refused.acquire(timeout=30)
        # On PostgreSQL a pool of 16 would be used up.
        with httpx.Client(base_url=server.http, trust_env=False, timeout=5) as web:
            assert web.get("/readyz").status_code == OK
    finally:
        go_on.set()
        join_threads(threads)
    assert max(at_once) == password_hashing.HASHED_AT_ONCE
    assert sorted(statuses) == [OK] * room + [httpx.codes.SERVICE_UNAVAILABLE] * 4


@pytest.mark.django_db
def test_a_transaction_outlives_a_hash(settings: Settings) -> None:
    settings.PASSWORD_HASHERS = ["uamp_project.sign_in.password_hashing.BoundedHasher"]
    with transaction.atomic():
        ada = factories.user("ada")
        assert factories.user("bea").pk != ada.pk
    ada.refresh_from_db()
    assert ada.check_password("password")
