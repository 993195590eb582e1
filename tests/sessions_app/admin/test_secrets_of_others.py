"""The right to get a secret of another person, or to change what signs them in.

Only who has all of their rights and may see contents.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from audit_app.models import AuditRecord
from sessions_app.access import keys
from sessions_app.access.auth import create_api_key
from sessions_app.models import ApiKey
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db

Take: TypeAlias = "Callable[[User, User], bool]"
"""Tries to get a secret of a person as an operator; returns whether that succeeded."""
KEYS = ("view_apikey", "add_apikey", "rotate_key", "view_user", "change_user",
        "view_emailaddress", "delete_emailaddress", "view_authenticator",
        "delete_authenticator")  # fmt: skip
SECRET = re.compile(r"uak_[0-9a-f]{8}_[A-Za-z0-9_-]{43}")


def person(name: str, *rights: str) -> User:
    user = factories.user(name, is_staff=bool(rights))
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    create_api_key(user, name="ci")
    return User.objects.get(pk=user.pk)


def root(name: str) -> User:
    user = factories.superuser(name)
    create_api_key(user, name="ci")
    return user


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def make(operator: User, of: User) -> bool:
    try:
        return bool(keys.make_key_for(of, keys.KeyRequest(name="x"), by=operator).secret)
    except keys.MayNotActAs:
        return False


def rotate(operator: User, of: User) -> bool:
    try:
        return bool(keys.rotate_key(ApiKey.objects.get(user=of), by=operator).secret)
    except keys.MayNotActAs:
        return False


def make_in_the_admin(operator: User, of: User) -> bool:
    form = {"owner": of.username, "name": "x", "scopes": ["chats:read"], "period": "day"}
    page = browser(operator).post(reverse("admin:sessions_app_apikey_add"), form)
    return SECRET.search(page.content.decode()) is not None


def rotate_in_the_admin(operator: User, of: User) -> bool:
    pk = ApiKey.objects.get(user=of).pk
    url = reverse("admin:sessions_app_apikey_operate", args=[pk, "rotate"])
    page = browser(operator).post(url, {"reason": "r", "keep": "0", "seen": "0"})
    return SECRET.search(page.content.decode()) is not None


def set_password(operator: User, of: User) -> bool:
    url = reverse("admin:auth_user_password_change", args=[of.pk])
    form = {"password1": "a new Password 1", "password2": "a new Password 1"}
    browser(operator).post(url, {**form, "usable_password": "true"})
    return User.objects.get(pk=of.pk).password != of.password


def change(operator: User, of: User, **fields: str) -> User:
    """Send the form of a person as an operator; return the person as stored then."""
    form = {"username": of.username, "is_active": "on", "date_joined_0": "2026-01-01",
            "date_joined_1": "00:00:00", **fields}  # fmt: skip
    browser(operator).post(reverse("admin:auth_user_change", args=[of.pk]), form)
    return User.objects.get(pk=of.pk)


def set_email(operator: User, of: User) -> bool:
    return change(operator, of, email="mallory@example.org").email != of.email


def set_username(operator: User, of: User) -> bool:
    return change(operator, of, username="renamed").username != of.username


def set_last_login(operator: User, of: User) -> bool:
    fields = {"last_login_0": "2020-01-01", "last_login_1": "00:00:00"}
    return change(operator, of, **fields).last_login != of.last_login


def remove_address(operator: User, of: User) -> bool:
    row, _ = EmailAddress.objects.get_or_create(user=of, email="other@example.org", verified=True)
    url = reverse("admin:account_emailaddress_delete", args=[row.pk])
    browser(operator).post(url, {"post": "yes"})
    return not EmailAddress.objects.filter(pk=row.pk).exists()


def remove_factor(operator: User, of: User) -> bool:
    row, _ = Authenticator.objects.get_or_create(user=of, type="recovery_codes", data={})
    url = reverse("admin:mfa_authenticator_delete", args=[row.pk])
    browser(operator).post(url, {"post": "yes"})
    return not Authenticator.objects.filter(pk=row.pk).exists()


CHANGES = [set_email, set_username, set_last_login, remove_address, remove_factor]
TAKES = [*CHANGES, make, rotate, make_in_the_admin, rotate_in_the_admin, set_password]
CASES = [
    # operator's further rights, the other person's rights, whether the operator gets a secret
    pytest.param((), (), False, id="who sees no contents, of anyone"),
    pytest.param(("view_content",), (), True, id="who sees contents, of anyone"),
    pytest.param(("view_content",), ("grant_topup",), False, id="of one who may do more"),
    pytest.param(("grant_topup",), ("grant_topup",), False, id="of a peer, without contents"),
    pytest.param(("view_content", "grant_topup"), ("grant_topup",), True, id="of a peer"),
]


@pytest.mark.sampled(14)
@pytest.mark.parametrize(("more", "theirs", "gets"), CASES)
@pytest.mark.parametrize("take", TAKES)
def test_a_secret_is_given_to_who_may_do_and_see_as_much(
    take: Take,
    more: tuple[str, ...],
    theirs: tuple[str, ...],
    gets: bool,  # noqa: FBT001 a case
) -> None:
    operator, other = person("operator", *KEYS, *more), person("other", *theirs)
    before = list(ApiKey.objects.order_by("pk").values_list("pk", "sha256"))

    assert take(operator, other) is gets

    if not gets:
        assert list(ApiKey.objects.order_by("pk").values_list("pk", "sha256")) == before
        assert not AuditRecord.objects.filter(action__startswith="key.").exists()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("take", TAKES)
def test_only_a_superuser_gets_a_secret_of_a_superuser(take: Take) -> None:
    boss = root("boss")
    operator = person("operator", *Permission.objects.values_list("codename", flat=True))

    assert not take(operator, boss)

    assert take(root("other"), boss)


@pytest.mark.parametrize("take", [make, rotate, make_in_the_admin, rotate_in_the_admin])
def test_people_make_and_rotate_keys_of_their_own(take: Take) -> None:
    operator = person("operator", *KEYS)

    assert take(operator, operator)


def test_an_operator_who_makes_a_key_of_another_person_is_in_the_audit() -> None:
    operator, other = person("operator", *KEYS, "view_content"), person("other")

    assert make_in_the_admin(operator, other)

    record = AuditRecord.objects.get(action="key.made")
    assert (record.actor, record.object_id) == (operator, str(ApiKey.objects.latest("pk").pk))
