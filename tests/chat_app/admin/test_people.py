"""Rights of people and roles in the admin: not one's own, and none that one does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from tests import factories

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.django_db

EDITING = ("view_user", "add_user", "change_user", "delete_user", "view_group", "change_group",
           "delete_group")  # fmt: skip


def permission(codename: str) -> Permission:
    return Permission.objects.get(codename=codename)


def person(name: str, *rights: str, groups: tuple[Group, ...] = ()) -> User:
    user = factories.user(name, is_staff=True)
    user.user_permissions.add(*map(permission, rights))
    user.groups.add(*groups)
    return user


def role(name: str, *rights: str) -> Group:
    group = Group.objects.create(name=name)
    group.permissions.add(*map(permission, rights))
    return group


def change(by: User, who: User, **rights: object) -> int:
    """Send the form of a person; return the status."""
    form = {
        "username": who.username, "is_active": "on", "is_staff": "on",
        "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00", **rights,
    }  # fmt: skip
    return post(by, reverse("admin:auth_user_change", args=[who.pk]), form)


def post(by: User, address: str, form: Mapping[str, object]) -> int:
    client = Client()
    client.force_login(by)
    return client.post(address, form).status_code


def rights_of(user: User) -> set[str]:
    return User.objects.get(pk=user.pk).get_all_permissions()


@pytest.mark.parametrize("is_root", [True, False])
def test_no_one_changes_their_own_rights(is_root: bool) -> None:  # noqa: FBT001 a case
    finance = role("Cashiers", "grant_topup")
    ada = factories.superuser("ada") if is_root else person("ada", *EDITING, "grant_topup")
    before = rights_of(ada)

    status = change(
        ada,
        ada,
        first_name="Ada",
        groups=[finance.pk],
        user_permissions=[permission("grant_topup").pk],
        is_superuser="on",
    )

    assert status == 302
    again = User.objects.get(pk=ada.pk)
    assert (again.first_name, again.is_superuser, again.groups.count()) == ("Ada", is_root, 0)
    assert rights_of(ada) == before
    # Nor do they take them away by mistake.
    post(ada, reverse("admin:auth_user_change", args=[ada.pk]), {"username": "ada"})
    assert (again.is_active, again.is_staff) == (True, True)
    assert post(ada, reverse("admin:auth_user_delete", args=[ada.pk]), {"post": "yes"}) == 403


def test_no_one_gives_rights_that_they_do_not_have() -> None:
    clerk, bob = person("clerk", *EDITING), person("bob")
    more, less = role("More", "grant_topup"), role("Less", "view_user")

    assert change(clerk, bob, groups=[more.pk]) == 200
    assert change(clerk, bob, user_permissions=[permission("grant_topup").pk]) == 200
    change(clerk, bob, is_superuser="on")
    assert not User.objects.get(pk=bob.pk).is_superuser
    assert rights_of(bob) == set()
    assert change(clerk, bob, groups=[less.pk]) == 302
    assert rights_of(bob) == {"auth.view_user"}


@pytest.mark.parametrize("stronger", ["root", "cashier", "sleeping"])
def test_no_one_takes_over_an_account_that_may_do_more(stronger: str) -> None:
    clerk = person("clerk", *EDITING)
    who = factories.superuser("root") if stronger == "root" else person(stronger, "grant_topup")
    User.objects.filter(username="sleeping").update(is_active=False)
    password = {"password1": "a new Password 1", "password2": "a new Password 1"}

    address = reverse("admin:auth_user_password_change", args=[who.pk])
    assert post(clerk, address, {**password, "usable_password": "true"}) == 403
    assert change(clerk, who, email="clerk@example.org") == 403
    assert post(clerk, reverse("admin:auth_user_delete", args=[who.pk]), {"post": "yes"}) == 403
    assert User.objects.get(pk=who.pk).password == who.password


def test_an_own_role_and_one_that_may_do_more_are_not_changed() -> None:
    own_role, greater_role, lesser_role = (
        role("Own", *EDITING),
        role("More", "grant_topup"),
        role("Less", "view_user"),
    )
    clerk = person("clerk", groups=(own_role,))

    def edit(group: Group, *rights: str) -> int:
        form = {"name": group.name, "permissions": [permission(right).pk for right in rights]}
        return post(clerk, reverse("admin:auth_group_change", args=[group.pk]), form)

    assert edit(own_role, *EDITING) == 403
    assert edit(greater_role, "view_user") == 403
    assert edit(lesser_role, "grant_topup") == 200
    assert edit(lesser_role, "change_user") == 302
    assert (
        post(clerk, reverse("admin:auth_group_delete", args=[own_role.pk]), {"post": "yes"}) == 403
    )
    root = factories.superuser("root")
    form = {"name": "More", "permissions": [permission("view_user").pk]}
    assert post(root, reverse("admin:auth_group_change", args=[greater_role.pk]), form) == 302
