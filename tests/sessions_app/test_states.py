"""Rows change state as their tables say, and in no other way, whatever writes them."""

from __future__ import annotations

import ast
import uuid
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from chat_app.models import Presence
from sessions_app import session_states, transitions
from sessions_app.billing import requests
from sessions_app.models import (
    PaymentRequest,
    Response,
    Session,
    ToolCall,
    Webhook,
    WebhookDelivery,
)
from sessions_app.states import (
    DELIVERY_TRANSITIONS,
    PAYMENT_TRANSITIONS,
    TOOL_CALL_TRANSITIONS,
    DeliveryTrigger,
    PaymentTrigger,
    ToolCallTrigger,
)
from sessions_app.store import leases, responses
from sessions_app.store.group_commit import ORM, SQL, Bodies
from sessions_app.store.records import Fenced, Finished
from tests import factories
from tests.client import wait_until
from tests.sessions_app.store import turn_rows as worlds
from uamp import (
    RESPONSE_TRANSITIONS,
    SESSION_TRANSITIONS,
    LocalProtocolError,
    ResponseTrigger,
    SessionState,
    SessionTrigger,
    moves,
    unfinished,
)

if TYPE_CHECKING:
    from enum import StrEnum

    from tests.live_server import Dial, Person

ROOT = Path(__file__).parents[2]
TABLES: dict[type[Any], dict[Any, dict[Any, Any]]] = {
    Session: SESSION_TRANSITIONS,
    Response: RESPONSE_TRANSITIONS,
    ToolCall: TOOL_CALL_TRANSITIONS,
    PaymentRequest: PAYMENT_TRANSITIONS,
    WebhookDelivery: DELIVERY_TRANSITIONS,
}
TRIGGERS: tuple[StrEnum, ...] = (
    *SessionTrigger,
    *ResponseTrigger,
    *ToolCallTrigger,
    *PaymentTrigger,
    *DeliveryTrigger,
)
# Their rows have `finished_at` when they have ended, and only then.
ENDING = (Response, WebhookDelivery)
KINDS = st.sampled_from(tuple(TABLES))


# --- Every trigger in every state ---


class Rows(RuleBasedStateMachine):
    """One row of each kind, and the states that their tables say they have."""

    @initialize()
    def make(self) -> None:
        """Write the rows in their first states."""
        number = uuid.uuid4().hex[:12]
        ada, agent = factories.user(number), factories.agent(number)
        chat = factories.chat(ada)
        response = factories.response(agent, chat, status="queued")
        self.pks: dict[type[Any], Any] = {
            Session: factories.session(ada, chat).pk,
            Response: response.pk,
            ToolCall: factories.tool_call(response, status="asking").pk,
            PaymentRequest: PaymentRequest.objects.create(
                response=response,
                number=1,
                asked_in=chat.pk,
                amount=1,
                asset="USD",
                reason="llm_usage",
                deadline=timezone.now(),
            ).pk,
            WebhookDelivery: WebhookDelivery.objects.create(
                webhook=Webhook.objects.create(response=response), number=1
            ).pk,
        }
        self.states = {kind: next(iter(table)) for kind, table in TABLES.items()}

    def _changes(self, kind: type[Any], after: str) -> dict[str, Any]:
        ends = kind in ENDING and not TABLES[kind][after]
        return {"finished_at": timezone.now()} if ends else {}

    @rule(kind=KINDS, trigger=st.sampled_from(TRIGGERS), locked=st.booleans())
    def pull(self, kind: type[Any], trigger: StrEnum, *, locked: bool) -> None:
        """Pull a trigger: by a guarded write, or on a row that is locked and saved."""
        table, before = TABLES[kind], self.states[kind]
        after = table[before].get(trigger)
        changes = {} if after is None else self._changes(kind, after)
        rows = kind.objects.filter(pk=self.pks[kind])
        try:
            if locked:
                row = rows.get()
                transitions.move_row(row, trigger)
                for name, value in changes.items():
                    setattr(row, name, value)
                row.save()
            else:
                transitions.move_one(rows, trigger, **changes)
        except LocalProtocolError:
            assert after is None
        else:
            assert after is not None
            self.states[kind] = after

    @rule(kind=KINDS)
    def begin_again(self, kind: type[Any]) -> None:
        """Put a row back, so that its table is walked again."""
        first = next(iter(TABLES[kind]))
        changes = {"finished_at": None} if kind in ENDING else {}
        kind.objects.filter(pk=self.pks[kind]).update(status=first, **changes)
        self.states[kind] = first

    @invariant()
    def rows_are_where_the_tables_say(self) -> None:
        """Compare the rows with the model."""
        for kind, pk in getattr(self, "pks", {}).items():
            assert kind.objects.values_list("status", flat=True).get(pk=pk) == self.states[kind]


@pytest.mark.django_db
def test_rows_walk_their_tables_and_nothing_else() -> None:
    run_state_machine_as_test(
        Rows,
        settings=hypothesis_settings(
            max_examples=10,
            stateful_step_count=40,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.django_db
@pytest.mark.parametrize("kind", TABLES)
def test_a_row_may_have_the_states_of_its_table_alone(kind: type[Any]) -> None:
    assert {state for state, _ in kind._meta.get_field("status").choices} == set(TABLES[kind])
    machine = Rows()
    machine.make()
    with pytest.raises(IntegrityError), transaction.atomic():
        kind.objects.filter(pk=machine.pks[kind]).update(status="unknown?")


def test_the_open_states_of_rows_are_those_of_the_tables() -> None:
    assert unfinished(SESSION_TRANSITIONS) == Session.OPEN
    assert unfinished(RESPONSE_TRANSITIONS) == Response.LIVE
    assert unfinished(TOOL_CALL_TRANSITIONS) == ToolCall.OPEN


@pytest.mark.parametrize("table", TABLES.values())
def test_a_trigger_of_a_row_leads_to_one_state(table: dict[Any, dict[Any, Any]]) -> None:
    for trigger in {trigger for row in table.values() for trigger in row}:
        assert len(set(moves(table, trigger).values())) == 1


# --- The turn store ---


@pytest.fixture
def world(database_threads: None) -> None:
    """Write the chats and sessions of the turns."""
    worlds.build_world()


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("bodies", [SQL, ORM], ids=["sql", "orm"])
def test_a_response_ends_only_as_its_table_says(bodies: Bodies) -> None:
    ends = [end for end, row in RESPONSE_TRANSITIONS.items() if not row]
    for before in RESPONSE_TRANSITIONS:
        for end in ends:
            start = worlds.start(responses=[worlds.new_response(f"resp_{before}_{end}")])
            bodies.start([start])
            rows = Response.objects.filter(pk=f"resp_{before}_{end}")
            assert rows.get().status == "in_progress"
            ended_at = None if RESPONSE_TRANSITIONS[before] else timezone.now()
            rows.update(status=before, finished_at=ended_at)
            (outcome,) = bodies.finish([worlds.finish(start, status=end)])
            if end in RESPONSE_TRANSITIONS[before].values():
                assert isinstance(outcome, Finished)
                assert rows.get().status == end
            else:
                assert outcome == Fenced()
                assert (rows.get().status, rows.get().text) == (before, "")


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("bodies", [SQL, ORM], ids=["sql", "orm"])
def test_a_turn_begins_in_every_session_that_is_not_closed(bodies: Bodies) -> None:
    outcomes = {}
    for status in [state.value for state in SessionState]:
        (outcome,) = bodies.start([worlds.start(session_id=f"chat_a_{status}")])
        outcomes[status] = type(outcome).__name__
    assert outcomes == {
        "idle": "StartCommitted",
        "active": "StartCommitted",
        "closed": "StartRefused",
    }


# --- Responses that change hands ---


@pytest.mark.django_db
def test_a_response_that_is_given_back_is_queued_until_another_process_takes_it() -> None:
    ada = factories.user()
    chat = factories.chat(ada)
    later = timezone.now() + timedelta(minutes=1)
    responses = {
        status: factories.response(
            factories.agent(status),
            chat,
            session=factories.session(ada, chat),
            status=status,
            lease_until=later,
        )
        for status in Response.LIVE
    }
    assert not leases.park_response(responses["in_progress"].pk, fence=7)
    for response in responses.values():
        given_back = leases.park_response(response.pk, fence=1)
        assert given_back is (response.status != "queued")
    statuses = dict(Response.objects.values_list("agent__name", "status"))
    assert statuses == {"queued": "queued", "in_progress": "queued", "waiting": "waiting"}
    Response.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    claimed = leases.claim_orphans("another", running=())
    assert {(row.status, row.fence) for row in claimed} == {("in_progress", 2), ("waiting", 2)}
    statuses = dict(Response.objects.values_list("agent__name", "status"))
    assert statuses == {"queued": "in_progress", "in_progress": "in_progress", "waiting": "waiting"}


@pytest.mark.django_db
def test_a_process_that_lost_a_response_cannot_continue_it() -> None:
    chat = factories.chat(factories.user())
    response = factories.response(factories.agent(), chat, status="waiting", fence=2)
    with pytest.raises(transitions.TransitionRefused):
        responses.continue_response(response.pk, fence=1)
    responses.continue_response(response.pk, fence=2)
    responses.continue_response(response.pk, fence=2)
    response.refresh_from_db()
    assert response.status == "in_progress"
    Response.objects.update(status="failed", finished_at=timezone.now())
    with pytest.raises(transitions.TransitionRefused):
        responses.continue_response(response.pk, fence=2)
    assert requests.decided([]) == []


# --- Sessions whose connection went ---


def status_of(session_id: str) -> str:
    """Return the state of a session's row."""
    return Session.objects.values_list("status", flat=True).get(pk=session_id)


def test_a_session_is_active_only_while_a_socket_holds_it(dial: Dial, alice: Person) -> None:
    first, second = dial(alice), dial(alice)
    created = first.create_session(agent="echo")
    session_id = created["session"]["id"]
    assert (created["session"]["status"], status_of(session_id)) == ("active", "active")
    second.create_session(resume={"session_id": session_id, "after": 0})
    # The older socket goes: the newer one still holds the session.
    first.close()
    wait_until(lambda: Presence.objects.count() == 1)
    assert status_of(session_id) == "active"
    second.cut()
    wait_until(lambda: status_of(session_id) == "idle")
    third = dial(alice)
    third.create_session(resume={"session_id": session_id, "after": 0})
    assert status_of(session_id) == "active"


@pytest.mark.django_db
def test_a_session_whose_process_died_is_active_no_more() -> None:
    ada = factories.user()
    chat, now = factories.chat(ada), timezone.now()
    alive, lost, old, resumed = (factories.session(ada, chat).pk for _ in range(4))
    for pk in (alive, lost, resumed):
        session_states.hold_session(pk, held_by="a socket")
    long_ago = now - timedelta(seconds=session_states.LET_GO_SECONDS + 1)
    Session.objects.filter(pk__in=(alive, lost)).update(seen_at=long_ago)
    Session.objects.filter(pk=old).update(seen_at=now - timedelta(days=365))
    session_states.release_sessions([resumed], held_by="an older socket")
    session_states.touch_sessions([alive], now=now)
    assert [status_of(pk) for pk in (alive, lost, old, resumed)] == [
        "active", "idle", "closed", "active",
    ]  # fmt: skip
    with pytest.raises(transitions.TransitionRefused):
        session_states.hold_session(old, held_by="a socket")


# --- One place ---


def state_writes(tree: ast.AST) -> list[int]:
    """Return the lines that write a `status` other than by making a new row."""
    line_numbers = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            targets = [t for target in node.targets for t in getattr(target, "elts", [target])]
            if any(isinstance(t, ast.Attribute) and t.attr == "status" for t in targets):
                line_numbers.append(node.lineno)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in {"update", "update_or_create", "aupdate"}
            and any(keyword.arg == "status" for keyword in node.keywords)
        ):
            line_numbers.append(node.lineno)
    return line_numbers


def test_only_transitions_writes_the_states_of_rows() -> None:
    writes = {
        path.relative_to(ROOT).as_posix(): lines
        for path in sorted((ROOT / "sessions_app").rglob("*.py"))
        if "migrations" not in path.parts
        and (lines := state_writes(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert set(writes) == {"sessions_app/transitions.py"}
    # SQL names no state: its conditions are made from the tables.
    quoted = {f"'{state}'" for table in TABLES.values() for state in table}
    for module in ("postgres", "rows", "sql", "sqlite"):
        text = (ROOT / f"sessions_app/store/{module}.py").read_text(encoding="utf-8")
        assert not [name for name in quoted if name in text], module
