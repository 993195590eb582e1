"""Hot statements among 100,000 rows of everything: what each reads, as the product sends it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection, transaction
from django.db.models import Value
from django.db.models.functions import Concat, Substr
from django.test import Client
from django.utils import timezone

from chat_app.calls.changes import renew_participants, sweep_calls
from chat_app.calls.reading import current_call
from chat_app.log import history as chat_history
from chat_app.members import membership
from chat_app.search.search import WINDOW, search_messages
from payments_app import services as ledger_services
from sessions_app import kept_responses, selectors, session_states
from sessions_app.access.principal import Principal
from sessions_app.billing import requests
from sessions_app.kept_responses import ResponseFilter
from sessions_app.models import Response, Session
from sessions_app.process import retention
from sessions_app.queue import rows as queue_rows
from sessions_app.queue.reading import current_queue
from sessions_app.store import leases, responses, sql
from sessions_app.store.records import Finished
from sessions_app.tools import approvals, calls, delegated_calls, tasks
from sessions_app.webhooks import changes, deliveries
from tests.growth.costs import counted
from tests.sessions_app.store import turn_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessions_app.store.records import Start
    from tests.growth.rows import FilledTables

# Writing the rows takes seconds, and more on a machine that has other work.
pytestmark = [pytest.mark.django_db, pytest.mark.timeout(600)]

# A reading of 100,000 rows is at least so many; one by an index is a few hundred.
FEW = 5_000


def session_of(filled: FilledTables) -> Any:
    found = selectors.find_session(filled.session.pk, _principal(filled))
    assert found is not None
    return found


def _principal(filled: FilledTables) -> Principal:
    return Principal(key=f"user:{filled.author.pk}", user_id=filled.author.pk, username="author")


def _start(filled: FilledTables) -> Start:
    return turn_rows.start(
        filled.chat.pk,
        session_id=filled.session.pk,
        user_id=filled.author.pk,
        message=None,
        message_event=None,
        responses=[turn_rows.new_response(f"resp_{uuid.uuid4().hex}", agent_id=filled.agent.pk)],
    )


def _finished(filled: FilledTables) -> None:
    start = _start(filled)
    sql.start_turns([start])
    finish = turn_rows.finish(start, message=None, message_event=None)
    assert isinstance(sql.finish_turns([finish])[0], Finished)


HOT: dict[str, Callable[[FilledTables], Any]] = {
    "running_responses": lambda w: selectors.running_responses(w.chat.pk),
    "ends_of_responses": lambda w: chat_history.ends_of_responses(w.chat.pk, ["resp_2", "resp_4"]),
    "claim_orphans": lambda _: leases.claim_orphans("here", running=["resp_x"]),
    "expire_calls": lambda _: calls.expire_calls(),
    "requeue_lost_calls": lambda _: tasks.requeue_lost_calls(),
    "expire_payments": lambda _: requests.expire(),
    "forget_old_checkpoints": lambda _: responses.forget_old_checkpoints(),
    "touch_sessions": lambda w: session_states.touch_sessions([w.session.pk], now=timezone.now()),
    "work_under_way": lambda w: delegated_calls.work_under_way(w.chat.pk),
    "asking_calls": lambda w: approvals.asking_calls(w.chat.pk),
    "waiting_calls": lambda w: calls.waiting_calls(w.session.pk),
    "waiting_payments": lambda w: requests.waiting_payments(session_of(w)),
    "live_children": lambda _: delegated_calls.live_children("resp_7"),
    "undecided_calls": lambda _: approvals.undecided_calls("resp_7"),
    "live_responses_of_session": lambda w: selectors.response_ids_of(w.session.pk, live_only=True),
    "may_cancel": lambda w: selectors.may_cancel("resp_7", session_of(w)),
    "cancel_requests": lambda _: selectors.cancel_requests(["resp_7"]),
    "ended_sessions": lambda w: selectors.ended_sessions([w.session.pk]),
    "history": lambda w: chat_history.history(w.chat.pk, limit=50),
    "events_after": lambda w: chat_history.events_after(w.chat.pk, 99_990),
    "chat_heads": lambda w: chat_history.chat_heads([w.chat.pk]),
    "agent_members": lambda w: membership.agent_members(w.chat.pk),
    "ledger_sweep": lambda _: ledger_services.expire_and_audit(),
    "search_without_a_hit": lambda w: search_messages(w.chat.pk, ["xylophone"], limit=10),
    "search_for_an_old_word": lambda w: search_messages(w.chat.pk, ["number", "1777"], limit=10),
    "search_for_every_message": lambda w: search_messages(w.chat.pk, ["WEATHER"], limit=10),
    "current_call": lambda w: current_call(w.chat.pk),
    "current_queue": lambda w: current_queue(w.chat.pk),
    "due_queued_turns": lambda _: queue_rows.due_chats(timezone.now()),
    "claim_queued_turn": lambda w: queue_rows.claim(w.chat.pk, timezone.now()),
    "renew_participants": lambda w: renew_participants([w.session.pk], now=timezone.now()),
    "sweep_calls": lambda _: sweep_calls(timezone.now()),
    "changed_webhooks": lambda _: changes.find_changes(),
    "due_webhook_deliveries": lambda _: deliveries.take_due(),
    "retention": lambda _: retention.sweep(),
    "start_turns": lambda w: sql.start_turns([_start(w)]),
    "finish_turns": _finished,
}


def test_hot_statements_read_few_rows(filled: FilledTables) -> None:
    found = {}
    for name, call in HOT.items():
        with transaction.atomic():
            call(filled)
            with counted() as cost:
                call(filled)
            transaction.set_rollback(True)
        if cost.amount >= FEW:
            found[name] = str(cost)
    assert not found, "\n\n".join(f"{name}: {cost}" for name, cost in found.items())


def test_a_list_of_tasks_reads_those_of_its_caller(filled: FilledTables) -> None:
    """A hundred tasks of one person among those of others, each with a session of its own."""
    responses_of_all = Response.objects.filter(pk__startswith="resp_")
    responses_of_all.update(session=Concat(Value("sess_"), Substr("id", 6)))
    mine = Principal(key="user:1001", user_id=1001, username="author")
    few = [f"sess_{number}" for number in range(1, 101)]
    Session.objects.filter(pk__in=few).update(principal=mine.key)
    Session.objects.filter(pk__startswith="sess_").update(transport="a2a")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    for which in (ResponseFilter(), ResponseFilter(states=("completed",))):
        with counted() as cost:
            found, total = kept_responses.list_responses(
                mine, which, transport="a2a", agent="echo", limit=51, before=None
            )
        assert (len(found), total) == (51, 100)
        assert cost.amount < FEW, str(cost)


def test_a_word_that_is_too_short_for_the_index_is_looked_for_in_a_window(
    filled: FilledTables,
) -> None:
    with counted() as cost:
        assert search_messages(filled.chat.pk, ["%"], limit=10) == []
    assert cost.amount < WINDOW * 8, str(cost)


@pytest.mark.parametrize("who", ["reader", "newcomer", "author"])
def test_a_list_of_chats_reads_few_rows_for_every_caller(filled: FilledTables, who: str) -> None:
    client = Client()
    client.force_login(getattr(filled, who))
    with counted() as cost:
        answer = client.get("/api/v1/chats")
    assert answer.status_code == 200
    assert answer.json()["data"][0]["unread"] == (0 if who == "reader" else 100)
    assert cost.amount < FEW, str(cost)
