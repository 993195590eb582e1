"""Rows of `chat_app.new_rows.insert` are those that Django's own `save` writes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

import uamp
from agents_app.models import Agent
from chat_app.models import Chat, Participant
from chat_app.new_rows import insert
from sessions_app import services
from sessions_app.access.auth import of_user
from sessions_app.models import Session
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def chat(**values: Any) -> Chat:
    """Return a chat that is not stored."""
    return Chat(title='a "title" %s', epoch="e", created_at=AT, latest_at=AT, last_seq=3, **values)


def session(**values: Any) -> Session:
    """Return a session that is not stored."""
    config = {"text": "ä\u2028%s", "none": None, "list": [1, 2.5, True]}
    values = {"principal": "user:1", "transport": "batch", "uamp_version": "1.0", **values}
    return Session(config=config, created_at=AT, seen_at=AT, **values)


def stored(row: Model) -> dict[str, Any]:
    """Return a row as the database has it, without its own key."""
    values: dict[str, Any] = type(row)._default_manager.values().get(pk=row.pk)
    return {name: value for name, value in values.items() if name != "id"}


def test_a_row_is_the_one_that_django_writes() -> None:
    person = User.objects.create_user("alice")
    agent = Agent.objects.create(name="helper")
    for values in ({}, {"created_by": person, "payer_user": person, "kind": "session"}):
        ours, djangos = chat(**values), chat(**values)
        insert(ours)
        djangos.save()
        assert stored(ours) == stored(djangos)
    for values in ({}, {"user": person, "agent": agent, "client_capabilities": {"a": "b"}}):
        sessions = [session(chat=ours, ephemeral=bool(values), **values) for _ in range(2)]
        insert(sessions[0])
        sessions[1].save(force_insert=True)
        assert stored(sessions[0]) == stored(sessions[1])


def test_several_rows_are_one_statement(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    person, agent, of = User.objects.create_user("a"), Agent.objects.create(name="b"), chat()
    insert(of)
    members = [
        Participant(chat=of, user=person, role="owner", joined_at=AT),
        Participant(chat=of, agent=agent, trigger="always", joined_at=AT),
    ]

    with django_assert_num_queries(1):
        insert(*members)

    participants = [
        (p.user, p.agent, p.role, p.trigger) for p in Participant.objects.order_by("pk")
    ]
    assert participants == [(person, None, "owner", "mention"), (None, agent, "member", "always")]
    of.title = "changed"
    of.save()
    assert Chat.objects.get().title == "changed"


def test_a_row_that_is_there_is_an_error() -> None:
    of = chat()
    insert(of)
    with pytest.raises(IntegrityError), transaction.atomic():
        insert(chat(id=of.pk))


def test_of_two_sessions_of_one_id_at_once_the_second_exists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Agent.objects.create(name="echo", is_public=True)
    principal = of_user(User.objects.create_user("alice"))
    create = ev.SessionCreate(uamp_version="1.0", session=uamp.SessionConfig(id="mine"))
    looks: list[str] = []

    def sessions_of_id(wire_id: str, of: Any) -> QuerySet[Session]:
        # The other connection opens its session after this one has looked.
        looks.append(wire_id)
        sessions = Session.objects.filter(client_id=wire_id, principal=of.key)
        return sessions if len(looks) > 1 else sessions.none()

    def open_session() -> None:
        services.open_session(
            principal=principal,
            transport="batch",
            create=create,
            agent_name="echo",
            chat_id=None,
        )

    open_session()
    monkeypatch.setattr(services, "sessions_named", sessions_of_id)
    with pytest.raises(RemoteProtocolError) as caught:
        open_session()

    assert caught.value.code == ErrorCode.SESSION_EXISTS
    assert (Session.objects.count(), Chat.objects.count()) == (1, 1)
