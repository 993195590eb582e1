"""The admin and the second factor of staff, and what operators do about a lost one."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from allauth.mfa.models import Authenticator
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import URLPattern, URLResolver

from audit_app.models import AuditRecord
from sessions_app.data_rights.erasure import erase_person
from tests import factories
from tests.uamp_project.account_security.people import (
    PASSWORD,
    SECRET,
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
    from collections.abc import Iterator

    from pytest_django import Settings

pytestmark = pytest.mark.django_db

SHARE = 4 if os.environ.get("SHORT_RUN") else 1
"""A short run requests every fourth page of the admin."""
ADMIN = "/admin/"
LIST = "/admin/mfa/authenticator/"


def test_a_session_without_the_second_factor_of_its_person_does_not_open_the_admin() -> None:
    root = factories.superuser()
    before = sign_in(root)
    assert before.get(ADMIN).status_code == 200
    add_app(root)
    # A session that began before, and one that a password alone begins.
    answer = before.get(f"{ADMIN}auth/user/")
    assert unquote(answer["Location"]) == "/account/security/confirm/code?next=/admin/auth/user/"
    assert before.post(f"{ADMIN}auth/group/add/", {"name": "x"}).status_code == 302
    assert not Group.objects.filter(name="x").exists()
    login = Client()
    form = {"username": root.username, "password": PASSWORD}
    assert login.post(f"{ADMIN}login/?next=/admin/", form)["Location"] == "/login/code"
    assert login.get(ADMIN)["Location"].startswith("/admin/login/")
    # Both get in with a code.
    login.post("/login/code", {"code": code()})
    assert login.get(ADMIN).status_code == 200
    wrong = before.post(answer["Location"], {"code": "000000"})
    assert wrong.status_code == 200
    assert before.get(ADMIN).status_code == 302
    passed = before.post(answer["Location"], {"code": code(later=1)})
    assert passed["Location"] == "/admin/auth/user/"
    assert before.get(ADMIN).status_code == 200


def pages(patterns: list[URLPattern | URLResolver], prefix: str = "") -> Iterator[str]:
    """Yield a path for each pattern, with 1 for whatever it captures."""
    for pattern in patterns:
        path = prefix + re.sub(r"<[^>]+>|\(\?P[^)]*\)", "1", str(pattern.pattern)).strip("^$")
        if isinstance(pattern, URLResolver):
            yield from pages(pattern.url_patterns, path)
        else:
            yield path


def test_no_page_of_the_admin_opens_without_the_second_factor() -> None:
    root = factories.superuser()
    before = sign_in(root)
    add_app(root)
    # These three are for everybody.
    paths = {*pages(admin.site.urls[0])} - {"login/", "logout/", "password_change/"}
    assert {"agents_app/agent/1/try/", "agents_app/agent/remote/", "jsi18n/"} <= paths
    statuses = {
        f"{method} {path}": answer.status_code
        for path in sorted(paths)[::SHARE]
        for method in ("get", "post")
        if not (answer := getattr(before, method)(ADMIN + path))
        .get("Location", "")
        .startswith("/account/security/confirm/code?next=")
    }
    assert statuses == {}


def test_a_session_without_the_second_factor_connects_no_model(settings: Settings) -> None:
    root = factories.superuser()
    before = sign_in(root)
    settings.UAMP_STAFF_SECOND_FACTOR = True
    assert before.get("/connect-model")["Location"] == "/account/security"
    settings.UAMP_STAFF_SECOND_FACTOR = False
    assert before.get("/connect-model").status_code == 200
    add_app(root)
    for answer in (
        before.get("/connect-model"),
        before.post("/connect-model", {"model": "openai", "key": "sk-test"}),
    ):
        page = "/account/security/confirm/code?next=/connect-model"
        assert unquote(answer["Location"]) == page
    before.post(page, {"code": code()})
    assert before.get("/connect-model").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_staff_may_have_to_have_a_second_factor(settings: Settings) -> None:
    settings.UAMP_STAFF_SECOND_FACTOR = True
    root = factories.superuser()
    client = sign_in(root)
    answer = client.get(ADMIN, follow=True)
    assert answer.redirect_chain == [("/account/security", 302)]
    assert b"The admin pages require a second factor." in answer.content
    # The chats stay open, and a new factor counts at once.
    assert client.get("/").status_code == 200
    confirm(client)
    client.post("/account/security/app", {"code": code(new_secret(client))})
    assert client.get(ADMIN).status_code == 200
    # A person without a password signs in with a provider, which asks for its own.
    other = factories.superuser("other")
    other.set_unusable_password()
    other.save()
    client.force_login(other)
    assert client.get(ADMIN).status_code == 200


def test_people_without_a_right_to_the_admin_read_so() -> None:
    client = sign_in(factories.user())
    answer = client.get(ADMIN, follow=True)
    assert b"Your account can&#x27;t open the admin pages." in answer.content
    root = factories.superuser()
    form = {"username": root.username, "password": PASSWORD}
    assert client.post("/admin/login/", form)["Location"] == ADMIN
    assert client.get(ADMIN).status_code == 200


def test_a_lost_factor_is_removed_by_who_may_act_as_its_person() -> None:
    ada, root, other = factories.user("ada"), factories.superuser(), factories.user("op")
    add_app(ada)
    add_app(root)
    other.is_staff = True
    other.save()
    names = ("view_authenticator", "delete_authenticator")
    other.user_permissions.set(Permission.objects.filter(codename__in=names))
    row, theirs = Authenticator.objects.get(user=ada), Authenticator.objects.get(user=root)
    operator = Client()
    operator.force_login(other)
    for page in (row, theirs):
        response = operator.get(f"{LIST}{page.pk}/change/")
        assert response.status_code == 200
        assert SECRET.encode() not in response.content
        assert b"gAAAA" not in response.content
        assert operator.post(f"{LIST}{page.pk}/delete/", {"post": "yes"}).status_code == 403
    assert factors(root) == factors(ada) == ["totp"]
    superuser = Client()
    superuser.force_login(factories.superuser("root2"))
    assert superuser.post(f"{LIST}{row.pk}/delete/", {"post": "yes"}).status_code == 302
    assert factors(ada) == []
    assert AuditRecord.objects.filter(
        action="second_factor.removed", object_id=str(ada.pk), actor__username="root2"
    ).exists()
    assert is_signed_in(sign_in(ada))


def test_an_erased_person_keeps_no_factor() -> None:
    ada = factories.user("ada")
    add_app(ada)
    add_recovery_codes(ada)
    erase_person(ada, reason="asked for it", wait=0)
    assert factors(ada) == []
