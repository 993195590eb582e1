"""Every endpoint of REST and every client event declares the scope that a credential needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.urls import get_resolver

import uamp
from agents_app.rest.rights import ALL, ANY, PROTOCOLS, SCOPES, Rights, unknown_scopes
from agents_app.rest.views import JsonView
from chat_app.rest.edge import UnknownPathView
from sessions_app.access.protocol_rights import protocol_of
from sessions_app.handlers import scopes
from sessions_app.handlers.table import HANDLERS
from sessions_app.models import SessionTransport

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.any_database


def views(resolver: Any) -> Iterator[type[JsonView]]:
    """Yield the REST views of all paths."""
    for pattern in resolver.url_patterns:
        if hasattr(pattern, "url_patterns"):
            yield from views(pattern)
            continue
        view = getattr(pattern.callback, "view_class", getattr(pattern.callback, "cls", None))
        if isinstance(view, type) and issubclass(view, JsonView):
            yield view


def test_every_endpoint_declares_the_scopes_of_its_methods() -> None:
    declared = set(views(get_resolver())) - {UnknownPathView}
    assert len(declared) > 50
    for view in declared:
        writes = any(hasattr(view, method) for method in ("post", "put", "patch", "delete"))
        assert view.read_scope is not None or not hasattr(view, "get"), view
        assert view.write_scope is not None or not writes, view
        assert {view.read_scope, view.write_scope} - {None, ANY} <= set(SCOPES), view


def test_every_client_event_declares_its_scope() -> None:
    assert set(scopes.SCOPES) == set(HANDLERS)
    assert set(scopes.SCOPES.values()) - {ANY} <= set(SCOPES)
    # A peer signs its envelopes; no key is used for them.
    others = set(SessionTransport) - {SessionTransport.ENVELOPE}
    assert {protocol_of(event_type) for event_type in others} == set(PROTOCOLS)


def test_a_view_without_a_scope_and_an_event_without_one_need_all_rights() -> None:
    narrow = Rights(scopes=frozenset(SCOPES))
    assert not narrow.has("*")
    assert ALL.has("*")
    assert scopes.SCOPES.get(uamp.UnknownEvent, "*") == "*"


@pytest.mark.parametrize(
    ("outer", "inner", "included"),
    [
        (["*"], ["*"], True),
        (["chats:*"], ["chats:read", "chats:write"], True),
        (["chats:*"], ["chats:*"], True),
        (["chats:read", "chats:write"], ["chats:*"], False),
        (["chats:read"], ["messages:write"], False),
        (list(SCOPES), ["*"], False),
        (["*"], ["payments:*"], True),
    ],
)
def test_scopes_include_scopes(outer: list[str], inner: list[str], *, included: bool) -> None:
    assert unknown_scopes([*outer, *inner]) == []
    wide, narrow = Rights(scopes=frozenset(outer)), Rights(scopes=frozenset(inner))
    assert wide.includes(narrow) is included


def test_restrictions_include_narrower_ones_alone() -> None:
    wider = Rights(scopes=frozenset({"*"}), chats=frozenset({"a", "b"}))
    narrow = Rights(scopes=frozenset({"*"}), chats=frozenset({"a"}))
    assert wider.includes(narrow)
    assert ALL.includes(wider)
    assert not narrow.includes(wider)
    assert not wider.includes(ALL)
    assert unknown_scopes(["chats:delete", "*:read", "everything"]) == [
        "*:read",
        "chats:delete",
        "everything",
    ]
