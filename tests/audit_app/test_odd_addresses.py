"""Addresses of admin pages with values that no row can have: each list, filter, search and page."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import models
from django.db.models import CharField, DateField, IntegerField, TextField
from django.test import Client, RequestFactory
from django.urls import NoReverseMatch, reverse

from chat_app.models import Chat, Message
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.db.models import Model

pytestmark = pytest.mark.django_db

SHORT_RUN: Final = bool(os.environ.get("SHORT_RUN"))
SHARE: Final = 12 if SHORT_RUN else 1
"""A short run takes one in so many of the addresses of a list, another one for each list."""
HUGE = "9" * 30
ODD = ("%00", HUGE)
ODDEST = (*ODD, "x", "9" * 5000, "%ED%A0%80", "9999-12-31")
DAYS = ("year=99999", "month=99", "gt=9999-12-32")
COMMON = ("_add", "_change", "_changelist", "_delete", "_history", "logout")
PATTERN = "(a%2B)%2B%24"
LABELS = sorted(model._meta.label for model in admin.site._registry)


def share_of(addresses: Iterable[str], place: int) -> Iterator[str]:
    """Yield the addresses that this run takes of the list at this place."""
    return islice(addresses, place % SHARE, None, SHARE)


@pytest.fixture
def root() -> Client:
    client = Client()
    client.force_login(factories.superuser())
    return client


def list_of(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def filters_of(page: Any) -> Iterator[str]:
    """Yield the names of parameters that the filters of a list take."""
    for entry in page.list_filter:
        field = entry[0] if isinstance(entry, tuple) else entry
        if isinstance(field, str):
            yield field
            yield f"{field}_from"
            yield f"{field}_until"
            yield f"{field}__isnull"
        else:
            yield field.parameter_name


def queries_of(model: type[Model], page: Any) -> Iterator[str]:
    """Yield queries with odd values in each part of the address of a list."""
    yield from (f"{name}={value}" for value in ODDEST for name in ("q", "pk__exact", "before"))
    yield from (f"{name}={value}" for value in ODD for name in ("p", "o", *filters_of(page)))
    for field in model._meta.concrete_fields:
        if isinstance(field, DateField):
            yield from (f"{field.name}__{part}" for part in DAYS)
        elif isinstance(field, IntegerField):
            yield from (f"{field.name}__{lookup}={HUGE}" for lookup in ("in", "gt"))
        elif isinstance(field, CharField | TextField):
            yield f"{field.name}__isnull={HUGE}"
    if page.date_hierarchy:
        of = page.date_hierarchy
        yield f"{of}__year=2026&{of}__month=2&{of}__day=30"
        yield f"{of}__year=&{of}__month=13"


@pytest.mark.postgres
@pytest.mark.parametrize("label", LABELS)
def test_a_list_takes_any_address(label: str, root: Client) -> None:
    ((model, page),) = [
        (model, page) for model, page in admin.site._registry.items() if model._meta.label == label
    ]
    address = list_of(model)
    for query in share_of(queries_of(model, page), LABELS.index(label)):
        answer = root.get(f"{address}?{query}")
        # 400: a lookup that the list does not offer.
        assert answer.status_code in {200, 302, 400}, query
        if answer.status_code == 302:
            target = root.get(answer.headers["Location"])
            assert target.status_code == 200, query
            assert target.context["messages"], query


@pytest.mark.postgres
def test_an_action_takes_any_selected_id(root: Client) -> None:
    lists = 0
    for model in admin.site._registry:
        form = root.get(list_of(model)).context["action_form"]
        choices = [] if form is None else form.fields["action"].choices
        actions = [name for name, _ in choices if name]
        lists += bool(actions)
        for action in actions:
            chosen = {"action": action, "_selected_action": ["x", HUGE, "\0", ""]}
            answer = root.post(list_of(model), chosen)
            assert answer.status_code in {200, 302}, (model, action)
    assert lists > 5
    assert User.objects.count() == 1


def test_a_list_has_no_patterns(root: Client) -> None:
    for place, model in enumerate(admin.site._registry):
        lookups = ("regex", "iregex", "range")
        field = f"{list_of(model)}?{model._meta.pk.name}"
        for query in share_of((f"{field}__{lookup}={PATTERN}" for lookup in lookups), place):
            assert root.get(query).status_code == 400, query


def test_a_list_does_not_tell_parts_of_a_text(root: Client) -> None:
    """Otherwise it would tell letter by letter what the page of a row withholds."""
    queries = [
        f"{list_of(model)}?{field.name}__{lookup}=a"
        for model in admin.site._registry
        for field in model._meta.concrete_fields
        if isinstance(field, models.CharField | models.TextField | models.JSONField)
        for lookup in ("startswith", "icontains", "iexact", "gt", "lte", "endswith", "lt")
    ]
    assert len(queries) > 700
    for query in share_of(queries, 0):
        assert root.get(query).status_code == 400, query


@pytest.mark.parametrize(
    "name", ["content", "content__exact", "content__isnull", "content_items__0"]
)
def test_a_list_does_not_tell_whether_a_body_is_known(name: str, root: Client) -> None:
    assert root.get(f"{list_of(Message)}?{name}=a").status_code == 400


def test_a_list_is_filtered_only_by_what_it_offers(root: Client) -> None:
    """Without an index, a filter by any other column would read the whole table."""
    request = RequestFactory().get("/")
    request.user = User.objects.get(pk=root.session["_auth_user_id"])
    lookups = ("", "__exact", "__isnull", "__gt", "__id__exact")
    queries = [
        (page, f"{field.name}{lookup}")
        for model, page in admin.site._registry.items()
        for field in model._meta.concrete_fields
        if field.name not in {*filters_of(page), page.date_hierarchy}
        for lookup in lookups
    ]
    assert len(queries) > 2000
    allowed = [
        f"{page}?{name}" for page, name in queries if page.lookup_allowed(name, "1", request)
    ]
    assert allowed == ["sessions_app.WebhookDeliveryAdmin?webhook__id__exact"]
    assert root.get(f"{list_of(Message)}?sender_user=1").status_code == 400
    # Nor by an annotation of its query, which is no field.
    assert root.get(f"{list_of(Chat)}?member_count=1").status_code == 400


def test_a_page_of_a_row_that_cannot_be_is_missing(root: Client) -> None:
    views, ids = ("change", "delete", "history"), ("_00", HUGE, "x", "%ED%A0%80")
    for place, model in enumerate(admin.site._registry):
        names = [f"admin:{model._meta.app_label}_{model._meta.model_name}_{view}" for view in views]
        addresses = [reverse(name, args=["x1x"]).replace("x1x", pk) for name in names for pk in ids]
        for address in share_of(addresses, place):
            assert root.get(address).status_code in {302, 403, 404}, address


def test_every_other_page_takes_any_address(root: Client) -> None:
    """Pages of our own: timelines, statements, operations, the search, completions."""
    page_count = 0
    for name in names_of_pages():
        for value in ("_00", HUGE, "x"):
            for args in ([], [value], [value, value]):
                try:
                    address = reverse(f"admin:{name}", args=args)
                except NoReverseMatch:
                    continue
                page_count += 1
                for query in ("", "?q=%00&at=%00&term=%00", f"?q={HUGE}&at={HUGE}&who={HUGE}&p=x"):
                    status = root.get(address + query).status_code
                    assert status < 500, address + query
    assert page_count > 20


def names_of_pages() -> set[str]:
    """Return the names of all pages of the admin."""
    return set(_names(admin.site.urls[0]))


def _names(patterns: Any) -> Iterator[str]:
    for pattern in patterns:
        if hasattr(pattern, "url_patterns"):
            yield from _names(pattern.url_patterns)
        elif pattern.name and not pattern.name.endswith(COMMON):
            yield pattern.name
