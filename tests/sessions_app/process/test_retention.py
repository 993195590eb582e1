"""What has no use any more is deleted, in batches; what a person may still read is kept."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.sessions.models import Session as BrowserSession
from django.utils import timezone

from agents_app.models import Agent
from chat_app.contents import quota, reading_rights, storage
from chat_app.models import Chat, Content, Message
from sessions_app import services
from sessions_app.access import auth
from sessions_app.models import InboundEvent, PendingInput, Response, Session, Ticket
from sessions_app.process import retention
from tests import factories
from uamp import events as ev

if TYPE_CHECKING:
    from pytest_django import Settings

    from sessions_app.records import OpenSession

pytestmark = pytest.mark.django_db


def days_ago(days: float) -> Any:
    return timezone.now() - timedelta(days=days)


def visit(*, days: float, status: str = "closed") -> OpenSession:
    """Return a visitor's session, whose chat was used last so many days ago."""
    if not Agent.objects.filter(name="assistant").exists():
        factories.agent("assistant")
    session = services.open_session(
        principal=auth.anonymous(),
        transport="batch",
        create=ev.SessionCreate(),
        agent_name=None,
        chat_id=None,
    )
    Session.objects.filter(pk=session.id).update(status=status)
    Chat.objects.filter(pk=session.chat_id).update(latest_at=days_ago(days))
    return session


def test_client_events_are_forgotten_after_their_time_and_not_before() -> None:
    session = factories.session(person := factories.user(), factories.chat(person))
    for number, days in enumerate((8, 7.5, 6, 0)):
        row = InboundEvent.objects.create(session=session, event_id=str(number), sha256="0")
        InboundEvent.objects.filter(pk=row.pk).update(created_at=days_ago(days))
        kept = PendingInput.objects.create(session=session, event_id=str(number), payload={})
        PendingInput.objects.filter(pk=kept.pk).update(created_at=days_ago(days))
    assert retention.sweep() == 4
    assert set(InboundEvent.objects.values_list("event_id", flat=True)) == {"2", "3"}
    assert set(PendingInput.objects.values_list("event_id", flat=True)) == {"2", "3"}
    assert retention.sweep() == 0


def test_a_setting_does_not_forget_events_of_answers_that_may_still_wait(
    settings: Settings,
) -> None:
    settings.UAMP_REPEAT_DAYS = 0
    session = factories.session(person := factories.user(), factories.chat(person))
    row = InboundEvent.objects.create(session=session, event_id="1", sha256="0")
    InboundEvent.objects.filter(pk=row.pk).update(created_at=days_ago(1.5))
    assert retention.sweep() == 0


def test_a_batch_has_a_limit() -> None:
    session = factories.session(person := factories.user(), factories.chat(person))
    InboundEvent.objects.bulk_create(
        InboundEvent(session=session, event_id=str(i), sha256="0", created_at=days_ago(9))
        for i in range(5)
    )
    assert [retention.sweep(limit=2) for _ in range(4)] == [2, 2, 1, 0]


def test_expired_tickets_and_sessions_of_browsers_go() -> None:
    person = factories.user()
    for name, days in (("old", 1), ("new", -1)):
        BrowserSession.objects.create(session_key=name, session_data="", expire_date=days_ago(days))
        Ticket.objects.create(sha256=name, user=person, expires_at=days_ago(days))
    assert retention.sweep() == 2
    assert BrowserSession.objects.get().pk == "new"
    assert Ticket.objects.get().pk == "new"


def test_a_visitors_chat_goes_with_all_that_is_in_it_and_others_stay(settings: Settings) -> None:
    gone, fresh, open_still = visit(days=31), visit(days=29), visit(days=31, status="idle")
    person = factories.user()
    of_a_person = factories.chat(person, kind=Chat.Kind.SESSION)
    left = factories.chat(person, title="A group without its maker")
    Chat.objects.filter(pk__in=[of_a_person.pk, left.pk]).update(latest_at=days_ago(99))
    Chat.objects.filter(pk=left.pk).update(created_by=None)
    agent = Agent.objects.get(name="assistant")
    chat = Chat.objects.get(pk=gone.chat_id)
    factories.message(chat, agent)
    Chat.objects.filter(pk=chat.pk).update(latest_at=days_ago(31))
    answer = factories.response(agent, chat, status="completed", session_id=gone.id)
    stored = storage.store(
        factories.png(),
        mime_type="image/png",
        filename="a.png",
        owner=quota.ContentOwner(user_id=None, key=f"chat:{chat.pk}"),
    )
    reading_rights.use(chat.pk, [str(stored.pk)])

    settings.UAMP_VISITOR_DAYS = 0
    assert retention.sweep() == 0
    settings.UAMP_VISITOR_DAYS = 30
    assert retention.sweep() == 1
    kept = {fresh.chat_id, open_still.chat_id, of_a_person.pk, left.pk}
    assert set(Chat.objects.values_list("pk", flat=True)) == kept
    assert not Session.objects.filter(pk=gone.id).exists()
    assert not Response.objects.filter(pk=answer.pk).exists()
    assert not Message.objects.exists()
    assert not Content.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_files_of_a_visitors_chat_leave_the_disk() -> None:
    session = visit(days=31)
    owner = quota.ContentOwner(user_id=None, key=f"chat:{session.chat_id}")
    stored = storage.store(factories.png(), mime_type="image/png", filename="a.png", owner=owner)
    path = Path(stored.blob.path)
    reading_rights.use(session.chat_id, [str(stored.pk)])
    Chat.objects.filter(pk=session.chat_id).update(latest_at=days_ago(31))
    assert path.exists()
    assert retention.sweep() == 1
    assert not path.exists()
