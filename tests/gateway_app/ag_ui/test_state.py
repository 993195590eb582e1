"""The state of a thread: sent at its start and as it changes, shared with the chat's members."""

from typing import Any

import httpx
import pytest
from django.utils import timezone

from chat_app.models import ChatEvent, Participant, SharedState
from sessions_app.models import Response
from sessions_app.tools.shared_states import change_for_response
from tests import factories
from tests.gateway_app.ag_ui.runs import run, run_input, text_of, the
from tests.live_server import Dial, Person, quick_agent, shared_chat
from tests.sessions_app.turn.team_tools import order, read
from uamp.shared_state import StateChange, VersionedState


def conflict(web: httpx.Client, who: Person, **members: Any) -> tuple[int, str]:
    """Send a run that is refused, and return its status and code."""
    body = run_input("tea", run="late", **members)
    answer = web.post("/agents/checklist/agui", json=body, headers=who.headers)
    return answer.status_code, answer.json()["error"]["code"]


def test_an_agent_changes_the_state_and_the_next_run_begins_with_it(
    web: httpx.Client, alice: Person
) -> None:
    first = run(web, "checklist", run_input("milk"), alice)

    assert "STATE_SNAPSHOT" not in {event["type"] for event in first}
    delta = the(first, "STATE_DELTA")
    assert delta["delta"] == [{"op": "add", "path": "/items", "value": ["milk"]}]
    assert delta["metadata"] == {"version": 1}
    assert text_of(first) == "It is on the list. The state has version 1 now."

    second = run(web, "checklist", run_input("tea", run="r2"), alice)

    assert [event["type"] for event in second[:2]] == ["RUN_STARTED", "STATE_SNAPSHOT"]
    assert second[1]["snapshot"] == {"items": ["milk"]}
    assert the(second, "STATE_DELTA")["delta"] == [
        {"op": "add", "path": "/items/-", "value": "tea"}
    ]
    # It is the thread's own: another one has none.
    other = run(web, "checklist", run_input("salt", thread="t2"), alice)
    assert the(other, "STATE_DELTA")["delta"][0]["value"] == ["salt"]


def test_the_state_of_the_client_is_the_threads_and_the_model_is_shown_it(
    web: httpx.Client, alice: Person
) -> None:
    events = run(web, "checklist", run_input("tea", state={"items": ["milk"]}), alice)

    assert the(events, "STATE_SNAPSHOT")["snapshot"] == {"items": ["milk"]}
    assert the(events, "STATE_DELTA")["delta"] == [
        {"op": "add", "path": "/items/-", "value": "tea"}
    ]
    # A client that has just begun has the empty state, which changes nothing.
    again = run(web, "checklist", run_input("salt", run="r2", state={}), alice)
    assert the(again, "STATE_SNAPSHOT")["snapshot"] == {"items": ["milk", "tea"]}


def test_a_change_of_an_older_version_is_refused(web: httpx.Client, alice: Person) -> None:
    first = run(web, "checklist", run_input("milk", state={"items": []}), alice)
    assert the(first, "STATE_SNAPSHOT")["metadata"] == {"version": 1}
    stale = {"items": ["all new"]}

    assert conflict(web, alice, state=stale, forwardedProps={"stateVersion": 1}) == (
        409,
        "state_conflict",
    )
    assert Response.objects.count() == 1
    events = run(
        web,
        "checklist",
        run_input("tea", run="r3", state=stale, forwardedProps={"stateVersion": 2}),
        alice,
    )
    assert the(events, "STATE_SNAPSHOT")["snapshot"] == stale


def test_a_model_that_changes_an_older_version_is_shown_the_newer_one(
    web: httpx.Client, alice: Person
) -> None:
    agent = quick_agent("worker", "doer")
    agent.tools = ["set_state"]
    agent.save()
    read.clear()
    change = [{"op": "add", "path": "/a", "value": 2}]
    task = order(call="set_state", arguments={"patch": change, "version": 7})

    events = run(web, "worker", run_input(task, state={"a": 1}), alice)

    assert "STATE_DELTA" not in {event["type"] for event in events}
    notice = 'The state is now at version 1, not 7. It is: {"a":1}'
    assert any(notice in text for text in read)
    assert the(events, "TOOL_CALL_RESULT")["metadata"] == {"isError": True}


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("text", "invalid_event"),
        ({"a": "x" * 70_000}, "event_too_large"),
        ({"a": [[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]}, "too_deep"),
    ],
)
def test_a_state_out_of_bounds_is_refused(
    web: httpx.Client, alice: Person, state: Any, code: str
) -> None:
    assert conflict(web, alice, state=state) == (400, code)
    assert not SharedState.objects.exists()


def test_members_of_a_chat_share_its_state_and_strangers_do_not(
    web: httpx.Client, dial: Dial, alice: Person, bob: Person, mallory: Person
) -> None:
    chat = shared_chat(alice, bob, agents=("checklist",))
    reader, stranger = dial(bob), dial(mallory)
    reader.create_session(chat=chat.pk)
    stranger.create_session(agent="echo")

    events = run(web, "checklist", run_input("milk"), alice, more={"X-Chat-Id": chat.pk})

    assert the(events, "STATE_DELTA")["metadata"] == {"version": 1}
    changed = reader.until("state.updated")[-1]
    assert (changed["version"], changed["agent"]) == (1, "checklist")
    assert changed["patch"] == the(events, "STATE_DELTA")["delta"]
    # The member changes it, and the next run of the other one begins with that.
    patch = [{"op": "add", "path": "/items/-", "value": "tea"}]
    reader.send("state.update", patch=patch, version=1)
    by_bob = reader.until("state.updated")[-1]
    assert (by_bob["version"], by_bob["user_id"]) == (2, str(bob.user.pk))
    reader.send("state.update", patch=patch, version=1)
    assert reader.until("session.error")[-1]["error"]["code"] == "state_conflict"
    again = run(web, "checklist", run_input("salt", run="r2"), alice, more={"X-Chat-Id": chat.pk})
    assert the(again, "STATE_SNAPSHOT")["snapshot"] == {"items": ["milk", "tea"]}
    assert "state.updated" not in {frame["type"] for frame in stranger.during(0.2)}


def test_a_client_that_lost_its_connection_is_sent_the_changes_it_missed(
    dial: Dial, alice: Person
) -> None:
    first = dial(alice)
    created = first.create_session(agent="checklist")
    first.send("state.update", state={"items": ["milk"]})
    seen = first.until("state.updated")[-1]
    first.send("state.update", patch=[{"op": "add", "path": "/items/-", "value": "tea"}])
    first.until("state.updated")
    first.cut()

    second = dial(alice)
    resume = {"session_id": created["session_id"], "epoch": created["epoch"], "after": seen["seq"]}
    again = second.create_session(resume=resume)

    assert (again["state"], again["state_version"]) == ({"items": ["milk", "tea"]}, 2)
    missed = second.until("state.updated")[-1]
    assert (missed["version"], missed["patch"][0]["value"]) == (2, "tea")
    # What the state is already is no change.
    second.send("state.update", state={"items": ["milk", "tea"]})
    same = second.until("state.updated")[-1]
    assert (same["version"], same["patch"]) == (2, [])
    assert ChatEvent.objects.filter(type="state.updated").count() == 2


def test_an_answer_comes_after_the_call_that_it_follows(web: httpx.Client, alice: Person) -> None:
    run(web, "checklist", run_input("milk"), alice)
    for number in range(8):
        events = run(web, "checklist", run_input("tea", run=f"r{number}"), alice)

        kinds = [event["type"] for event in events]
        assert kinds.index("TOOL_CALL_RESULT") < kinds.index("TEXT_MESSAGE_START")
        assert kinds.index("STATE_DELTA") < kinds.index("RUN_FINISHED")


def test_a_person_who_left_the_chat_changes_its_state_no_more(
    dial: Dial, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob)
    reader = dial(bob)
    reader.create_session(chat=chat.pk)
    # The session does not know it yet: no event was sent.
    Participant.objects.filter(chat=chat, user=bob.user).update(left_at=timezone.now())

    reader.send("state.update", state={"items": []})

    assert reader.until("session.error")[-1]["error"]["code"] == "chat_not_found"
    assert not SharedState.objects.exists()


@pytest.mark.django_db
def test_a_run_that_another_process_took_over_changes_nothing() -> None:
    echo = factories.agent()
    response = factories.response(echo, factories.chat(factories.user(), echo), fence=2)
    change = StateChange(state={"a": 1})
    response_fields = {"chat_id": response.chat_id, "response_id": response.pk, "agent": echo.name}

    assert change_for_response(change, fence=1, **response_fields) is None
    assert not SharedState.objects.exists()
    state = change_for_response(change, fence=2, **response_fields)
    assert state == VersionedState(value={"a": 1}, version=1)
