"""Authenticator apps and recovery codes, from enrolment to signing in, at the level of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client

from audit_app.models import AuditRecord
from sessions_app.models import ApiKey
from tests import factories
from tests.uamp_project.account_security.people import (
    PASSWORD,
    add_app,
    add_recovery_codes,
    code,
    confirm,
    factors,
    is_signed_in,
    new_secret,
    sign_in,
)

if TYPE_CHECKING:
    from pytest_django import Settings

pytestmark = pytest.mark.django_db

MANY = "1" * 1_000_000


def audited() -> list[str]:
    return list(AuditRecord.objects.order_by("pk").values_list("action", flat=True))


@pytest.mark.django_db(transaction=True)
def test_a_person_adds_an_app_and_signs_in_with_it_and_with_a_recovery_code_once() -> None:
    ada = factories.user("ada")
    client = sign_in(ada)
    # Changes need the password again.
    assert client.get("/account/security/app")["Location"].startswith("/account/security/confirm")
    confirm(client)
    secret = new_secret(client)
    wrong = client.post("/account/security/app", {"code": "000000"})
    assert wrong.status_code == 200
    assert factors(ada) == []
    of_app = code(secret)
    response = client.post("/account/security/app", {"code": of_app})
    assert response["Location"] == "/account/security/recovery-codes"
    assert factors(ada) == ["recovery_codes", "totp"]
    assert audited() == ["second_factor.added", "second_factor.added"]
    stored = Authenticator.objects.get(user=ada, type="totp").data["secret"]
    assert secret not in stored
    page = client.get(response["Location"]).content.decode()
    codes = [part.partition("</code>")[0] for part in page.split("<li><code>")[1:]]
    assert len(codes) == 10
    assert codes[0] not in client.get(response["Location"]).content.decode()

    other = sign_in(ada)
    assert not is_signed_in(other)
    # The code that added the app is used up.
    assert other.post("/login/code", {"code": of_app}).status_code == 200
    assert not is_signed_in(other)
    assert other.post("/login/code", {"code": code(secret, later=1)})["Location"] == "/"
    assert is_signed_in(other)
    for expected in (True, False):
        third = sign_in(ada)
        third.post("/login/code", {"code": codes[0]})
        assert is_signed_in(third) == expected
    assert audited().count("recovery_code.used") == 1


def test_a_used_code_and_an_earlier_one_do_not_count() -> None:
    ada = factories.user("ada")
    add_app(ada)
    # A period may end meanwhile, so the codes are computed first.
    codes = {later: code(later=later) for later in (1, 0, -1)}
    for later, expected in ((1, True), (1, False), (0, False), (-1, False)):
        client = sign_in(ada)
        client.post("/login/code", {"code": codes[later]})
        assert is_signed_in(client) == expected, later


@pytest.mark.parametrize(
    "text", ["", "\0", "12345", "0" * 21, MANY, "\uff11" * 6, "{}", "' OR 1=1"]
)
def test_a_malformed_code_is_refused(text: str) -> None:
    ada = factories.user("ada")
    add_app(ada)
    client = sign_in(ada)
    assert client.post("/login/code", {"code": text}).status_code == 200
    assert not is_signed_in(client)


def test_without_the_password_no_code_helps() -> None:
    ada = factories.user("ada")
    add_app(ada)
    client = Client()
    assert client.post("/login/code", {"code": code()})["Location"] == "/login"
    assert not is_signed_in(client)


def test_guessing_codes_is_paused_like_guessing_passwords() -> None:
    ada = factories.user("ada")
    add_app(ada)
    client = sign_in(ada)
    statuses = [client.post("/login/code", {"code": f"{n:06}"}).status_code for n in range(7)]
    assert statuses == [200] * 4 + [429] * 3
    # The pause holds for the right code and for the password, also of a session that began later.
    assert client.post("/login/code", {"code": code()}).status_code == 429
    answer = Client().post("/login", {"username": "ada", "password": PASSWORD})
    assert answer.status_code == 429


def test_guessing_recovery_codes_and_confirmations_is_paused_too() -> None:
    ada = factories.user("ada")
    client = sign_in(ada)
    add_app(ada)
    add_recovery_codes(ada)
    guesses = [
        client.post("/account/security/confirm/code", {"code": f"{n:08}"}).status_code
        for n in range(3)
    ]
    other = sign_in(ada)
    guesses += [other.post("/login/code", {"code": f"{n:08}"}).status_code for n in range(6)]
    assert guesses[:3] == [200] * 3
    assert guesses[-1] == 429
    assert not is_signed_in(other)


def test_the_right_password_does_not_reset_the_count_of_wrong_codes() -> None:
    ada = factories.user("ada")
    add_app(ada)
    client = Client()
    for number in range(4):
        sign_in(ada, client)
        assert client.post("/login/code", {"code": f"{number:06}"}).status_code == 200
    sign_in(ada, client)
    assert client.post("/login/code", {"code": "999999"}).status_code == 429


def test_codes_are_counted_per_minute(settings: Settings) -> None:
    settings.UAMP_SIGN_INS_PER_MINUTE = 1
    ada = factories.user("ada")
    add_app(ada)
    client = sign_in(ada)
    answer = client.post("/login/code", {"code": code()})
    assert answer.status_code == 429
    assert answer["Retry-After"]
    assert not is_signed_in(client)


@pytest.mark.django_db(transaction=True)
def test_of_two_enrolments_at_once_the_first_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    # Both requests have seen an account without an app.
    monkeypatch.setattr("allauth.mfa.totp.views.is_mfa_enabled", lambda *_: False)
    ada = factories.user("ada")
    first, second = sign_in(ada), sign_in(ada)
    for client in (first, second):
        confirm(client)
    secret, other = new_secret(first), new_secret(second)
    assert first.post("/account/security/app", {"code": code(secret)}).status_code == 302
    answer = second.post("/account/security/app", {"code": code(other)}, follow=True)
    assert b"Another authenticator app was added in the meantime." in answer.content
    assert factors(ada) == ["recovery_codes", "totp"]
    client = sign_in(ada)
    assert client.post("/login/code", {"code": code(other, later=1)}).status_code == 200
    client.post("/login/code", {"code": code(secret, later=1)})
    assert is_signed_in(client)


def test_an_app_is_removed_after_the_password_and_with_it_the_recovery_codes() -> None:
    ada = factories.user("ada")
    client = sign_in(ada)
    add_app(ada)
    add_recovery_codes(ada)
    answer = client.post("/account/security/app/remove")
    assert answer["Location"].startswith("/account/security/confirm")
    assert factors(ada) == ["recovery_codes", "totp"]
    confirm(client)
    assert client.post("/account/security/app/remove")["Location"] == "/account/security"
    assert factors(ada) == []
    assert audited()[-2:] == ["second_factor.removed"] * 2
    assert is_signed_in(sign_in(ada))


def test_a_visitor_changes_nothing_and_leaves_nothing_behind() -> None:
    client = Client()
    for path in ("", "/app", "/app/remove", "/recovery-codes/new", "/passkeys/new", "/confirm"):
        answer = client.post(f"/account/security{path}", {"code": MANY})
        assert answer["Location"].startswith("/login?next="), path
    assert "sessionid" not in client.cookies


def test_another_secret_key_ends_the_app_and_says_so_nowhere() -> None:
    ada = factories.user("ada")
    add_app(ada)
    row = Authenticator.objects.get(user=ada)
    row.data["secret"] = "gAAAAA"
    row.save()
    client = sign_in(ada)
    assert client.post("/login/code", {"code": code()}).status_code == 200
    assert not is_signed_in(client)


def test_an_api_key_needs_no_second_factor(client: Client) -> None:
    ada = factories.user("ada")
    add_app(ada)
    secret = ApiKey.make_secret()
    prefix, sha256 = ApiKey.split_secret(secret)
    ApiKey.objects.create(user=ada, prefix=prefix, sha256=sha256)
    answer = client.get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"})
    assert answer.json()["username"] == "ada"
