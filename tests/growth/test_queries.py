"""Hot statements among 100,000 rows of everything: what each reads, as the product sends it."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Concat, Substr
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat_app.calls.agents import hosted_agent
from chat_app.calls.call_change import NotInCall
from chat_app.calls.operations import renew_participants, sweep_calls
from chat_app.calls.reading import current_call
from chat_app.log import history as chat_history
from chat_app.log import signatures as log_signatures
from chat_app.members import membership
from chat_app.search.search import WINDOW, search_messages
from payments_app import services as ledger_services
from sessions_app import selectors, session_states
from sessions_app.access import standing
from sessions_app.access.principal import Principal
from sessions_app.billing import requests
from sessions_app.models import Response, Session, Webhook, WebhookDelivery
from sessions_app.process import retention
from sessions_app.queue import rows as queue_rows
from sessions_app.queue.reading import current_queue
from sessions_app.returning import past_responses
from sessions_app.returning.past_responses import ResponseFilter
from sessions_app.store import leases, responses, sql
from sessions_app.store.records import Finished
from sessions_app.tools import approvals, calls, delegated_calls, tasks
from sessions_app.webhooks import chat_changes, chat_webhooks, deliveries, response_changes
from tests.growth.admin_lists import PAGE
from tests.growth.bulk_rows import DUE
from tests.growth.costs import analyze, counted
from tests.sessions_app.store import turn_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessions_app.store.records import Start
    from tests.growth.bulk_rows import FilledTables

# Writing the rows takes seconds, and more on a machine that has other work.
pytestmark = [
    pytest.mark.long,
    pytest.mark.postgres,
    pytest.mark.django_db,
    pytest.mark.timeout(600),
]

# A reading of 100,000 rows is at least so many; one by an index is a few hundred.
FEW = 5_000
# The answers of a page of an export.
PAGE_OF_RESPONSES = [f"resp_{number}" for number in range(0, 100, 2)]


def session_of(filled: FilledTables) -> Any:
    session = selectors.find_session(filled.session.pk, _principal(filled))
    assert session is not None
    return session


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


def _hosted_agent(w: FilledTables) -> None:
    with suppress(NotInCall):
        hosted_agent(chat_id=w.chat.pk, call_id="x", session_id=w.session.pk, name="a")


def _standing(w: FilledTables) -> object:
    basis = standing.AnswerBasis("agent_x", "a", w.author.pk, w.chat.pk, "key:7")
    return standing.revoked_answers({"resp_7": basis})


HOT: dict[str, Callable[[FilledTables], Any]] = {
    "running_responses": lambda w: selectors.running_responses(w.chat.pk),
    "ends_of_responses": lambda w: chat_history.ends_of_responses(w.chat.pk, ["resp_2", "resp_4"]),
    "signatures_of_a_page": lambda w: log_signatures.signatures_of(w.chat.pk, PAGE_OF_RESPONSES),
    "stored_outputs_of_a_page": lambda w: log_signatures.stored_hashes(
        w.chat.pk, PAGE_OF_RESPONSES
    ),
    "claim_orphans": lambda _: leases.claim_orphans("here", running=["resp_x"]),
    "expire_calls": lambda _: calls.expire_calls(),
    "requeue_lost_calls": lambda _: tasks.requeue_lost_calls(),
    "expire_payments": lambda _: requests.expire(),
    "forget_old_checkpoints": lambda _: responses.forget_old_checkpoints(),
    "touch_sessions": lambda w: session_states.touch_sessions([w.session.pk], now=timezone.now()),
    "work_under_way": lambda w: delegated_calls.work_under_way(w.chat.pk),
    "pending_approvals": lambda w: approvals.pending_approvals(w.chat.pk),
    "waiting_calls": lambda w: calls.waiting_calls(w.session.pk),
    "waiting_payments": lambda w: requests.waiting_payments(session_of(w)),
    "live_children": lambda _: delegated_calls.live_children("resp_7"),
    "undecided_calls": lambda _: approvals.undecided_calls("resp_7"),
    "live_responses_of_session": lambda w: selectors.response_ids_of(w.session.pk, live_only=True),
    "may_cancel": lambda w: selectors.may_cancel("resp_7", session_of(w)),
    "cancel_requests": lambda _: selectors.cancel_requests(["resp_7"]),
    "ended_sessions": lambda w: selectors.ended_sessions([w.session.pk]),
    "standing": _standing,
    "history": lambda w: chat_history.history(w.chat.pk, limit=50),
    "events_after": lambda w: chat_history.events_after(w.chat.pk, 99_990),
    "chat_heads": lambda w: chat_history.chat_heads([w.chat.pk]),
    "agent_members": lambda w: membership.agent_members(w.chat.pk),
    "ledger_sweep": lambda _: ledger_services.expire_and_audit(),
    "search_without_a_hit": lambda w: search_messages(w.chat.pk, ["xylophone"], limit=10),
    "search_for_an_old_word": lambda w: search_messages(w.chat.pk, ["number", "1777"], limit=10),
    "search_for_every_message": lambda w: search_messages(w.chat.pk, ["WEATHER"], limit=10),
    "current_call": lambda w: current_call(w.chat.pk),
    "hosted_agent": _hosted_agent,
    "current_queue": lambda w: current_queue(w.chat.pk),
    "due_queued_turns": lambda _: queue_rows.due_chats(timezone.now()),
    "claim_queued_turn": lambda w: queue_rows.claim(w.chat.pk, timezone.now()),
    "renew_participants": lambda w: renew_participants([w.session.pk], now=timezone.now()),
    "sweep_calls": lambda _: sweep_calls(timezone.now()),
    "changed_webhooks": lambda _: response_changes.find_changes(),
    "due_chat_webhooks": lambda _: chat_changes.find_entries(),
    "webhooks_of_a_person": lambda w: list(chat_webhooks.webhooks_of(w.author.pk)[:51]),
    "due_webhook_deliveries": lambda _: deliveries.take_due(),
    # A tenth of a batch: what it reads is as many rows as it deletes, of each kind.
    "retention": lambda _: retention.sweep(limit=100),
    "start_turns": lambda w: sql.start_turns([_start(w)]),
    "finish_turns": _finished,
}


def test_hot_statements_read_few_rows(filled: FilledTables) -> None:
    high_costs = {}
    for name, call in HOT.items():
        with transaction.atomic():
            call(filled)
            with counted() as cost:
                call(filled)
            transaction.set_rollback(True)
        if cost.amount >= FEW:
            high_costs[name] = str(cost)
    assert not high_costs, "\n\n".join(f"{name}: {cost}" for name, cost in high_costs.items())


def test_a_list_of_tasks_reads_those_of_its_caller(filled: FilledTables) -> None:
    """A hundred tasks of one person among those of others, each with a session of its own."""
    responses_of_all = Response.objects.filter(pk__startswith="resp_")
    responses_of_all.update(session=Concat(Value("sess_"), Substr("id", 6)))
    # The author's session still has index entries of all rows, until they are vacuumed.
    reader = filled.reader
    mine = Principal(key=f"user:{reader.pk}", user_id=reader.pk, username="reader")
    few = [f"sess_{number}" for number in range(1, 101)]
    Session.objects.filter(pk__in=few).update(principal=mine.key)
    Session.objects.filter(pk__startswith="sess_").update(transport="a2a")
    analyze()
    for which in (ResponseFilter(), ResponseFilter(states=("completed",))):
        with counted() as cost:
            listed_responses, total = past_responses.list_responses(
                mine, which, transport="a2a", agent="echo", limit=51, before=None
            )
        assert (len(listed_responses), total) == (51, 100)
        assert cost.amount < FEW, str(cost)


def test_a_word_that_is_too_short_for_the_index_is_looked_for_in_a_window(
    filled: FilledTables,
) -> None:
    with counted() as cost:
        assert search_messages(filled.chat.pk, ["%"], limit=10) == []
    assert cost.amount < WINDOW * 8, str(cost)


def test_a_webhook_with_a_long_history_costs_what_is_unsent(filled: FilledTables) -> None:
    """Deliveries of one webhook are as many as of all together; a few of them are due."""
    history = WebhookDelivery.objects.filter(finished_at__isnull=False)
    WebhookDelivery.objects.filter(finished_at__isnull=True).delete()
    webhook = Webhook.objects.get(pk=history.latest("pk").webhook_id)
    history.update(webhook=webhook, number=F("pk") + 1000)
    last = history.latest("number").number
    Webhook.objects.filter(pk=webhook.pk).update(
        response=None, chat=filled.chat, user=filled.author, format=chat_webhooks.FORMAT
    )
    webhook.refresh_from_db()
    due = [
        WebhookDelivery.objects.create(webhook=webhook, number=last + place, state="x", seq=place)
        for place in range(1, DUE + 1)
    ]
    analyze()
    page = reverse("admin:sessions_app_webhook_change", args=[webhook.pk])
    listed = reverse("admin:sessions_app_webhookdelivery_changelist")
    person, operator = Client(), Client()
    person.force_login(filled.author)
    operator.force_login(filled.root)
    of_one = f"/api/v1/webhooks/{webhook.pk}/deliveries"
    calls: dict[str, Callable[[], Any]] = {
        "take_due": deliveries.take_due,
        "claim": lambda: deliveries.claim(due[0].pk),
        "claim_out_of_order": lambda: deliveries.claim(due[1].pk),
        "ping": lambda: chat_webhooks.ping(webhook),
        "disable": lambda: deliveries.disable(webhook.pk, "it is tested"),
        "list": lambda: person.get(of_one),
        "queued": lambda: person.get(f"{of_one}?status=queued"),
        "page": lambda: operator.get(page),
    }
    high_costs = {}
    for name, call in calls.items():
        with transaction.atomic():
            with counted() as cost:
                answer = call()
            transaction.set_rollback(True)
        assert getattr(answer, "status_code", 200) == 200, name
        if cost.amount >= FEW:
            high_costs[name] = str(cost)
    assert not high_costs, "\n\n".join(f"{name}: {cost}" for name, cost in high_costs.items())
    with counted() as cost:
        assert operator.get(f"{listed}?webhook__id__exact={webhook.pk}").status_code == 200
    # It counts up to 10,000 rows for its pages.
    assert cost.amount < PAGE, str(cost)


@pytest.mark.parametrize("who", ["reader", "newcomer", "author"])
def test_a_list_of_chats_reads_few_rows_for_every_caller(filled: FilledTables, who: str) -> None:
    client = Client()
    client.force_login(getattr(filled, who))
    with counted() as cost:
        answer = client.get("/api/v1/chats")
    assert answer.status_code == 200
    assert answer.json()["data"][0]["unread"] == (0 if who == "reader" else 100)
    assert cost.amount < FEW, str(cost)
