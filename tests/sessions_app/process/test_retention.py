"""Rows without a use are deleted, in batches; everything a person may still read is kept."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as BrowserSession
from django.utils import timezone

from agents_app.models import Agent
from chat_app.contents import quota, reading_rights, storage
from chat_app.models import Chat, ChatEvent, ChatKind, Content, Message, Participant
from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from payments_app.money import Money
from sessions_app import services, session_states
from sessions_app.access import auth
from sessions_app.access.principal import Principal, PrincipalKind
from sessions_app.billing import payers
from sessions_app.models import (
    InboundEvent,
    PendingInput,
    Response,
    Session,
    Ticket,
    ToolCall,
)
from sessions_app.process import retention
from tests import factories
from uamp import events as ev

if TYPE_CHECKING:
    from pytest_django import Settings

    from sessions_app.records import OpenSession

pytestmark = pytest.mark.django_db


def days_ago(days: float) -> Any:
    return timezone.now() - timedelta(days=days)


def visit(
    *, days: float, status: str = "closed", principal: Principal | None = None
) -> OpenSession:
    """Return a visitor's session, whose chat was used last so many days ago."""
    if not Agent.objects.filter(name="assistant").exists():
        factories.agent("assistant")
    session = services.open_session(
        principal=principal or auth.anonymous(),
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
        pending = PendingInput.objects.create(session=session, event_id=str(number), payload={})
        PendingInput.objects.filter(pk=pending.pk).update(created_at=days_ago(days))
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
    of_a_person = factories.chat(person, kind=ChatKind.SESSION)
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
    remaining_chats = {fresh.chat_id, open_still.chat_id, of_a_person.pk, left.pk}
    assert set(Chat.objects.values_list("pk", flat=True)) == remaining_chats
    assert not Session.objects.filter(pk=gone.id).exists()
    assert not Response.objects.filter(pk=answer.pk).exists()
    assert not Message.objects.exists()
    assert not Content.objects.exists()


def ephemeral(
    principal: Principal | None = None, *, hours: float = 25, ephemeral: bool = True
) -> OpenSession:
    """Return the session of a stateless request, whose chat was used last so many hours ago."""
    if not Agent.objects.filter(name="assistant").exists():
        factories.agent("assistant")
    session = services.open_session(
        principal=principal or auth.of_user(factories.user(f"user{User.objects.count()}")),
        transport="completions",
        create=ev.SessionCreate(),
        agent_name=None,
        chat_id=None,
        ephemeral=ephemeral,
    )
    factories.message(Chat.objects.get(pk=session.chat_id), Agent.objects.get(name="assistant"))
    age(session, hours)
    return session


def age(session: OpenSession, hours: float) -> None:
    """Let a session and its chat have been used so many hours ago."""
    Session.objects.filter(pk=session.id).update(seen_at=days_ago(hours / 24))
    Chat.objects.filter(pk=session.chat_id).update(latest_at=days_ago(hours / 24))


def test_the_sessions_of_stateless_requests_go_with_their_chats_after_their_time(
    settings: Settings,
) -> None:
    of_a_peer = ephemeral(Principal(key=PrincipalKind.PEER.key("other.example")))
    gone, fresh = ephemeral(), ephemeral(hours=23)
    lasting, running, active = ephemeral(ephemeral=False), ephemeral(), ephemeral()
    agent = Agent.objects.get(name="assistant")
    factories.response(agent, Chat.objects.get(pk=running.chat_id), session_id=running.id)
    Session.objects.filter(pk=active.id).update(status="active")
    settings.UAMP_EPHEMERAL_HOURS = 0
    assert retention.sweep() == 0
    settings.UAMP_EPHEMERAL_HOURS = 24
    assert retention.sweep() == 2
    remaining_chats = {session.chat_id for session in (fresh, lasting, running, active)}
    assert set(Chat.objects.values_list("pk", flat=True)) == remaining_chats
    assert set(Message.objects.values_list("chat_id", flat=True)) == remaining_chats
    assert not Session.objects.filter(pk__in=[gone.id, of_a_peer.id]).exists()


@pytest.mark.parametrize("taken_up", ["joined", "opened", "titled", "payer", "pool", "session"])
def test_a_chat_that_a_person_takes_up_is_no_longer_ephemeral(taken_up: str) -> None:
    person = factories.user("person")
    session = ephemeral(auth.of_user(person))
    chat = Chat.objects.get(pk=session.chat_id)
    match taken_up:
        case "joined":
            Participant.objects.create(chat=chat, user=factories.user("guest"))
        case "opened":
            factories.session(person, chat)
        case "titled":
            Chat.objects.filter(pk=chat.pk).update(title="Mine")
        case "payer":
            Chat.objects.filter(pk=chat.pk).update(payer="owner")
        case "pool":
            payers.pool_of(chat.pk, "USD")
        case _:
            assert session_states.keep_session(session.id)
    age(session, 99)
    assert retention.sweep() == 0
    assert Chat.objects.filter(pk=chat.pk).exists()


def test_a_session_in_a_chat_of_its_clients_choice_is_never_ephemeral() -> None:
    factories.agent("assistant")
    person = factories.user()
    services.open_session(
        principal=auth.of_user(person),
        transport="completions",
        create=ev.SessionCreate(),
        agent_name=None,
        chat_id=factories.chat(person).pk,
        ephemeral=True,
    )
    assert not Session.objects.get().ephemeral


def test_work_for_an_answer_goes_after_the_answer() -> None:
    parent, child = ephemeral(), ephemeral()
    agent = Agent.objects.get(name="assistant")
    answer = factories.response(
        agent,
        Chat.objects.get(pk=parent.chat_id),
        session_id=parent.id,
        status="completed",
    )
    call = factories.tool_call(answer, kind="agent", status="done", finished_at=timezone.now())
    Session.objects.filter(pk=child.id).update(parent_call=call)
    Session.objects.filter(pk=parent.id).update(ephemeral=False)
    assert retention.sweep() == 0
    Session.objects.filter(pk=parent.id).update(ephemeral=True)
    assert [retention.sweep() for _ in range(3)] == [1, 1, 0]


@pytest.mark.parametrize("principal", ["person", "visitor"])
def test_what_was_paid_keeps_its_answer_without_its_words(principal: str) -> None:
    session = ephemeral() if principal == "person" else visit(days=31)
    agent, chat = Agent.objects.get(name="assistant"), Chat.objects.get(pk=session.chat_id)
    usage = {"input_tokens": 3, "cost": {"amount": "0.25"}}
    paid, free = (
        factories.response(
            agent, chat, session_id=session.id, status="completed", text="words", usage=usage
        )
        for _ in range(2)
    )
    factories.tool_call(paid, status="done", finished_at=timezone.now())
    payer = ledger.account_of_user(factories.user("payer").pk).id
    quarter = Money.parse("0.25", "USD")
    ledger.top_up(key="1", account=payer, amount=quarter, provider="tests", external_id="1")
    authorization = ledger.Authorization(
        key="2", account_id=payer, amount=quarter, response_id=paid.pk
    )
    quarter_hold = ledger.authorize(authorization)
    ledger.capture(
        key="3", hold_id=quarter_hold.hold_id, amount=quarter, splits=[ledger.Split(None, quarter)]
    )
    Chat.objects.filter(pk=chat.pk).update(latest_at=days_ago(31))
    assert retention.sweep() == 1
    row = Response.objects.get()
    assert (row.pk, row.text, row.output, row.request, row.usage) == (paid.pk, "", [], {}, usage)
    assert row.session is None
    assert [hold.response_id for hold in ledger_rows.holds_of_response(paid.pk)] == [paid.pk]
    assert not Response.objects.filter(pk=free.pk).exists()
    left = (Session, Message, ToolCall, Participant, ChatEvent)
    assert [model._default_manager.count() for model in left] == [0] * len(left)
    # The rows that stay are no chat to delete again.
    assert retention.sweep() == 0


def test_the_chat_of_a_peer_is_not_deleted_as_a_visitors() -> None:
    visit(days=99, principal=Principal(key=PrincipalKind.PEER.key("other.example")))
    assert retention.sweep() == 0
    assert Chat.objects.count() == 1


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
